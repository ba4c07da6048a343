// One sentence to look around in. What is shown is its state: the kind of attention, the layer and head, the form of
// the picture, pieces or words, and the word that is looked from.

import { drawThumbnail, heatMap, html, lineView, weightTable } from "./drawing.js";
import { saveDrawing } from "./save.js";
import { MEAN, matrixOf, percent, sceneOf, strongest } from "./weights.js";

export const FORMS = { "Heat map": heatMap, Lines: lineView };
export const UNITS = ["Pieces", "Words"];
const darkness = matchMedia("(prefers-color-scheme: dark)");

// `changed` is called with the state whenever the reader has changed it.
export function attentionView(sentence, state, changed) {
  const keys = html("p", { class: "sentence", dir: "auto" });
  const queries = html("p", { class: "sentence", dir: "auto", role: "group", "aria-label": "Words to look from" });
  const figure = html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" });
  const caption = html("h3");
  const gold = html("span", {}, html("span", { class: "mark", "aria-hidden": "true" }), "gold link");
  const readout = html("div", { class: "readout", "aria-live": "polite" });
  const table = html("details", { class: "table" }, html("summary", {}, "As a table"));
  let scene = null; // what is shown now; nothing until its layer is decoded
  let asked = 0;

  async function show() {
    const mine = ++asked;
    const kind = sentence.kinds[state.kind];
    const found = await sceneOf(kind, state.layer, state.head, kind.hasUnits && state.unit === "Words");
    if (mine !== asked) return; // something else was chosen meanwhile
    scene = found;
    if (state.word >= scene.target.length) state.word = null;
    writeWords();
    const name = `${kind.kind}, ${nameOf(state.layer, state.head)}`;
    caption.textContent = name;
    figure.replaceChildren(FORMS[state.form](scene, `${name}: ${sentence.title}`));
    for (const part of figure.querySelectorAll("[data-row]")) {
      const row = Number(part.dataset.row);
      part.addEventListener("pointerenter", () => look(row));
      part.addEventListener("click", () => stay(row));
    }
    gold.hidden = !scene.gold.length;
    units.hidden = !kind.hasUnits;
    fillTable();
    look(state.word);
  }

  function writeWords() {
    const buttons = scene.target.map((word, row) => {
      const button = html("button", { type: "button", class: "word" }, word);
      button.addEventListener("pointerenter", () => look(row));
      button.addEventListener("pointerleave", () => look(state.word));
      button.addEventListener("focus", () => stay(row));
      button.addEventListener("click", () => stay(row));
      return button;
    });
    keys.replaceChildren(...spaced(scene.source.map((word) => html("span", { class: "word" }, word))));
    queries.replaceChildren(...spaced(buttons));
    walkWithArrows(buttons, buttons.length, state.word ?? 0);
  }

  function stay(row) {
    if (state.word !== row) {
      state.word = row;
      changed(state);
    }
    look(row);
  }

  function look(row) {
    if (!scene) return;
    const weights = row === null ? null : scene.matrix[row];
    [...queries.children].forEach((word, i) => {
      word.classList.toggle("is-row", i === row);
      word.setAttribute("aria-pressed", i === state.word);
    });
    [...keys.children].forEach((word, i) => word.style.setProperty("--weight", weights ? weights[i] : 0));
    figure.classList.toggle("has-row", row !== null);
    for (const part of figure.querySelectorAll("[data-row]")) {
      part.classList.toggle("is-row", Number(part.dataset.row) === row);
    }
    for (const word of figure.querySelectorAll("[data-column]")) {
      word.classList.toggle("is-seen", weights !== null && weights[word.dataset.column] >= 0.1);
    }
    readout.replaceChildren(...(weights ? answerOf(scene, row) : [invitation()]));
  }

  function fillTable() {
    table.querySelector("div")?.remove();
    if (table.open && scene) {
      const content = weightTable(scene, caption.textContent);
      table.append(html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" }, content));
    }
  }

  function set(change) {
    Object.assign(state, change);
    changed(state);
    show();
  }

  const grids = sentence.kinds.map((kind, index) =>
    headGrid(kind, (layer, head) => {
      grids.forEach((grid, i) => grid.mark(...(i === index ? [layer, head] : [null, null])));
      set({ kind: index, layer, head, word: index === state.kind ? state.word : null });
    }),
  );
  grids[state.kind].mark(state.layer, state.head);
  const forms = choice("Form", Object.keys(FORMS), state.form, (form) => set({ form }));
  const units = choice("Rows and columns", UNITS, state.unit, (unit) => set({ unit, word: null }));
  const save = html("button", { type: "button", class: "save" }, "Save this picture");
  save.addEventListener("click", () => scene && saveDrawing(figure.firstChild, caption.textContent));
  figure.addEventListener("pointerleave", () => look(state.word));
  table.addEventListener("toggle", fillTable);
  darkness.addEventListener("change", show);

  const pair = html("div", { class: "pair" }, keys, queries);
  pair.addEventListener("keydown", (event) => event.key === "Escape" && stay(null));
  const note = sentence.note ? [html("p", { class: "note" }, sentence.note)] : [];
  const bar = html("div", { class: "bar" }, caption, units, forms, save);
  const stage = html("div", { class: "stage" }, bar, figure, legend(gold), table);
  const side = html("aside", {}, readout, ...grids.flatMap((grid, i) => [html("h3", {}, sentence.kinds[i].kind), grid.element]));
  show();
  return html("section", {}, html("h2", {}, sentence.title), pair, ...note, html("div", { class: "columns" }, stage, side));
}

export function nameOf(layer, head) {
  return `layer ${layer}, ${head === MEAN ? "mean of heads" : `head ${head}`}`;
}

function spaced(elements) {
  return elements.flatMap((element) => [element, " "]);
}

function invitation() {
  return html("p", { class: "quiet" }, "Point at a word of the second line, or walk it with the arrow keys, to see where it looks.");
}

function answerOf(scene, row) {
  const items = strongest(scene.matrix[row], 5).map((i) => {
    const bar = html("span", { class: "bar-of" });
    bar.style.setProperty("--weight", scene.matrix[row][i]);
    const name = html("span", { class: scene.isGold(i, row) ? "gold-word" : "" }, scene.source[i]);
    return html("li", {}, name, bar, html("span", { class: "number" }, percent(scene.matrix[row][i])));
  });
  return [html("p", {}, html("b", {}, scene.target[row]), ` looks at${items.length ? "" : " nothing"}`), html("ol", {}, ...items)];
}

function legend(gold) {
  const ramp = html("span", { class: "ramp", "aria-hidden": "true" });
  return html("p", { class: "legend" }, html("span", {}, "0%", ramp, "100%"), gold);
}

let choices = 0;

export function choice(label, names, chosen, choose) {
  const group = `choice-${choices++}`;
  const options = names.map((name, i) => {
    const input = html("input", { type: "radio", name: group, ...(name === chosen ? { checked: "" } : {}) });
    input.addEventListener("change", () => choose(name, i));
    return html("label", {}, input, html("span", {}, name));
  });
  return html("div", { class: "choice", role: "radiogroup", "aria-label": label }, ...options);
}

// A thumbnail for the mean and for each head, a row a layer, painted when the row is first seen: its layer is decoded
// then. Arrow keys choose as they move, as radio buttons do.
function headGrid(kind, choose) {
  const columns = [MEAN, ...Array(kind.heads).keys()];
  const places = [...Array(kind.layers).keys()].flatMap((layer) => columns.map((head) => [layer, head]));
  const painted = new Set();
  let picked = null;

  const buttons = places.map(([layer, head]) => {
    const label = `${kind.kind}, ${nameOf(layer, head)}`;
    const button = html("button", { type: "button", role: "radio", "aria-label": label }, html("canvas"));
    button.dataset.layer = layer;
    const pick = () => picked !== `${layer} ${head}` && choose(layer, head);
    button.addEventListener("click", pick);
    button.addEventListener("focus", pick);
    return button;
  });

  function mark(layer, head) {
    picked = `${layer} ${head}`;
    buttons.forEach((button, i) => {
      const chosen = places[i].join(" ") === picked;
      button.setAttribute("aria-checked", chosen);
      if (chosen) buttons.forEach((other) => (other.tabIndex = other === button ? 0 : -1));
    });
  }

  async function paint(layer) {
    const bytes = await kind.bytesOf(layer);
    places.forEach(([of, head], i) => of === layer && drawThumbnail(buttons[i].firstChild, matrixOf(kind, bytes, head)));
    painted.add(layer);
  }

  const firstOfRow = buttons.filter((_, i) => i % columns.length === 0);
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      oneByOne(() => paint(Number(target.dataset.layer)));
    }
  });
  firstOfRow.forEach((button) => watcher.observe(button));
  darkness.addEventListener("change", () => painted.forEach(paint));

  walkWithArrows(buttons, columns.length, 0);
  mark(null, null);
  const names = ["", "mean", ...columns.slice(1)].map((name) => html("span", { class: "quiet" }, String(name)));
  const rows = [...Array(kind.layers).keys()].flatMap((layer) => [
    html("span", { class: "quiet" }, String(layer)),
    ...buttons.slice(layer * columns.length, (layer + 1) * columns.length),
  ]);
  const label = `${kind.kind}: layers and heads`;
  const element = html("div", { class: "heads", role: "radiogroup", "aria-label": label }, ...names, ...rows);
  element.style.setProperty("--columns", columns.length);
  return { element, mark };
}

let queue = Promise.resolve();

// Work that waits for a frame between one piece and the next, so that the page can always answer.
function oneByOne(work) {
  queue = queue.then(() => new Promise(requestAnimationFrame)).then(work);
}

// One tab stop for many buttons; arrows walk among them as they lie, in lines of so many columns.
function walkWithArrows(buttons, columns, start) {
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
  buttons.forEach((button, i) => {
    button.tabIndex = i === start ? 0 : -1;
    button.addEventListener("focus", () => buttons.forEach((other) => (other.tabIndex = other === button ? 0 : -1)));
    button.addEventListener("keydown", (event) => {
      const next = buttons[i + steps[event.key]];
      if (!next) return;
      event.preventDefault();
      next.focus();
    });
  });
}
