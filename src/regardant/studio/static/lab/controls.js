// Controls of a bench: sliders, fields, tables and plates. They return elements; the bench keeps the state.

import { choice } from "../pictures/view.js";
import { html, saveButton } from "../shell.js";

export { choice, html };

let controls = 0;
const NOTCHES = 1000; // steps of a logarithmic slider

// A slider and a field for the exact number. `changed` is called with every number between least and most.
export function slider(label, value, { least, most, step = 0.01, log = false }, changed) {
  const id = `control-${controls++}`;
  const bounds = log ? { min: 0, max: NOTCHES, step: 1 } : { min: least, max: most, step };
  const bar = html("input", { type: "range", id, ...bounds });
  const field = html("input", { type: "number", min: least, max: most, step: "any", "aria-label": `${label}, number` });
  const rounded = (number) => Number((Math.round(number / step) * step).toPrecision(12));
  const ofBar = () => (log ? rounded(least * (most / least) ** (bar.value / NOTCHES)) : Number(bar.value));
  const place = (number) => (log ? (NOTCHES * Math.log(number / least)) / Math.log(most / least) : number);

  function set(number) {
    bar.value = place(number);
    bar.setAttribute("aria-valuetext", number);
    field.value = number;
  }

  bar.addEventListener("input", () => {
    const number = Math.min(most, Math.max(least, ofBar()));
    field.value = number;
    bar.setAttribute("aria-valuetext", number);
    changed(number);
  });
  field.addEventListener("input", () => {
    const number = Number(field.value);
    if (field.value === "" || !(number >= least && number <= most)) return;
    bar.value = place(number);
    changed(number);
  });
  field.addEventListener("change", () => {
    const number = Math.min(most, Math.max(least, Number(field.value)));
    set(number);
    changed(number);
  });
  set(value);
  return { element: html("div", { class: "slider" }, html("label", { for: id }, label), bar, field), set };
}

// Selects an option of a choice.
export function pick(group, options, chosen) {
  group.querySelectorAll("input").forEach((input, i) => (input.checked = options[i] === chosen));
}

export function toggle(label, value, changed) {
  const box = html("input", { type: "checkbox", ...(value ? { checked: "" } : {}) });
  box.addEventListener("change", () => changed(box.checked));
  return html("label", { class: "toggle" }, box, label);
}

export function button(label, pressed) {
  const element = html("button", { type: "button", class: "save" }, label);
  element.addEventListener("click", pressed);
  return element;
}

// A text field of one line, or of several if rows is above 1.
export function textField(label, value, rows, changed) {
  const field =
    rows > 1 ? html("textarea", { rows, spellcheck: "false" }) : html("input", { type: "text", spellcheck: "false" });
  field.value = value;
  field.addEventListener("input", () => changed(field.value));
  return html("label", { class: "text" }, label, field);
}

export const group = (title, ...children) => html("fieldset", {}, html("legend", {}, title), ...children);
export const row = (...children) => html("div", { class: "bar" }, ...children);
export const note = (...children) => html("p", { class: "note" }, ...children);

// head: column names; rows: a name and its cells. A cell may be a number as text or an element.
export function dataTable(caption, head, rows, kind = "") {
  const line = (tag, cells) => cells.map((cell) => html(tag, tag === "th" ? { scope: "col" } : {}, cell));
  const body = rows.map(([name, ...cells]) => html("tr", {}, html("th", { scope: "row" }, name), ...line("td", cells)));
  return html(
    "table",
    { class: kind },
    html("caption", {}, caption),
    html("thead", {}, html("tr", {}, ...line("th", head))),
    html("tbody", {}, ...body),
  );
}

// rows: a name and its numbers.
export const numberTable = (caption, head, rows, digits = 4) =>
  dataTable(
    caption,
    head,
    rows.map(([name, ...numbers]) => [name, ...numbers.map((number) => number.toFixed(digits))]),
  );

// A titled picture with a button that saves it and a table of its numbers, for readers who cannot see it.
export function plate() {
  const title = html("h3");
  const figure = html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" });
  const table = html("details", { class: "table" }, html("summary", {}, "As a table"));
  const save = saveButton(
    () => figure.firstElementChild,
    () => title.textContent,
  );
  let numbers = null;

  function fill() {
    table.querySelector("div")?.remove();
    if (table.open && numbers)
      table.append(
        html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" }, numbers()),
      );
  }

  table.addEventListener("toggle", fill);
  const element = html("div", { class: "plate" }, html("div", { class: "bar" }, title, save), figure, table);

  // makeTable: a function that returns the table; called when the table is opened.
  function show(name, drawing, makeTable) {
    title.textContent = name;
    figure.replaceChildren(drawing);
    numbers = makeTable;
    fill();
  }
  return { element, show };
}
