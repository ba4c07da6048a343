// The whole model as nested boxes with their input and output shapes. A click opens or closes a box.

import { button } from "../choosing.js";
import { working } from "../working.js";
import { ask, complain, html, saveButton, svg } from "../shell.js";

const [ROW, GAP, INDENT, LETTER] = [34, 4, 12, 7.4];
const NAMED = 1.3; // font size of a name relative to the rest
const WIDTH = Math.min(880, document.documentElement.clientWidth - 40); // pixels
const OPEN_AT_FIRST = 2; // levels

export function shapes(page, panel) {
  const { state, keep, question } = page;
  const stage = panel.appendChild(html("div"));
  let answer = null;

  const open = () => new Set(state.open.split(",").filter(Boolean));
  const isOpen = (part, depth, chosen) => (state.open ? chosen.has(part.name || "model") : depth < OPEN_AT_FIRST);

  function toggle(part) {
    const chosen = state.open ? open() : opened(answer.tree, 0, new Set());
    const name = part.name || "model";
    chosen.has(name) ? chosen.delete(name) : chosen.add(name);
    keep({ open: [...chosen].join(",") || "none" });
    draw(name);
  }

  function opened(part, depth, into) {
    if (depth < OPEN_AT_FIRST && part.parts.length) into.add(part.name || "model");
    part.parts.forEach((one) => opened(one, depth + 1, into));
    return into;
  }

  function draw(focused = null) {
    const chosen = open();
    const boxes = [];
    const height = layOut(answer.tree, 0, 4, boxes, (part, depth) => isOpen(part, depth, chosen));
    const parts = boxes.map((box) => drawBox(box, () => toggle(box.part)));
    const drawing = svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${height + 8}`,
        width: WIDTH,
        height: height + 8,
        role: "group",
        "aria-label": "Modules and shapes",
      },
      ...parts,
    );
    const whole = button(state.open === "none" ? "Open again" : "Close all", () => {
      keep({ open: state.open === "none" ? "" : "none" });
      draw();
    });
    const counts = Object.entries(answer.elements).map(([name, count]) => `${count} of the ${name}`);
    const caption = `Elements: ${counts.join(", ")}. [batch, elements, …]: one item is a batch of 1.`;
    stage.replaceChildren(
      html(
        "div",
        { class: "bar" },
        html("h3", {}, caption),
        whole,
        saveButton(
          () => drawing,
          () => "shapes",
        ),
      ),
      html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" }, drawing),
    );
    if (focused !== null) parts.find((_, i) => (boxes[i].part.name || "model") === focused)?.focus();
  }

  async function load() {
    complain();
    try {
      answer = await working(stage, `${state.run} reads the item`, (signal) => ask("/api/shapes", { body: question(), signal }));
      if (answer !== null) draw();
    } catch (error) {
      complain(error.message);
    }
  }

  return load();
}

const HEAD = "head";

// The display name of a module: the last part of its name, with layers counted from 1.
function partName(name) {
  const parts = name.split(".");
  const last = parts.at(-1) || "model";
  if (/^\d+$/.test(last)) return `${parts.at(-2) === "layers" ? "layer" : parts.at(-2)} ${Number(last) + 1}`;
  return last === HEAD ? "head: output projection" : last.replaceAll("_", " ");
}

// Places the box of a part and, if it is open, the boxes inside; returns the y of the next box.
function layOut(part, depth, y, boxes, isOpen) {
  const box = { part, depth, y, open: part.parts.length > 0 && isOpen(part, depth) };
  boxes.push(box);
  let end = y + ROW;
  if (box.open) {
    for (const one of part.parts) end = layOut(one, depth + 1, end + GAP, boxes, isOpen);
    end += GAP;
  }
  box.height = end - y;
  return end;
}

// Name, class and shapes of a module in one line, cut to the width; the title of the box has them in full.
function wordsOf(name, kind, passed, x, y, width) {
  const cut = (text, room) => (text.length * LETTER <= room ? text : room < 8 * LETTER ? "" : `${text.slice(0, Math.floor(room / LETTER) - 1)}…`);
  const shown = cut(name, (width - 20) / NAMED);
  const left = width - 20 - shown.length * LETTER * NAMED - 14;
  const shapes = cut(passed, left);
  const rest = left - shapes.length * LETTER - 14;
  const words = [svg("text", { x: x + 10, y, class: "row-word" }, shown)];
  if (kind.length * LETTER <= rest) words.push(svg("text", { x: x + 24 + shown.length * LETTER * NAMED, y, class: "row-word small" }, kind));
  if (shapes) words.push(svg("text", { x: x + width - 10, y, "text-anchor": "end", class: "row-word small" }, shapes));
  return words;
}

function drawBox({ part, depth, y, height, open }, toggle) {
  const [x, width] = [4 + depth * INDENT, WIDTH - 8 - 2 * depth * INDENT];
  const name = partName(part.name);
  const sign = part.parts.length ? (open ? "▾ " : "▸ ") : "";
  const shapesOf = (given) => given.map((shape) => `[${shape.join(", ")}]`).join(" ");
  const passed = part.calls ? `${shapesOf(part.inputs)} → ${shapesOf(part.outputs)}` : "";
  const own = Object.entries(part.own)
    .map(([key, shape]) => `${key} [${shape.join(", ")}]`)
    .join(", ");
  const often = part.calls > 1 ? `, called ${part.calls} times` : "";
  const what = `${part.name || "model"}: ${part.kind}${often}, ${part.parameters.toLocaleString("en")} parameters${own ? `: ${own}` : ""}. ${passed}`;
  const pressed = part.parts.length ? { role: "button", tabindex: 0, "aria-expanded": open } : { role: "group" };
  const group = svg(
    "g",
    { class: part.parts.length ? "box choosable" : "box", "aria-label": what, ...pressed },
    svg("title", {}, what),
    svg("rect", { x, y, width, height, rx: 7, class: "box-frame" }),
    ...wordsOf(`${sign}${name}`, part.kind, passed, x, y + ROW / 2, width),
  );
  if (part.parts.length) {
    group.addEventListener("click", toggle);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle();
    });
  }
  return group;
}
