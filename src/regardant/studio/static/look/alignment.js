// Words of both texts and the lines between them; a chosen word shows its source words.

import { crossing } from "../crossing.js";
import { html } from "../shell.js";

export function alignmentView(alignment, title, height) {
  const { source, target } = alignment;
  const linked = new Set(alignment.links.map(String));
  const matrix = target.map((_, t) => Float32Array.from(source, (_, s) => (linked.has(`${s},${t}`) ? 1 : 0)));
  const readout = html("p", { class: "quiet", "aria-live": "polite" }, "Choose a word of the answer to see its source words.");
  const picture = crossing({ source, target, matrix }, `Alignment: ${title}`, { moving: true, height, chosen: say });

  function say(row) {
    if (row === null) return;
    const words = source.filter((_, s) => linked.has(`${s},${row}`));
    readout.textContent = `${target[row]} comes from ${words.length ? words.join(", ") : "no word"}`;
  }

  const words = target.map((word, row) => {
    const button = html("button", { type: "button", class: "word" }, word);
    const show = () => {
      picture.pause();
      picture.choose(row);
    };
    for (const event of ["click", "focus", "pointerenter"]) button.addEventListener(event, show);
    return button;
  });
  const head = alignment.head === -1 ? "mean of its heads" : `head ${alignment.head + 1}`;
  const where = `Layer ${alignment.layer + 1}, ${head}${alignment.shift ? ", shifted by one step" : ""}`;
  const why = alignment.chosen
    ? " (lowest alignment error on validation data)."
    : " (each word's largest weight). Evaluate the run to choose the head by known alignments.";
  const row = html(
    "p",
    { class: "sentence", dir: "auto", role: "group", "aria-label": "Words of the answer" },
    ...words.flatMap((word) => [word, " "]),
  );
  return [picture.element, row, readout, html("p", { class: "note" }, where + why)];
}
