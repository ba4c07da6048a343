// One sentence pair to look around in. Its state is the layer and head shown, the form, and the target word looked from.

import { drawThumbnail, heatMap, html, lineView, weightTable } from "./drawing.js";
import { MEAN, isGold, matrixOf, percent, strongest } from "./weights.js";

const FORMS = { "Heat map": heatMap, Lines: lineView };
const darkness = matchMedia("(prefers-color-scheme: dark)");

export function attentionView(picture) {
  let [layer, head] = picture.chosen;
  let draw = heatMap;
  let matrix = matrixOf(picture, layer, head);

  const source = picture.source.map((word) => html("span", { class: "word" }, word));
  const target = picture.target.map((word) => html("button", { type: "button", class: "word" }, word));
  const answer = html("p", { class: "sentence", dir: "auto", role: "group", "aria-label": "Translation" }, ...spaced(target));
  const figure = html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" });
  const caption = html("h3");
  const readout = html("div", { class: "readout", "aria-live": "polite" });
  const table = html("details", { class: "table" }, html("summary", {}, "As a table"));

  function look(row) {
    target.forEach((word, i) => word.classList.toggle("is-row", i === row));
    source.forEach((word, i) => word.style.setProperty("--weight", row === null ? 0 : matrix[row][i]));
    figure.classList.toggle("has-row", row !== null);
    for (const part of figure.querySelectorAll("[data-row]")) {
      part.classList.toggle("is-row", Number(part.dataset.row) === row);
    }
    for (const word of figure.querySelectorAll("[data-column]")) {
      word.classList.toggle("is-seen", row !== null && matrix[row][word.dataset.column] >= 0.1);
    }
    readout.replaceChildren(...(row === null ? [invitation()] : answerOf(picture, matrix, row)));
  }

  function focusedRow() {
    const row = target.indexOf(document.activeElement);
    return row === -1 ? null : row;
  }

  function redraw() {
    const label = nameOf(layer, head);
    caption.textContent = label;
    figure.replaceChildren(draw(picture, matrix, `${label}: ${picture.title}`));
    for (const part of figure.querySelectorAll("[data-row]")) {
      const row = Number(part.dataset.row);
      part.addEventListener("pointerenter", () => look(row));
      part.addEventListener("click", () => target[row].focus({ preventScroll: true })); // stays when the pointer goes
    }
    fillTable();
    look(focusedRow());
  }

  function fillTable() {
    table.querySelector("div")?.remove();
    if (table.open) {
      const content = weightTable(picture, matrix, `${nameOf(layer, head)}, percent of each row`);
      table.append(html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" }, content));
    }
  }

  target.forEach((word, row) => {
    word.addEventListener("pointerenter", () => look(row));
    word.addEventListener("pointerleave", () => look(focusedRow()));
    word.addEventListener("focus", () => look(row));
    word.addEventListener("blur", () => look(null));
  });
  figure.addEventListener("pointerleave", () => look(focusedRow()));
  table.addEventListener("toggle", fillTable);
  walkWithArrows(target, target.length, 0);

  const heads = headGrid(picture, (newLayer, newHead) => {
    [layer, head] = [newLayer, newHead];
    matrix = matrixOf(picture, layer, head);
    redraw();
  });
  const forms = choice("Form", Object.keys(FORMS), (name) => {
    draw = FORMS[name];
    redraw();
  });
  redraw();

  const pair = html("div", { class: "pair" }, html("p", { class: "sentence", dir: "auto" }, ...spaced(source)), answer);
  const note = picture.note ? [html("p", { class: "note" }, picture.note)] : [];
  const stage = html("div", { class: "stage" }, html("div", { class: "bar" }, caption, forms), figure, legend(picture), table);
  const side = html("aside", {}, readout, html("h3", {}, "Layers and heads"), heads);
  return html("section", {}, html("h2", {}, picture.title), pair, ...note, html("div", { class: "columns" }, stage, side));
}

export function nameOf(layer, head) {
  return `Layer ${layer}, ${head === MEAN ? "mean of heads" : `head ${head}`}`;
}

function spaced(elements) {
  return elements.flatMap((element) => [element, " "]);
}

function invitation() {
  return html("p", { class: "quiet" }, "Point at a word of the translation, or walk it with the arrow keys, to see where it looks back.");
}

function answerOf(picture, matrix, row) {
  const items = strongest(matrix[row], 5).map((i) => {
    const bar = html("span", { class: "bar-of" });
    bar.style.setProperty("--weight", matrix[row][i]);
    const name = html("span", { class: isGold(picture, i, row) ? "gold-word" : "" }, picture.source[i]);
    return html("li", {}, name, bar, html("span", { class: "number" }, percent(matrix[row][i])));
  });
  return [html("p", {}, html("b", {}, picture.target[row]), ` looks back at${items.length ? "" : " nothing"}`), html("ol", {}, ...items)];
}

function legend(picture) {
  const ramp = html("span", { class: "ramp", "aria-hidden": "true" });
  const scale = html("span", {}, "0%", ramp, "100%");
  const mark = html("span", { class: "mark", "aria-hidden": "true" });
  return html("p", { class: "legend" }, scale, ...(picture.gold.length ? [html("span", {}, mark, "gold link")] : []));
}

let choices = 0;

export function choice(label, names, choose) {
  const group = `choice-${choices++}`;
  const options = names.map((name, i) => {
    const input = html("input", { type: "radio", name: group, ...(i === 0 ? { checked: "" } : {}) });
    input.addEventListener("change", () => choose(name, i));
    return html("label", {}, input, html("span", {}, name));
  });
  return html("div", { class: "choice", role: "radiogroup", "aria-label": label }, ...options);
}

// A thumbnail for the mean and for each head, a row a layer. Arrow keys choose as they move, as radio buttons do.
function headGrid(picture, choose) {
  const columns = [MEAN, ...Array(picture.heads).keys()];
  const places = [...Array(picture.layers).keys()].flatMap((layer) => columns.map((head) => [layer, head]));
  const buttons = places.map(([layer, head]) => {
    const thumbnail = html("canvas");
    const button = html("button", { type: "button", role: "radio", "aria-label": nameOf(layer, head) }, thumbnail);
    button.addEventListener("click", () => pick(layer, head));
    button.addEventListener("focus", () => pick(layer, head));
    return button;
  });
  let picked = null;

  function mark(layer, head) {
    picked = `${layer} ${head}`;
    buttons.forEach((button, i) => button.setAttribute("aria-checked", places[i].join(" ") === picked));
  }

  function pick(layer, head) {
    if (picked === `${layer} ${head}`) return;
    mark(layer, head);
    choose(layer, head);
  }

  const paint = () =>
    places.forEach((place, i) => drawThumbnail(buttons[i].firstChild, matrixOf(picture, ...place)));
  requestAnimationFrame(paint); // once in the page, where its colour is known
  darkness.addEventListener("change", paint);

  mark(...picture.chosen);
  walkWithArrows(buttons, columns.length, places.findIndex((place) => place.join(" ") === picked));
  const names = ["", "mean", ...columns.slice(1)].map((name) => html("span", { class: "quiet" }, String(name)));
  const rows = [...Array(picture.layers).keys()].flatMap((layer) => [
    html("span", { class: "quiet" }, String(layer)),
    ...buttons.slice(layer * columns.length, (layer + 1) * columns.length),
  ]);
  const grid = html("div", { class: "heads", role: "radiogroup", "aria-label": "Layers and heads" }, ...names, ...rows);
  grid.style.setProperty("--columns", columns.length);
  return grid;
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
