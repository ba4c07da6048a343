// Pictures of one attention matrix: heat map, lines, thumbnail, table. They return elements and keep no state.
// Colours and highlighting are in page.css; a part that belongs to one target word carries data-row.

import { isGold, percent } from "./weights.js";

const SVG = "http://www.w3.org/2000/svg";
const FONT = "bold 14px system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif"; // a chosen word turns bold: leave room
const RING = 2.5; // stroke of a gold link
const LONGEST_LABEL = 18;
const FAINTEST = 0.015; // a line below this cannot be seen
const ruler = document.createElement("canvas").getContext("2d");

export function html(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, name), attributes, children);
}

// Strings become text nodes, so no word can become markup.
function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function widthOf(text) {
  ruler.font = FONT;
  return ruler.measureText(text).width;
}

function shorten(word) {
  const letters = [...word];
  return letters.length <= LONGEST_LABEL ? word : `${letters.slice(0, LONGEST_LABEL - 1).join("")}…`;
}

function canvasOf(width, height, label, ...children) {
  const [w, h] = [Math.ceil(width), Math.ceil(height)];
  return svg("svg", { viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: "img", "aria-label": label }, ...children);
}

// Cells shrink from comfortable to still readable as sentences grow; then the figure scrolls.
export function heatMap(picture, matrix, label) {
  const [rows, columns] = [picture.target.length, picture.source.length];
  const cell = Math.max(20, Math.min(42, Math.floor(600 / columns)));
  const source = picture.source.map(shorten);
  const target = picture.target.map(shorten);
  const left = Math.max(...target.map(widthOf)) + 14;
  const top = Math.max(...source.map(widthOf)) * Math.SQRT1_2 + 22;
  const lean = Math.max(...source.map((word, i) => widthOf(word) * Math.SQRT1_2 - (columns - i - 1) * cell));

  const words = source.map((word, i) => {
    const place = `translate(${left + (i + 0.6) * cell} ${top - 10}) rotate(-45)`;
    return svg("text", { transform: place, "data-column": i }, word);
  });
  const bands = matrix.map((weights, row) => {
    const y = top + row * cell;
    const name = svg("text", { x: left - 12, y: y + cell / 2, "text-anchor": "end", class: "row-word" }, target[row]);
    const cells = [...weights].map((weight, i) => {
      const what = `${picture.target[row]} looks at ${picture.source[i]}: ${percent(weight)}`;
      const place = { x: left + i * cell, y, width: cell, height: cell };
      return svg("rect", { class: "cell", ...place, "fill-opacity": weight.toFixed(3) }, svg("title", {}, what));
    });
    const reach = svg("rect", { class: "reach", x: 0, y, width: left, height: cell });
    return svg("g", { "data-row": row }, reach, name, ...cells);
  });
  const rings = picture.gold.map(([i, row]) => {
    const [x, y, side] = [left + i * cell + RING / 2, top + row * cell + RING / 2, cell - RING];
    return svg("rect", { class: "gold", x, y, width: side, height: side, rx: 2.5, "stroke-width": RING, "data-row": row });
  });
  return canvasOf(left + columns * cell + Math.max(lean, 1), top + rows * cell + 1, label, ...words, ...bands, ...rings);
}

// Source words above, target words below, a curve for each pair as opaque as its weight.
export function lineView(picture, matrix, label) {
  const source = picture.source.map(shorten);
  const target = picture.target.map(shorten);
  const width = Math.max(lineWidth(source), lineWidth(target), 740);
  const [above, below, height] = [34, 306, 340];
  const from = spread(source, width);
  const to = spread(target, width);
  const middle = (above + below) / 2;
  const curve = (i, row) => `M${to[row]} ${below}C${to[row]} ${middle} ${from[i]} ${middle} ${from[i]} ${above}`;

  const gold = picture.gold.map(([i, row]) => svg("path", { class: "gold-line", d: curve(i, row), "data-row": row }));
  const curves = matrix.flatMap((weights, row) =>
    [...weights].flatMap((weight, i) => {
      if (weight < FAINTEST) return [];
      const thickness = (1 + 3 * weight).toFixed(2);
      const ink = { "stroke-opacity": weight.toFixed(3), "stroke-width": thickness, "data-row": row };
      const what = `${picture.target[row]} looks at ${picture.source[i]}: ${percent(weight)}`;
      return [svg("path", { class: "line", d: curve(i, row), ...ink }, svg("title", {}, what))];
    }),
  );
  const centred = { "text-anchor": "middle" };
  const words = source.map((word, i) => svg("text", { x: from[i], y: above - 14, ...centred, "data-column": i }, word));
  const answers = target.map((word, row) =>
    svg("g", { "data-row": row }, svg("text", { x: to[row], y: below + 22, ...centred, class: "row-word" }, word)),
  );
  return canvasOf(width, height, label, ...gold, ...curves, ...words, ...answers);
}

const BETWEEN_WORDS = 14;

function lineWidth(words) {
  return words.reduce((sum, word) => sum + widthOf(word) + BETWEEN_WORDS, 0);
}

// The centres of words set over the whole width with equal gaps.
function spread(words, width) {
  const gap = BETWEEN_WORDS + (width - lineWidth(words)) / words.length;
  let edge = gap / 2;
  return words.map((word) => {
    const centre = edge + widthOf(word) / 2;
    edge += widthOf(word) + gap;
    return centre;
  });
}

// The canvas takes its ink from its own CSS colour, so call again when the colour scheme changes.
export function drawThumbnail(canvas, matrix) {
  const [rows, columns] = [matrix.length, matrix[0].length];
  const dot = Math.max(2, Math.floor(144 / Math.max(rows, columns)));
  [canvas.width, canvas.height] = [columns * dot, rows * dot];
  const ink = canvas.getContext("2d");
  ink.fillStyle = getComputedStyle(canvas).color;
  matrix.forEach((weights, row) =>
    weights.forEach((weight, i) => {
      ink.globalAlpha = weight;
      ink.fillRect(i * dot, row * dot, dot, dot);
    }),
  );
}

export function weightTable(picture, matrix, label) {
  const head = html("tr", {}, html("td"), ...picture.source.map((word) => html("th", { scope: "col" }, word)));
  const body = matrix.map((weights, row) => {
    const cells = [...weights].map((weight, i) => {
      const gold = isGold(picture, i, row);
      return html("td", gold ? { class: "gold-cell" } : {}, gold ? `${percent(weight)} gold` : percent(weight));
    });
    return html("tr", {}, html("th", { scope: "row" }, picture.target[row]), ...cells);
  });
  return html("table", {}, html("caption", {}, label), html("thead", {}, head), html("tbody", {}, ...body));
}
