// A drawing as a file of its own: SVG that brings its rules and colours along.

import { html, resolved, svg } from "./drawing.js";

export function saveDrawing(drawing, name) {
  const text = new XMLSerializer().serializeToString(alone(drawing));
  const link = html("a", { download: `${name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "-")}.svg` });
  link.href = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function alone(drawing) {
  const copy = drawing.cloneNode(true);
  copy.querySelectorAll("[class~=is-row]").forEach((part) => part.classList.remove("is-row"));
  const page = svg("rect", { width: "100%", height: "100%", fill: resolved("var(--paper)") });
  copy.prepend(svg("style", {}, rules().join("\n")), page);
  return copy;
}

// What page.css says of the parts of a figure, with the colours that they have now: other programs know no variables.
function rules() {
  const all = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const ofFigure = all.filter((rule) => rule.selectorText?.startsWith(".figure "));
  return ofFigure.map((rule) => rule.cssText.replaceAll(".figure ", "").replaceAll(/var\(--\w+\)/g, (name) => resolved(name)));
}
