// Vectors and matrices as strips of cells with their numbers: blue above zero, amber below.

import { svg } from "../shell.js";

const [CELL, NAMES, LETTER] = [26, 164, 8];
const WITH_NUMBERS = 16; // columns: with more, cells are narrow and numbers appear on hover
const LONGEST = 36;
// Shares of the darkest colour above which white on it is not legible on a dark page (contrast below 4.5), and above
// which black on blue is not on a light one. Black is legible on any amber of a light page.
const [AMBER, BLUE, DEEP_BLUE] = [0.56, 0.588, 0.774];
const ROBUST = 0.97; // share of the numbers below the darkest colour: a few outliers do not wash out the others

export function short(value) {
  if (value === null) return "−∞";
  return value.toFixed(Math.abs(value) >= 100 ? 0 : 2).replace(/^-(0\.00)$/, "$1");
}

// rows: [{ name, values, marked }], all of one length. `columns`: their names, if any. `robust`: outliers do not
// stretch the colour scale.
export function strips(rows, label, { columns = [], choose = null, chosen = null, largest = null, robust = false } = {}) {
  const length = Math.max(...rows.map(({ values }) => values.length));
  const wide = length <= WITH_NUMBERS ? 46 : Math.max(5, Math.min(20, Math.floor(900 / length)));
  const sizes = rows.flatMap(({ values }) => values.filter((one) => one !== null).map(Math.abs)).sort((a, b) => a - b);
  const most = largest ?? Math.max(1e-9, sizes[robust ? Math.floor(ROBUST * (sizes.length - 1)) : sizes.length - 1] ?? 0);
  const top = columns.length ? 16 + Math.max(...columns.map((name) => nameOf(name).length)) * 6 : 4;
  const names = Math.max(NAMES, 16 + LETTER * Math.max(...rows.map(({ name }) => nameOf(name).length)));
  const [width, height] = [names + length * wide + 60, top + rows.length * CELL + 4];
  const heads = columns.map((name, i) =>
    svg(
      "text",
      { transform: `translate(${names + (i + 0.5) * wide + 3} ${top - 6}) rotate(-45)`, class: "small" },
      nameOf(name),
    ),
  );
  const bands = rows.map(({ name, values, marked }, row) => {
    const y = top + row * CELL;
    const cells = values.map((value, i) => {
      const x = names + i * wide;
      const ink =
        value === null
          ? { class: "strip none" }
          : {
              class: value < 0 ? "strip below" : "strip above",
              "fill-opacity": Math.min(1, Math.abs(value) / most).toFixed(3),
            };
      const title = svg(
        "title",
        {},
        `${name}${columns[i] === undefined ? `[${i}]` : `, ${columns[i]}`}: ${value ?? "masked"}`,
      );
      const number =
        wide >= 40
          ? [svg("text", { x: x + wide / 2, y: y + CELL / 2, "text-anchor": "middle", class: `number-in${shadeOf(value, most)}` }, short(value))]
          : [];
      return svg("g", {}, svg("rect", { x, y: y + 1, width: wide - 1, height: CELL - 2, ...ink }, title), ...number);
    });
    const text = svg(
      "text",
      { x: names - 8, y: y + CELL / 2, "text-anchor": "end", class: `row-word${marked ? " chosen" : ""}` },
      nameOf(name),
    );
    const group = svg(
      "g",
      choose ? { "data-row": row, class: "choosable" } : {},
      svg("rect", { x: 0, y, width: names, height: CELL, class: "reach" }),
      text,
      ...cells,
    );
    if (choose) group.addEventListener("click", () => choose(row));
    return group;
  });
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    ...heads,
    ...bands,
  );
  if (chosen !== null) bands[chosen]?.classList.add("is-chosen");
  return drawing;
}

function shadeOf(value, most) {
  const share = Math.abs(value ?? 0) / most;
  if (share < (value < 0 ? AMBER : BLUE)) return "";
  return value < 0 || share < DEEP_BLUE ? " on-middle" : " on-deep";
}

function nameOf(name) {
  const letters = [...String(name)];
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : String(name);
}
