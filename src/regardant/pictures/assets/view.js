// One item and its attention. The state says what is shown: the kind of attention, the layer and head, the form of the
// picture, pieces or words, and the element whose attention is shown.

import { WIDEST, drawThumbnail, gridView, heatMap, html, lineView, roomFor, weightTable } from "./drawing.js";
import { saveDrawing } from "./save.js";
import { MEAN, besideGrid, matrixOf, percent, rowOf, sceneOf, strongest } from "./weights.js";

export const FORMS = { Grid: gridView, "Heat map": heatMap, Lines: lineView };
export const UNITS = ["Words", "Pieces"];
// The forms in which a kind can be drawn, the default first.
const formsOf = (kind) => Object.keys(FORMS).filter((form) => form !== "Grid" || kind.sourceLayout);
// The row that is shown first: that of a class token, which is beside the grid of the other elements. Null: no row.
const firstRow = (kind) => (kind.targetLayout && besideGrid(kind.target, kind.targetLayout) ? 0 : null);
const darkness = matchMedia("(prefers-color-scheme: dark)");

// `changed` is called with the state whenever the reader has changed it. A page that names the item leaves out its title.
export function attentionView(sentence, state, changed, { titled = true } = {}) {
  const keys = html("p", { class: "sentence", dir: "auto" });
  const queries = html("div", { class: "sentence", dir: "auto", role: "group", "aria-label": "Query words" });
  const figure = html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" });
  const caption = html("h3");
  const gold = html("span", {}, html("span", { class: "mark", "aria-hidden": "true" }), "gold link");
  const readout = html("div", { class: "readout", "aria-live": "polite" });
  const table = html("details", { class: "table" }, html("summary", {}, "As a table"));
  let scene = null; // the current drawing data; null until the layer is decoded
  let asked = 0;
  let queryButtons = []; // of the rows of the scene
  let drawnRow = null; // of the grid
  let drawnRoom = null; // pixels the page had for the picture

  async function show() {
    const mine = ++asked;
    const kind = sentence.kinds[state.kind];
    const found = await sceneOf(kind, state.layer, state.head, kind.hasUnits && state.unit === "Words");
    if (mine !== asked) return; // another choice was made meanwhile
    scene = found;
    if (state.word >= scene.target.length) state.word = null;
    writeWords();
    caption.textContent = `${kind.kind}, ${nameOf(state.layer, state.head)}`;
    draw(state.word);
    gold.hidden = !scene.gold.length;
    units.hidden = !kind.hasUnits;
    offerForms();
    fillTable();
    look(state.word);
  }

  const formNow = () => {
    const forms = formsOf(sentence.kinds[state.kind]);
    return forms.includes(state.form) ? state.form : forms[0];
  };

  function draw(row) {
    [drawnRow, drawnRoom] = [row, roomFor(WIDEST)];
    figure.replaceChildren(FORMS[formNow()](scene, `${caption.textContent}: ${sentence.title}`, row));
    for (const part of figure.querySelectorAll("[data-row]")) {
      const row = Number(part.dataset.row);
      part.addEventListener("pointerenter", () => look(row));
      part.addEventListener("click", () => stay(row));
    }
  }

  function fit() {
    if (!scene || drawnRoom === roomFor(WIDEST)) return;
    draw(state.word);
    look(state.word);
  }

  function offerForms() {
    const offered = formsOf(sentence.kinds[state.kind]);
    [...forms.children].forEach((label, i) => {
      label.hidden = !offered.includes(Object.keys(FORMS)[i]);
      label.querySelector("input").checked = Object.keys(FORMS)[i] === formNow();
    });
  }

  function writeWords() {
    const drawn = sentence.kinds[state.kind].targetLayout;
    const layout = drawn?.places.length ? null : drawn; // nodes of a graph are words here
    const beside = layout ? besideGrid(scene.target, layout) : scene.target.length;
    const buttons = scene.target.map((word, row) => {
      const onGrid = row >= beside;
      const button = html("button", { type: "button", class: onGrid ? "element" : "word", ...(onGrid ? { "aria-label": word } : {}) });
      if (!onGrid || !layout.picture) button.append(visible(word));
      button.addEventListener("pointerenter", () => look(row));
      button.addEventListener("pointerleave", () => look(state.word));
      button.addEventListener("focus", () => stay(row));
      button.addEventListener("click", () => stay(row));
      return button;
    });
    keys.hidden = Boolean(scene.layout);
    keys.replaceChildren(...spaced(scene.source.map((word) => html("span", { class: "word" }, word))));
    queries.setAttribute("aria-label", layout ? "Query elements" : "Query words");
    const grid = layout ? [itemGrid(layout, sentence.title, buttons.slice(beside))] : [];
    queries.replaceChildren(...spaced(buttons.slice(0, beside)), ...grid);
    walkWithArrows(buttons, layout ? layout.columns : buttons.length, state.word ?? 0);
    queryButtons = buttons;
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
    if (formNow() === "Grid" && row !== drawnRow) draw(row);
    queryButtons.forEach((word, i) => {
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
    const answer = weights || scene.layout ? answerOf(scene, row) : [];
    readout.replaceChildren(...answer, ...(weights ? [] : [invitation(sentence.kinds[state.kind])]));
    stage.classList.toggle("is-grid", formNow() === "Grid");
    readout.classList.toggle("is-grid", Boolean(scene.layout));
    most.textContent = formNow() === "Grid" ? percent(Math.max(...rowOf(scene, row))) : "100%";
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

  state.word ??= firstRow(sentence.kinds[state.kind]);
  const grids = sentence.kinds.map((kind, index) =>
    headGrid(kind, (layer, head) => {
      grids.forEach((grid, i) => grid.mark(...(i === index ? [layer, head] : [null, null])));
      set({ kind: index, layer, head, word: index === state.kind ? state.word : firstRow(kind) });
    }),
  );
  grids[state.kind].mark(state.layer, state.head);
  const forms = choice("Form", Object.keys(FORMS), formNow(), (form) => set({ form }));
  const units = choice("Rows and columns", UNITS, state.unit, (unit) => set({ unit, word: null }));
  const save = html("button", { type: "button", class: "save" }, "Save this picture");
  save.addEventListener("click", () => scene && saveDrawing(figure.firstChild, caption.textContent));
  figure.addEventListener("pointerleave", () => look(state.word));
  table.addEventListener("toggle", fillTable);
  whileOnPage(figure, darkness, "change", show);
  whileOnPage(figure, window, "resize", fit);

  const pair = html("div", { class: "pair" }, keys, queries);
  pair.addEventListener("keydown", (event) => event.key === "Escape" && stay(null));
  const note = sentence.note ? [html("p", { class: "note" }, sentence.note)] : [];
  const bar = html("div", { class: "bar" }, caption, units, forms, save);
  const most = html("span", {}, "100%");
  const stage = html("div", { class: "stage" }, bar, figure, legend(most, gold), table);
  const side = html("aside", {}, readout, ...grids.flatMap((grid, i) => [html("h3", {}, sentence.kinds[i].kind), grid.element]));
  show();
  const heading = titled ? [html("h2", {}, sentence.title)] : [];
  return html("section", {}, ...heading, pair, ...note, html("div", { class: "columns" }, stage, side));
}

// React to the events of a target until an element has left the page, so that a page that replaces a view keeps none of it.
function whileOnPage(element, target, name, react) {
  const listen = () => (element.isConnected ? react() : target.removeEventListener(name, listen));
  target.addEventListener(name, listen);
}

// Displayed layers and heads count from 1, those of the state and the URL from 0.
export function nameOf(layer, head) {
  return `layer ${layer + 1}, ${head === MEAN ? "mean of heads" : `head ${head + 1}`}`;
}

const BLANK = { " ": "␣", "\t": "⇥", "\n": "⏎" };

// White space as visible signs, which can be clicked.
function visible(word) {
  return word.trim() ? word : [...word].map((letter) => BLANK[letter] ?? "␣").join("");
}

function spaced(elements) {
  return elements.flatMap((element) => [element, " "]);
}

function invitation(kind) {
  const what = kind.targetLayout ? "an element of the item above" : "a word of the second line";
  return html("p", { class: "quiet" }, `Point at ${what}, or move with the arrow keys, to see its attention.`);
}

// The list of the largest weights of a row, or of the mean of all rows.
function answerOf(scene, row) {
  const weights = rowOf(scene, row);
  const items = strongest(weights, 5).map((i) => {
    const bar = html("span", { class: "bar-of" });
    bar.style.setProperty("--weight", weights[i]);
    const name = html("span", { class: scene.isGold(i, row) ? "gold-word" : "" }, scene.source[i]);
    return html("li", {}, name, bar, html("span", { class: "number" }, percent(weights[i])));
  });
  const [name, verb] = row === null ? ["The mean of all rows", "is on"] : [scene.target[row], "looks at"];
  return [html("p", {}, html("b", {}, name), ` ${verb}${items.length ? "" : " nothing"}`), html("ol", {}, ...items)];
}

// Buttons on the grid of an item, over its picture if it has one.
function itemGrid(layout, title, buttons) {
  const picture = layout.picture ? [html("img", { src: layout.picture, alt: title })] : [];
  const element = html("div", { class: "item-grid" }, ...picture, ...buttons);
  element.style.setProperty("--columns", layout.columns);
  element.style.setProperty("--shape", `${layout.columns} / ${layout.rows * layout.aspect}`);
  return element;
}

function legend(most, gold) {
  const ramp = html("span", { class: "ramp", "aria-hidden": "true" });
  return html("p", { class: "legend" }, html("span", {}, "0%", ramp, most), gold);
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

// Thumbnails of the mean and of each head, one row per layer, decoded and painted when the row is first visible. Arrow
// keys choose as they move, as in radio buttons.
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
  walkWithArrows(buttons, columns.length, 0);
  mark(null, null);
  const names = ["", "mean", ...columns.slice(1).map((head) => head + 1)].map((name) => html("span", { class: "quiet" }, String(name)));
  const rows = [...Array(kind.layers).keys()].flatMap((layer) => [
    html("span", { class: "quiet" }, String(layer + 1)),
    ...buttons.slice(layer * columns.length, (layer + 1) * columns.length),
  ]);
  const label = `${kind.kind}: layers and heads`;
  const element = html("div", { class: "heads", role: "radiogroup", "aria-label": label }, ...names, ...rows);
  element.style.setProperty("--columns", columns.length);
  whileOnPage(element, darkness, "change", () => painted.forEach(paint));
  return { element, mark };
}

let queue = Promise.resolve();

// A queue of work that waits for a frame before each piece, so that the page stays responsive.
function oneByOne(work) {
  queue = queue.then(() => new Promise(requestAnimationFrame)).then(work);
}

// One tab stop for many buttons; arrow keys move between them in a grid of `columns` columns.
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
