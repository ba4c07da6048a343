// A beam search as a tree: one column per token, the likeliest above. Kept candidates are black, dropped ones faint,
// ended ones ringed, the best hypothesis bold. A chosen candidate shows its prefix.

import { html, svg } from "../shell.js";

const [COLUMN, ROW, TOP, LEFT] = [152, 24, 34, 12];
const LONGEST = 10;

export function beamTree(tree, chosen, changed) {
  const { candidates } = tree;
  const rows = [];
  const rowOf = candidates.map(({ step }) => (rows[step] = (rows[step] ?? 0) + 1) - 1);
  const x = (number) => (number === -1 ? LEFT : LEFT + candidates[number].step * COLUMN - COLUMN + 60);
  const y = (number) => TOP + ROW * (number === -1 ? 0 : rowOf[number]);
  const best = new Set(tree.best[0]);
  const width = LEFT + rows.length * COLUMN;
  const height = TOP + ROW * Math.max(...rows.filter(Boolean)) + 10;

  const edges = candidates.map((one, number) => {
    const [from, to] = [one.parent === -1 ? LEFT + 36 : x(one.parent) + COLUMN - 34, x(number) - 4];
    const middle = (from + to) / 2;
    const d = `M${from} ${y(one.parent)}C${middle} ${y(one.parent)} ${middle} ${y(number)} ${to} ${y(number)}`;
    return svg("path", { d, class: `branch ${one.fate}${best.has(number) ? " best" : ""}`, "data-number": number });
  });
  const nodes = candidates.map((one, number) => {
    const letters = [...one.token.replace(/^▁(?=.)/, "")];
    const word = letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : letters.join("");
    const named = `${one.token}, step ${one.step}, ${one.fate}, score ${one.score.toFixed(3)}`;
    const text = svg("text", { x: x(number), y: y(number), class: "token" }, word);
    const share = svg(
      "text",
      { x: x(number) + COLUMN - 38, y: y(number), class: "share", "text-anchor": "end" },
      percentOf(candidates, number),
    );
    const ring = svg("rect", { x: x(number) - 4, y: y(number) - 10, width: COLUMN - 30, height: 20, rx: 4, class: "ring" });
    const group = {
      class: `candidate ${one.fate}${best.has(number) ? " best" : ""}`,
      tabindex: 0,
      role: "button",
      "aria-label": named,
      "data-number": number,
    };
    return svg("g", group, svg("title", {}, named), ring, text, share);
  });
  const steps = rows
    .slice(1)
    .map((_, i) => svg("text", { x: LEFT + i * COLUMN + 60, y: 12, class: "step" }, `token ${i + 1}`));
  const label = `Beam search of ${tree.beam_size} beams`;
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label },
    ...steps,
    svg("text", { x: LEFT, y: TOP, class: "token" }, "start"),
    ...edges,
    ...nodes,
  );

  const readout = html("div", { class: "readout", "aria-live": "polite" });
  const show = (number) => {
    const path = number === null ? [] : pathTo(candidates, number);
    drawing.classList.toggle("has-path", path.length > 0);
    for (const part of drawing.querySelectorAll("[data-number]")) {
      part.classList.toggle("on-path", path.includes(Number(part.dataset.number)));
    }
    readout.replaceChildren(...(number === null ? [invitation(tree)] : describe(tree, path)));
  };
  const choose = (number) => {
    changed(number);
    show(number);
  };
  drawing.addEventListener("click", (event) => choose(numberOf(event.target)));
  drawing.addEventListener("focusin", (event) => choose(numberOf(event.target)));
  drawing.addEventListener("keydown", (event) => event.key === "Escape" && choose(null));
  show(chosen !== null && chosen < candidates.length ? chosen : null);
  return { drawing, readout };
}

function numberOf(element) {
  const part = element.closest("[data-number]");
  return part ? Number(part.dataset.number) : null;
}

export function pathTo(candidates, number) {
  const path = [];
  for (let at = number; at !== -1; at = candidates[at].parent) path.unshift(at);
  return path;
}

function probability(candidates, number) {
  const { parent, logProbability } = candidates[number];
  return Math.exp(logProbability - (parent === -1 ? 0 : candidates[parent].logProbability));
}

function percentOf(candidates, number) {
  const share = 100 * probability(candidates, number);
  return `${share < 1 ? share.toFixed(1) : Math.round(share)}%`;
}

function describe(tree, path) {
  const last = tree.candidates[path.at(-1)];
  const text = path.map((number) => tree.candidates[number].token).join(" ");
  const numbers = `log-probability ${last.logProbability.toFixed(3)}, divided by ${last.step}^${tree.length_penalty}: score ${last.score.toFixed(3)}`;
  const fate = { kept: "kept", ended: "finished here", dropped: "dropped from the beam" }[last.fate];
  return [html("p", {}, html("b", { dir: "auto" }, text)), html("p", { class: "quiet" }, `${numbers}; ${fate}`)];
}

function invitation(tree) {
  const what = `Each column has the ${2 * tree.beam_size} likeliest continuations of ${tree.beam_size} beams. Choose one to see its prefix.`;
  return html("p", { class: "quiet" }, what);
}
