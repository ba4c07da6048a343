// Source words of each target word, as lines that are drawn word by word. Words are in two rows, or in two columns on a
// narrow page. Lines that cross others are amber.

import { html, svg } from "./shell.js";

const EVERY = 650; // milliseconds per word
const REST = 5; // steps of EVERY before the animation restarts
const FAINTEST = 0.12; // least weight of a line that is drawn
const CROSSES = 0.4; // least weight of a line that counts as a link
const [SIZE, LEAST_SIZE, GAP, PITCH] = [23, 15, 13, 34]; // pixels: font sizes, between words, between rows
const ruler = document.createElement("canvas").getContext("2d");
const still = matchMedia("(prefers-reduced-motion: reduce)");

// scene: { source, target, matrix }, with a row of weights for each target word. `moving`: play when first shown.
export function crossing(scene, label, { moving = false, height = 300, chosen = () => {} } = {}) {
  const figure = html("div", { class: "figure crossing" });
  const amber = crossed(scene);
  let shown = moving && !still.matches ? 0 : scene.target.length; // number of target words written so far
  let [timer, width, picked] = [null, 0, null];

  function draw() {
    const { source, target } = placed(scene, width, height);
    const curves = scene.matrix.flatMap((weights, row) =>
      [...weights.keys()]
        .filter((i) => weights[i] >= FAINTEST)
        .map((i) => {
          const what = `${scene.target[row]} comes from ${scene.source[i]}: ${Math.round(100 * weights[i])}%`;
          return svg(
            "path",
            {
              d: curve(source[i], target[row]),
              class: `thread${amber.has(`${i},${row}`) ? " crosses" : ""}`,
              "stroke-width": (1 + 4 * weights[i]).toFixed(2),
              "stroke-opacity": Math.min(1, 0.15 + weights[i]).toFixed(2),
              pathLength: 1,
              "data-row": row,
            },
            svg("title", {}, what),
          );
        }),
    );
    const written = (at, words, key) =>
      words.map((word, i) => {
        const { x, y, size, anchor } = at[i];
        const text = svg("text", { x, y, "text-anchor": anchor, [key]: i, class: "crossing-word" }, word);
        text.style.fontSize = `${size}px`;
        if (key === "data-row") {
          text.addEventListener("pointerenter", () => choose(i));
          text.addEventListener("click", () => choose(i));
        }
        return text;
      });
    const [w, h] = [Math.max(source.width, target.width), Math.max(source.height, target.height)];
    const drawing = svg(
      "svg",
      { viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: "img", "aria-label": label },
      ...curves,
      ...written(source, scene.source, "data-column"),
      ...written(target, scene.target, "data-row"),
    );
    drawing.addEventListener("pointerleave", () => choose(null));
    figure.replaceChildren(drawing);
    mark();
  }

  function mark() {
    const now = picked ?? (timer && shown < scene.target.length ? shown - 1 : null);
    figure.classList.toggle("has-row", now !== null && now >= 0);
    for (const part of figure.querySelectorAll("[data-row]")) {
      const row = Number(part.dataset.row);
      part.classList.toggle("is-row", row === now);
      part.classList.toggle("is-coming", row >= shown);
    }
    for (const word of figure.querySelectorAll("[data-column]")) {
      word.classList.toggle("is-seen", now !== null && now >= 0 && scene.matrix[now][word.dataset.column] >= FAINTEST);
    }
  }

  function choose(row) {
    picked = row;
    mark();
    chosen(row);
  }

  function step() {
    if (!figure.isConnected) return pause();
    shown = shown >= scene.target.length + REST ? 0 : shown + 1;
    mark();
  }

  function play() {
    if (timer) return;
    if (shown >= scene.target.length) shown = 0;
    timer = setInterval(step, EVERY);
    mark();
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    shown = scene.target.length;
    mark();
  }

  new ResizeObserver(([{ contentRect }]) => {
    if (Math.abs(contentRect.width - width) < 1) return;
    width = contentRect.width;
    draw();
  }).observe(figure);
  if (moving && !still.matches) requestAnimationFrame(play);
  return { element: figure, play, pause, choose, playing: () => timer !== null };
}

// The links that cross another one, as "source,target".
function crossed({ matrix }) {
  const links = matrix.flatMap((weights, row) => [...weights.keys()].filter((i) => weights[i] >= CROSSES).map((i) => [i, row]));
  const both = links.filter(([i, row]) => links.some(([j, other]) => (i - j) * (row - other) < 0));
  return new Set(both.map(String));
}

// Coordinates of all words: in two rows if they fit, otherwise in two columns.
function placed({ source, target }, width, height) {
  const wide = (words, size) => words.reduce((sum, word) => sum + widthOf(word, size) + GAP, -GAP);
  const longest = (size) => Math.max(wide(source, size), wide(target, size));
  const size = [SIZE, 20, 18, 16, LEAST_SIZE].find((one) => longest(one) <= width);
  if (size) return { source: inRow(source, width, size, size, height), target: inRow(target, width, size, height - 10, height) };
  const side = Math.min(SIZE - 5, 18);
  const most = (words) => Math.max(...words.map((word) => widthOf(word, side)));
  const [left, right] = [most(source), most(target)];
  const between = Math.max(70, Math.min(220, width - left - right - 40));
  const [from, to] = [left + 4, left + between + 24];
  const tall = Math.max(source.length, target.length) * PITCH;
  const total = to + right + 4;
  const column = (words, x, anchor) =>
    Object.assign(
      words.map((_, i) => ({ x, y: ((i + 0.62) * tall) / words.length, size: side, anchor, edge: anchor === "end" ? x + 8 : x - 8, across: true })),
      { width: total, height: tall },
    );
  return { source: column(source, from, "end"), target: column(target, to, "start") };
}

function inRow(words, width, size, y, height) {
  const sizes = words.map((word) => widthOf(word, size));
  const gap = words.length > 1 ? Math.min(34, (width - sizes.reduce((a, b) => a + b, 0)) / (words.length - 1)) : 0;
  let x = (width - sizes.reduce((a, b) => a + b, 0) - gap * (words.length - 1)) / 2;
  const places = words.map((_, i) => {
    const place = { x: x + sizes[i] / 2, y, size, anchor: "middle", edge: y > size ? y - size - 2 : y + 9, across: false };
    x += sizes[i] + gap;
    return place;
  });
  return Object.assign(places, { width, height });
}

function curve(from, to) {
  if (from.across) {
    const middle = (from.edge + to.edge) / 2;
    const [a, b] = [from.y - 6, to.y - 6];
    return `M${from.edge} ${a}C${middle} ${a} ${middle} ${b} ${to.edge} ${b}`;
  }
  const middle = (from.edge + to.edge) / 2;
  return `M${from.x} ${from.edge}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${to.edge}`;
}

function widthOf(word, size) {
  ruler.font = `600 ${size}px ui-serif, "Iowan Old Style", "Palatino Linotype", Palatino, "Noto Serif", Georgia, serif`;
  return ruler.measureText(word).width;
}
