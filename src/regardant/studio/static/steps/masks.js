// Masks composed of parts: each part, all together, and the weights of equal scores under them.

import { heatMap } from "../pictures/drawing.js";
import { field } from "../choosing.js";
import { ask, complain, html, saveButton } from "../shell.js";

const PARTS = { padding: "Padding", causal: "Causal", window: "Window", edges: "Custom pairs" };

export function masks(page, panel) {
  const { state, keep } = page;
  const number = (name, label, most) => {
    const input = html("input", { type: "number", min: 0, max: most, value: state[name] });
    input.addEventListener("input", () => show({ [name]: input.value }));
    return field(label, input);
  };
  const causal = html("input", { type: "checkbox", ...(state.causal ? { checked: "" } : {}) });
  causal.addEventListener("change", () => show({ causal: causal.checked ? "1" : "" }));
  const edges = html("input", { type: "text", value: state.edges, placeholder: "1-4, 4-1" });
  edges.addEventListener("change", () => show({ edges: edges.value }));
  const form = html(
    "div",
    { class: "asking" },
    number("length", "Tokens", 64),
    number("padding", "Padding tokens", 64),
    html("label", { class: "switch" }, causal, "causal"),
    number("window", "Window: tokens to each side", 64),
    field("Custom pairs (from-to)", edges),
  );
  const out = html("div");
  let last = 0; // number of the last request: earlier answers may come after it
  panel.replaceChildren(form, out);

  async function show(change = {}) {
    keep(change);
    complain();
    const request = ++last;
    const isLate = () => request !== last || !out.isConnected;
    const given = (name) => (/^\d+$/.test(state[name]) ? Number(state[name]) : null);
    try {
      const body = {
        length: given("length") ?? 10,
        padding: given("padding") ?? 0,
        causal: Boolean(state.causal),
        window: given("window"),
        edges: state.edges,
      };
      const answer = await ask("/api/mask", { body });
      if (isLate()) return;
      const parts = Object.entries(answer.parts).map(([name, allowed]) => figure(PARTS[name], allowed, answer.length, true));
      const note = answer.fully_masked.length
        ? `All keys are masked for tokens ${answer.fully_masked.map((token) => token + 1).join(", ")}: their weights are zeros.`
        : "Every token may attend to at least one key.";
      const together = [
        figure("All together", answer.allowed, answer.length, false),
        figure("Weights of equal scores", answer.weights, answer.length, false),
      ];
      out.replaceChildren(
        html("pre", {}, answer.code),
        html("p", { class: "quiet" }, `A row is a query, a column a key, both counted from 1. Filled: the query may attend to the key. ${note}`),
        html("div", { class: "matrices" }, ...together, ...parts),
      );
    } catch (error) {
      if (!isLate()) complain(error.message);
    }
  }

  return show();
}

function figure(name, matrix, length, small) {
  const words = Array.from({ length }, (_, i) => String(i + 1));
  const scene = {
    source: words,
    target: words,
    matrix: matrix.map((row) => Float32Array.from(row, Number)),
    gold: [],
    isGold: () => false,
  };
  const drawing = heatMap(scene, `Mask: ${name}`);
  if (small) (drawing.removeAttribute("height"), drawing.setAttribute("width", 220));
  return html(
    "section",
    {},
    html("h3", {}, name),
    html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" }, drawing),
    saveButton(
      () => drawing,
      () => `mask ${name}`,
    ),
  );
}
