// A drawing as a file of its own: SVG with its CSS rules and colours.

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

// The CSS rules of a figure, with the current colours in place of variables, which other programs do not support.
function rules() {
  const all = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const ofFigure = all.filter((rule) => rule.selectorText?.startsWith(".figure "));
  return ofFigure.map((rule) => rule.cssText.replaceAll(".figure ", "").replaceAll(/var\(--\w+\)/g, (name) => resolved(name)));
}
