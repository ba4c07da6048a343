// The whole model as boxes in boxes, with what goes in and out of each. A box that is chosen opens or closes.

import { busy, button } from "../choosing.js";
import { ask, complain, html, saveButton, svg } from "../shell.js";

const [ROW, GAP, INDENT, WIDTH] = [34, 4, 18, 880];
const OPEN_AT_FIRST = 2; // levels

export function shapes(page, panel) {
  const { state, keep, question } = page;
  let told = null;

  const open = () => new Set(state.open.split(",").filter(Boolean));
  const isOpen = (part, depth, chosen) => (state.open ? chosen.has(part.name || "model") : depth < OPEN_AT_FIRST);

  function toggle(part) {
    const chosen = state.open ? open() : opened(told.tree, 0, new Set());
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
    const height = layOut(told.tree, 0, 4, boxes, (part, depth) => isOpen(part, depth, chosen));
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
    const counts = Object.entries(told.elements).map(([name, count]) => `${count} of the ${name}`);
    const caption = `Elements: ${counts.join(", ")}. [batch, elements, …]: one item is a batch of 1.`;
    panel.replaceChildren(
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
      told = await busy(panel, () => ask("/api/shapes", { body: question() }));
      draw();
    } catch (error) {
      complain(error.message);
    }
  }

  return load();
}

// Places of a part and, where it is open, of what is in it; gives where the next one may begin.
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

function drawBox({ part, depth, y, height, open }, toggle) {
  const [x, width] = [4 + depth * INDENT, WIDTH - 8 - 2 * depth * INDENT];
  const name = part.name.split(".").at(-1) || "model";
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
    svg("text", { x: x + 10, y: y + ROW / 2, class: "row-word" }, `${sign}${name}`),
    svg("text", { x: x + 10 + 8 * (sign.length + name.length) + 14, y: y + ROW / 2, class: "row-word small" }, part.kind),
    svg(
      "text",
      { x: x + width - 10, y: y + ROW / 2, "text-anchor": "end", class: "row-word small" },
      passed.length > 70 ? `${passed.slice(0, 69)}…` : passed,
    ),
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
