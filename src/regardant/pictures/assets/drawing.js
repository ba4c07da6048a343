// Pictures of one head: heat map, lines, shades over an item, thumbnail, table. They return elements and keep no state.
// Colours and highlighting are in page.css; a part that belongs to one row carries data-row.

import { besideGrid, percent, pooled, rowOf, strongest } from "./weights.js";

const SVG = "http://www.w3.org/2000/svg";
const FONT = "bold 14px system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif"; // a chosen word turns bold
const RING = 2.5; // stroke of a gold link
const LONGEST_LABEL = 18;
const LEAST_LABEL = 6; // smallest cell with a legible word, in pixels
const FAINTEST = 0.015; // opacity below which a line is invisible
const MOST_CELLS = 4096; // drawn one by one; larger maps are painted as pixels
const MOST_TABLE_CELLS = 10000; // in full; larger tables have the strongest of each row
const STRONGEST = 5;
const MARGINS = 40; // pixels beside the content of a page on a phone
const LEAST_ROOM = 120; // pixels: the page may have no width yet, in a hidden frame or a window that opens
const THUMBNAIL = 64; // rows and columns at most
export const WIDEST = 740; // pixels: width of a drawing on a page that has the room
const ruler = document.createElement("canvas").getContext("2d");

export function html(name, attributes = {}, ...children) {
  return furnish(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
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

const largest = (numbers) => numbers.reduce((most, number) => Math.max(most, number), 1);
const widest = (words) => largest(words.map(widthOf));

function shorten(word) {
  const letters = [...word];
  return letters.length <= LONGEST_LABEL ? word : `${letters.slice(0, LONGEST_LABEL - 1).join("")}…`;
}

function canvasOf(width, height, label, ...children) {
  const [w, h] = [Math.ceil(width), Math.ceil(height)];
  return svg("svg", { viewBox: `0 0 ${w} ${h}`, width: w, height: h, role: "img", "aria-label": label }, ...children);
}

// The width of a drawing, at most `pixels`, that the page has room for beside `others` pixels.
export function roomFor(pixels, others = 0) {
  return Math.min(pixels, Math.max(LEAST_ROOM, document.documentElement.clientWidth - MARGINS - others));
}

function isLarge(scene) {
  return scene.source.length * scene.target.length > MOST_CELLS;
}

// Cells shrink from comfortable to still readable as sentences grow, then the figure scrolls; large maps shrink to pixels.
export function heatMap(scene, label) {
  const [rows, columns] = [scene.target.length, scene.source.length];
  const large = isLarge(scene);
  const beside = widest(scene.target.map(shorten)) + widthOf(shorten(scene.source.at(-1) ?? "")) * Math.SQRT1_2 + 20;
  const cell = large
    ? Math.max(2, Math.min(20, Math.floor(1000 / Math.max(rows, columns))))
    : Math.max(12, Math.min(42, Math.floor(roomFor(640, beside) / columns), Math.floor(600 / rows)));
  const size = Math.min(14, cell); // of the words
  const written = cell < LEAST_LABEL ? () => "" : shorten;
  const source = scene.source.map(written);
  const target = scene.target.map(written);
  const slanted = source.map((word) => (widthOf(word) * size * Math.SQRT1_2) / 14);
  const left = (widest(target) * size) / 14 + 14;
  const top = largest(slanted) + 22;
  const lean = largest(slanted.map((width, i) => width - (columns - i - 1) * cell));

  const words = source.map((word, i) => {
    const place = `translate(${left + (i + 0.6) * cell} ${top - 10}) rotate(-45)`;
    return sized(svg("text", { transform: place, "data-column": i }, word), size);
  });
  const bands = scene.matrix.map((weights, row) => {
    const y = top + row * cell;
    const name = svg("text", { x: left - 12, y: y + cell / 2, "text-anchor": "end", class: "row-word" }, target[row]);
    const reach = large
      ? svg("rect", { class: "reach band", x: 0, y, width: left + columns * cell, height: cell })
      : svg("rect", { class: "reach", x: 0, y, width: left, height: cell });
    const cells = large ? [] : [...weights].map((weight, i) => cellOf(scene, row, i, weight, left + i * cell, y, cell));
    return svg("g", { "data-row": row }, reach, sized(name, size), ...cells);
  });
  const rings = scene.gold.map(([i, row]) => {
    const [x, y, side] = [left + i * cell + RING / 2, top + row * cell + RING / 2, cell - RING];
    return svg("rect", { class: "gold", x, y, width: side, height: side, rx: 2.5, "stroke-width": RING, "data-row": row });
  });
  const image = large ? [pixels(scene.matrix, left, top, cell)] : [];
  return canvasOf(left + columns * cell + lean, top + rows * cell + 1, label, ...words, ...image, ...bands, ...rings);
}

function cellOf(scene, row, i, weight, x, y, cell) {
  const what = `${scene.target[row]} looks at ${scene.source[i]}: ${percent(weight)}`;
  const place = { x, y, width: cell, height: cell };
  return svg("rect", { class: "cell", ...place, "fill-opacity": weight.toFixed(3) }, svg("title", {}, what));
}

function sized(text, size) {
  if (size < 14) text.style.fontSize = `${size}px`;
  return text;
}

function pixels(matrix, x, y, cell) {
  const canvas = painted(matrix);
  const place = { x, y, width: canvas.width * cell, height: canvas.height * cell, preserveAspectRatio: "none" };
  return svg("image", { ...place, "image-rendering": "pixelated", href: canvas.toDataURL() });
}

// A canvas of one pixel per weight, in the current colour scheme: paint again when the scheme changes.
function painted(matrix) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [matrix[0].length, matrix.length];
  const ink = canvas.getContext("2d");
  const image = ink.createImageData(canvas.width, canvas.height);
  matrix.forEach((weights, row) => {
    weights.forEach((weight, i) => (image.data[4 * (row * canvas.width + i) + 3] = 255 * weight));
  });
  ink.putImageData(image, 0, 0);
  ink.globalCompositeOperation = "source-in";
  ink.fillStyle = resolved("var(--ink)");
  ink.fillRect(0, 0, canvas.width, canvas.height);
  return canvas;
}

export function drawThumbnail(canvas, matrix) {
  const small = painted(pooled(matrix, THUMBNAIL));
  const dot = Math.ceil(THUMBNAIL / Math.max(small.width, small.height)) * 2; // whole pixels, for crisp edges
  [canvas.width, canvas.height] = [small.width * dot, small.height * dot];
  const ink = canvas.getContext("2d");
  ink.imageSmoothingEnabled = false;
  ink.drawImage(small, 0, 0, canvas.width, canvas.height);
}

// The current value of a CSS colour of the page.
export function resolved(colour) {
  const probe = document.body.appendChild(html("span"));
  probe.style.color = colour;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

// Column words above, row words below, and a curve for each pair, as opaque as its weight.
export function lineView(scene, label) {
  const source = scene.source.map(shorten);
  const target = scene.target.map(shorten);
  const width = Math.max(lineWidth(source), lineWidth(target), roomFor(WIDEST));
  const [above, below, height] = [34, 306, 340];
  const from = spread(source, width);
  const to = spread(target, width);
  const middle = (above + below) / 2;
  const curve = (i, row) => `M${to[row]} ${below}C${to[row]} ${middle} ${from[i]} ${middle} ${from[i]} ${above}`;
  const most = isLarge(scene) ? STRONGEST : Infinity;
  const drawn = (weights) => strongest(weights, most).filter((i) => weights[i] >= FAINTEST);

  const gold = scene.gold.map(([i, row]) => svg("path", { class: "gold-line", d: curve(i, row), "data-row": row }));
  const curves = scene.matrix.flatMap((weights, row) =>
    drawn(weights).map((i) => {
      const ink = { "stroke-opacity": weights[i].toFixed(3), "stroke-width": (1 + 3 * weights[i]).toFixed(2), "data-row": row };
      const what = `${scene.target[row]} looks at ${scene.source[i]}: ${percent(weights[i])}`;
      return svg("path", { class: "line", d: curve(i, row), ...ink }, svg("title", {}, what));
    }),
  );
  const centred = { "text-anchor": "middle" };
  const words = source.map((word, i) => svg("text", { x: from[i], y: above - 14, ...centred, "data-column": i }, word));
  const answers = target.map((word, row) =>
    svg("g", { "data-row": row }, svg("text", { x: to[row], y: below + 22, ...centred, class: "row-word" }, word)),
  );
  return canvasOf(width, height, label, ...gold, ...curves, ...words, ...answers);
}

const [GRID, LEAST_SIDE, MOST_SIDE] = [560, 10, 140]; // pixels: width of a grid, least and most of an element
const DARKEST = 0.75; // opacity of the largest weight: the item stays visible below it

// The item on its grid, with shades for one row's weights, or the mean of all rows, relative to the largest weight.
export function gridView(scene, label, row) {
  if (scene.layout.places.length) return graphView(scene, label, row);
  const { rows, columns, picture, aspect } = scene.layout;
  const side = Math.max(LEAST_SIDE, Math.min(MOST_SIDE, Math.floor(roomFor(GRID) / Math.max(rows * aspect, columns))));
  const tall = side * aspect;
  const beside = besideGrid(scene.source, scene.layout);
  const [top, width, height] = [beside ? 34 : 1, columns * side, rows * tall];
  const weights = rowOf(scene, row);
  const most = Math.max(...weights, 1e-9);
  const square = (i, x, y, w, h) => {
    const place = { x, y, width: w, height: h };
    const name = svg("title", {}, `${scene.source[i]}: ${percent(weights[i])}`);
    return svg("rect", { class: "lit", ...place, "fill-opacity": ((DARKEST * weights[i]) / most).toFixed(3), "data-key": i }, name);
  };
  const lone = scene.source.slice(0, beside).flatMap((name, i) => [
    svg("text", { x: 8 + i * MOST_SIDE, y: 14, class: "row-word" }, shorten(name)),
    square(i, 1 + i * MOST_SIDE, 1, MOST_SIDE - 10, 26),
  ]);
  const place = { x: 1, y: top, width, height };
  const image = { ...place, preserveAspectRatio: "none", "image-rendering": "pixelated", href: picture };
  const written = side < 3 * LEAST_LABEL ? () => "" : shorten;
  const content = picture
    ? [svg("image", image)]
    : scene.source.slice(beside).map((name, i) => {
        const [x, y] = [1 + ((i % columns) + 0.5) * side, top + (Math.floor(i / columns) + 0.5) * tall];
        return sized(svg("text", { x, y, "text-anchor": "middle", class: "row-word" }, written(name)), side / 4);
      });
  const down = [...Array(rows + 1).keys()].map((i) => `M1 ${top + i * tall}h${width}`);
  const across = [...Array(columns + 1).keys()].map((i) => `M${1 + i * side} ${top}v${height}`);
  const squares = scene.source
    .slice(beside)
    .map((_, i) => square(beside + i, 1 + (i % columns) * side, top + Math.floor(i / columns) * tall, side, tall));
  const lines = svg("path", { class: "grid-line", d: [...down, ...across].join("") });
  const wide = Math.max(width, beside * MOST_SIDE);
  return canvasOf(wide + 2, top + height + 1, label, ...content, lines, ...squares, ...lone);
}

const [NODE, WIDEST_EDGE] = [9, 7]; // pixels: radius of a node, and width of the line of the largest weight

// The nodes of a graph, with the weights of one row on lines to its keys, or those of all rows on the edges.
function graphView(scene, label, row) {
  const { places, edges } = scene.layout;
  const beside = besideGrid(scene.source, scene.layout);
  const weights = rowOf(scene, row);
  const [least, side] = [beside ? 54 : 20, roomFor(GRID, 120)];
  const at = [
    ...Array.from({ length: beside }, (_, i) => [20 + i * MOST_SIDE, 20]),
    ...places.map(([x, y]) => [20 + x * side, least + y * side]),
  ];
  const both = ([i, j]) => (scene.matrix[i + beside][j + beside] + scene.matrix[j + beside][i + beside]) / 2;
  const weighted =
    row === null
      ? edges.map((edge) => [edge[0] + beside, edge[1] + beside, both(edge)])
      : scene.source.map((_, i) => [row, i, weights[i]]).filter(([, i]) => i !== row);
  const most = Math.max(...weighted.map(([, , weight]) => weight), 1e-9);
  const visible = row === null ? weighted : weighted.filter(([, , weight]) => weight / most >= FAINTEST);
  const line = (i, j) => `M${at[i].map((one) => one.toFixed(1)).join(" ")}L${at[j].map((one) => one.toFixed(1)).join(" ")}`;
  const joined = svg("path", { class: "grid-line", d: edges.map(([i, j]) => line(i + beside, j + beside)).join("") });
  const lines = visible.map(([i, j, weight]) => {
    const ink = { "stroke-opacity": (weight / most).toFixed(3), "stroke-width": ((WIDEST_EDGE * weight) / most).toFixed(2) };
    const what = `${scene.source[i]} and ${scene.source[j]}: ${percent(weight)}`;
    return svg("path", { class: "weight", d: line(i, j), ...ink, "data-edge": `${i} ${j}` }, svg("title", {}, what));
  });
  const greatest = Math.max(...weights, 1e-9);
  const nodes = at.map(([x, y], i) => {
    const shade = ((DARKEST * weights[i]) / greatest).toFixed(3);
    const circle = { cx: x, cy: y, r: NODE };
    const name = svg("title", {}, `${scene.source[i]}: ${percent(weights[i])}`);
    const text = sized(svg("text", { x: x + NODE + 2, y, class: "row-word" }, shorten(scene.source[i])), 12);
    const lit = svg("circle", { class: "lit", ...circle, "fill-opacity": shade, "data-key": i }, name);
    return svg("g", { "data-row": i }, svg("circle", { class: "node", ...circle }), lit, text);
  });
  return canvasOf(side + 120, least + side + 20, label, joined, ...lines, ...nodes);
}

const BETWEEN_WORDS = 14;

function lineWidth(words) {
  return words.reduce((sum, word) => sum + widthOf(word) + BETWEEN_WORDS, 0);
}

// The centres of words spread over the whole width with equal gaps.
function spread(words, width) {
  const gap = BETWEEN_WORDS + (width - lineWidth(words)) / words.length;
  let edge = gap / 2;
  return words.map((word) => {
    const centre = edge + widthOf(word) / 2;
    edge += widthOf(word) + gap;
    return centre;
  });
}

export function weightTable(scene, label) {
  const whole = scene.source.length * scene.target.length <= MOST_TABLE_CELLS;
  const heads = whole ? scene.source : Array.from({ length: STRONGEST }, (_, i) => `${i + 1}.`);
  const head = html("tr", {}, html("td"), ...heads.map((word) => html("th", { scope: "col" }, word)));
  const body = scene.matrix.map((weights, row) => {
    const cells = whole ? [...weights].map((weight, i) => numberCell(scene, row, i, weight)) : strongestCells(scene, weights);
    return html("tr", {}, html("th", { scope: "row" }, scene.target[row]), ...cells);
  });
  const caption = whole ? `${label}, percent of each row` : `${label}, the ${STRONGEST} largest weights of each row`;
  return html("table", {}, html("caption", {}, caption), html("thead", {}, head), html("tbody", {}, ...body));
}

function numberCell(scene, row, i, weight) {
  const gold = scene.isGold(i, row);
  return html("td", gold ? { class: "gold-cell" } : {}, gold ? `${percent(weight)} gold` : percent(weight));
}

function strongestCells(scene, weights) {
  return strongest(weights, STRONGEST).map((i) => html("td", {}, `${scene.source[i]} ${percent(weights[i])}`));
}
