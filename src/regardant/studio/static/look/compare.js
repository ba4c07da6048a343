// Two pictures side by side: of two heads, two items or two runs.

import { FORMS, nameOf } from "../pictures/view.js";
import { MEAN, inflate, readKind, sceneOf } from "../pictures/weights.js";
import { field, select } from "../choosing.js";
import { ask, complain, html, saveButton } from "../shell.js";
import { working } from "../working.js";
import { roleOf, unitOf } from "./roles.js";

// sides: [{ run, text, head }], where head is "kind.layer.head" or empty. `changed` is called with both.
export function comparison(names, sides, changed) {
  const tell = () => changed(sides);
  const element = html("div", {});
  const about = html("p", { class: "quiet" }, "Change one side: another head, another item or another run.");
  element.append(about, html("div", { class: "pairing" }, ...sides.map((side, i) => sideOf(names, side, i, tell))));
  return element;
}

function sideOf(names, side, number, tell) {
  const title = number ? "Right" : "Left";
  const text = html("textarea", { rows: 2, dir: "auto" });
  text.value = side.text;
  const headPlace = html("div", {});
  const says = html("p", { class: "quiet", "aria-live": "polite" });
  const figure = html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": `${title} picture, scrolls if wide` });
  const answer = html("p", { class: "sentence", dir: "auto" });
  const shown = html("div", {}, answer, says, figure);
  let kinds = [];

  async function load() {
    side.text = text.value;
    tell();
    try {
      const body = { run: side.run, text: side.text };
      const found = await working(shown, `${side.run} reads the item`, (signal) => ask("/api/look", { body, signal }));
      if (found === null) return;
      complain();
      answer.textContent = found.answer;
      if (!found.pictures) {
        says.textContent = `${side.run} has no attention to draw.`;
        figure.replaceChildren();
        headPlace.replaceChildren();
        return;
      }
      kinds = found.pictures.kinds.map((kind, k) =>
        readKind(kind, found.pictures.layouts, (layer) => inflate(found.pictures.weights[k][layer])),
      );
      offerHeads();
      await draw();
    } catch (error) {
      complain(error.message);
    }
  }

  function offerHeads() {
    const all = kinds.flatMap((kind, k) =>
      [...Array(kind.layers).keys()].flatMap((layer) => [MEAN, ...Array(kind.heads).keys()].map((head) => [`${k}.${layer}.${head}`, `${kind.kind}, ${nameOf(layer, head)}`])),
    );
    if (!all.some(([key]) => key === side.head)) side.head = all[Math.max(0, all.length - 1)][0];
    const labels = all.map(([, label]) => label);
    const chosen = all.find(([key]) => key === side.head)[1];
    const choose = select(labels, chosen, (label) => {
      side.head = all.find(([, one]) => one === label)[0];
      tell();
      draw();
    });
    headPlace.replaceChildren(field("Head", choose));
  }

  async function draw() {
    const [k, layer, head] = side.head.split(".").map(Number);
    const kind = kinds[k];
    const scene = await sceneOf(kind, layer, head, kind.hasUnits);
    const role = roleOf(scene, unitOf(kind));
    const name = `${kind.kind}, ${nameOf(layer, head)}`;
    says.textContent = `${name} ${role.says} (${Math.round(100 * role.strength)}%).`;
    figure.replaceChildren(FORMS[kind.sourceLayout ? "Grid" : "Heat map"](scene, `${name}: ${side.text}`, null));
    tell();
  }

  text.addEventListener("change", load);
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    text.blur();
  });
  const run = select(names, side.run, (name) => {
    side.run = name;
    load();
  });
  load();
  const save = saveButton(
    () => figure.querySelector("svg"),
    () => `compared ${title}`,
  );
  return html("section", { "aria-label": title }, html("h3", {}, title), field("Run", run), field("Item", text), headPlace, shown, html("div", {}, save));
}
