// Words of both texts and the links between them; a word that is chosen says where it comes from.

import { lineView } from "../pictures/drawing.js";
import { html } from "../shell.js";

export function alignmentView(alignment, title) {
  const { source, target } = alignment;
  const linked = new Set(alignment.links.map(String));
  const matrix = target.map((_, t) => Float32Array.from(source, (_, s) => (linked.has(`${s},${t}`) ? 1 : 0)));
  const scene = { source, target, matrix, gold: [], isGold: () => false };
  const figure = html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" });
  const readout = html("p", { class: "quiet", "aria-live": "polite" }, "Choose a word to see where it comes from.");
  const look = (row) => {
    figure.classList.toggle("has-row", row !== null);
    for (const part of figure.querySelectorAll("[data-row]"))
      part.classList.toggle("is-row", Number(part.dataset.row) === row);
    for (const word of figure.querySelectorAll("[data-column]")) {
      word.classList.toggle("is-seen", row !== null && linked.has(`${word.dataset.column},${row}`));
    }
    if (row !== null) {
      const words = source.filter((_, s) => linked.has(`${s},${row}`));
      readout.textContent = `${target[row]} comes from ${words.length ? words.join(", ") : "no word"}`;
    }
  };
  const words = target.map((word, row) => {
    const button = html("button", { type: "button", class: "word" }, word);
    for (const event of ["click", "focus", "pointerenter"]) button.addEventListener(event, () => look(row));
    return button;
  });
  if (source.length && target.length) figure.append(lineView(scene, `Alignment: ${title}`));
  for (const part of figure.querySelectorAll("[data-row]")) {
    part.addEventListener("pointerenter", () => look(Number(part.dataset.row)));
  }
  const head = alignment.head === -1 ? "mean of heads" : `head ${alignment.head + 1}`;
  const where = `Layer ${alignment.layer + 1}, ${head}${alignment.shift ? ", a step later" : ""} (`;
  const why = alignment.chosen
    ? "lowest alignment error on validation data)."
    : "heaviest source word of each word; evaluate the run to choose the head by gold links).";
  const row = html(
    "p",
    { class: "sentence", dir: "auto", role: "group", "aria-label": "Words to look from" },
    ...words.flatMap((word) => [word, " "]),
  );
  return [row, readout, figure, html("p", { class: "note" }, where + why)];
}
