// Thumbnails of all heads, each with a description of its role.

import { drawThumbnail } from "../pictures/drawing.js";
import { matrixOf } from "../pictures/weights.js";
import { html } from "../shell.js";

// kinds: the item's kinds of attention; roles: the described heads of each kind. `choose(kind, layer, head)` opens one.
export function gallery(kinds, roles, chosen, choose) {
  const groups = [...kinds.keys()].reverse().flatMap((k) => {
    const kind = kinds[k];
    const cards = roles[k].map((role) => cardOf(kind, k, role, chosen, choose));
    return [html("h3", {}, kind.kind), html("ul", { class: "head-cards" }, ...cards)];
  });
  return html("section", { class: "gallery", "aria-label": "What the heads do" }, ...groups);
}

function cardOf(kind, k, { layer, head, says, strength }, chosen, choose) {
  const canvas = html("canvas", { width: 8, height: 8, "aria-hidden": "true" });
  const on = chosen && chosen[0] === k && chosen[1] === layer && chosen[2] === head;
  const name = `Layer ${layer + 1}, head ${head + 1}`;
  const words = html("span", { class: "says" }, html("b", {}, name), html("span", {}, `${says} · ${Math.round(100 * strength)}%`));
  const button = html("button", { type: "button", "aria-label": `${kind.kind}, ${name}: ${says}`, "aria-pressed": Boolean(on) }, canvas, words);
  button.addEventListener("click", () => choose(k, layer, head));
  kind.bytesOf(layer).then((bytes) => drawThumbnail(canvas, matrixOf(kind, bytes, head)));
  return html("li", {}, button);
}
