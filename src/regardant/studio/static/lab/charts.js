// Curves, bars and maps as SVG, as wide as the page allows. Colours are those of lab.css. Every curve has its name at
// its end, or above a narrow drawing.

import { resolved, roomFor } from "../pictures/drawing.js";
import { svg } from "../shell.js";
import { largest, range } from "./mathematics.js";

const [NARROWEST, NARROW, WIDEST] = [300, 560, 736];
const BESIDE = 375; // pixels of the controls beside a drawing, with the gap
const HEIGHT = 340;
const [LEFT, TOP, BELOW] = [74, 16, 46];
const LETTER = 8; // approximate width of a character, in pixels
const LINE = 17; // pixels between names
const HUES = 6;
const ENDS_EARLY = 40; // pixels between the end of a curve and that of the axis

const finite = ([x, y], axes) =>
  Number.isFinite(x) && Number.isFinite(y) && (!axes.x.log || x > 0) && (!axes.y.log || y > 0);

// spec: label; x, y: {name, log, from, to, format}; series: [{name, points: [[x, y]], dots, dash}]; marks: [[x, name]].
export function lineChart(spec) {
  const width = room();
  const names = spec.series.filter((series) => !series.nameless).map((series) => series.name);
  const above = width < NARROW && names.length ? legend(spec.series, 4, width) : null;
  const right = 16 + (above ? 0 : LETTER * largest([0, ...names.map((name) => name.length)]));
  const points = spec.series.flatMap((series) => series.points).filter((point) => finite(point, spec));
  const x = scale(
    spec.x,
    points.map(([at]) => at),
    LEFT,
    width - right,
  );
  const y = scale(
    spec.y,
    points.map(([, at]) => at),
    HEIGHT - BELOW,
    TOP + (above?.height ?? 0),
  );
  const curves = spec.series.map((series, i) => curve(series, i, x, y, spec));
  const labels = above ? above.parts : endNames(spec, x, y);
  return drawing(width, HEIGHT, spec.label, [...frame(spec, x, y), ...curves, ...marks(spec.marks ?? [], x, y), ...labels]);
}

// The width of a drawing, in pixels.
const room = () => Math.max(NARROWEST, roomFor(WIDEST, matchMedia("(max-width: 900px)").matches ? 0 : BESIDE));

function drawing(width, height, label, parts) {
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label }, ...parts);
}

function scale(axis, found, start, end) {
  const measure = axis.log ? Math.log : (number) => number;
  let [low, high] = [axis.from ?? -largest(found.map((number) => -number)), axis.to ?? largest(found)];
  if (!Number.isFinite(low) || !Number.isFinite(high)) [low, high] = axis.log ? [1, 10] : [0, 1];
  if (low === high) high = axis.log ? low * 10 : low + 1;
  const [from, to] = [measure(low), measure(high)];
  const place = (number) => start + ((measure(number) - from) / (to - from)) * (end - start);
  return { place, ticks: axis.log ? decades(low, high) : even(low, high), low, high, start, end };
}

// Ticks of a logarithmic axis: 1, 2 and 5 of each power of ten, only powers if there are many, only some if very many.
function decades(low, high) {
  const powers = range(Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) + 1, Math.floor(Math.log10(low)));
  const every = Math.ceil(powers.length / 8);
  const within = (number) => number >= low * 0.999 && number <= high * 1.001;
  const steps = powers.length <= 4 ? [1, 2, 5] : [1];
  return powers
    .filter((power) => power % every === 0)
    .flatMap((power) => steps.map((step) => step * 10 ** power))
    .filter(within);
}

function even(low, high) {
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const first = Math.ceil(low / step - 1e-9);
  return range(Math.floor(high / step + 1e-9) - first + 1, first).map((i) => i * step);
}

export function short(number) {
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 1e15 || size < 1e-3) return number.toExponential(size >= 1e15 ? 1 : 0).replace("e+", "e");
  const [unit, letter] = [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
    [0, ""],
  ].find(([least]) => size >= least);
  return `${Number((number / (letter === "k" ? 1e3 : unit || 1)).toPrecision(3))}${letter}`;
}

function frame(spec, x, y) {
  const [formatX, formatY] = [spec.x.format ?? short, spec.y.format ?? short];
  const lines = y.ticks.map((tick) =>
    svg("line", { class: "grid", x1: x.start, x2: x.end, y1: y.place(tick), y2: y.place(tick) }),
  );
  let taken = -Infinity; // end of the last number: numbers that would overlap it are left out
  const below = x.ticks.flatMap((tick) => {
    const half = (LETTER * formatX(tick).length) / 2;
    if (x.place(tick) - half < taken) return [];
    taken = x.place(tick) + half + 4;
    return svg("text", { class: "faint", x: x.place(tick), y: HEIGHT - BELOW + 20, "text-anchor": "middle" }, formatX(tick));
  });
  const beside = y.ticks.map((tick) =>
    svg("text", { class: "faint", x: LEFT - 8, y: y.place(tick) + 4, "text-anchor": "end" }, formatY(tick)),
  );
  const middle = (y.start + y.end) / 2;
  const names = [
    svg("text", { class: "faint", x: (x.start + x.end) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, spec.x.name),
    svg(
      "text",
      { class: "faint", transform: `translate(16 ${middle}) rotate(-90)`, "text-anchor": "middle" },
      spec.y.name,
    ),
  ];
  return [...lines, ...below, ...beside, ...names];
}

function marks(places, x, y) {
  return places
    .filter(([at]) => at >= x.low && at <= x.high)
    .flatMap(([at, name], i) => {
      const beside =
        x.place(at) > (x.start + x.end) / 2 ? { "text-anchor": "end", x: x.place(at) - 5 } : { x: x.place(at) + 5 };
      const line = svg("line", { class: "mark-line", x1: x.place(at), x2: x.place(at), y1: y.end, y2: y.start });
      return [line, svg("text", { class: "faint halo", ...beside, y: y.start - 8 - i * LINE }, name)];
    });
}

const clamped = (value, scale) =>
  Math.min(Math.max(value, Math.min(scale.start, scale.end) - 1), Math.max(scale.start, scale.end) + 1);

// A point that is not finite breaks the curve.
function curve(series, number, x, y, axes) {
  const place = ([at, value]) => `${x.place(at).toFixed(1)} ${clamped(y.place(value), y).toFixed(1)}`;
  let pen = "M";
  const path = series.points.map((point) => {
    if (!finite(point, axes) || (series.clip && (point[1] < y.low || point[1] > y.high))) {
      pen = "M";
      return "";
    }
    const step = `${pen}${place(point)}`;
    pen = "L";
    return step;
  });
  const hue = series.hue ?? number;
  const line = svg(
    "path",
    { class: `curve stroke-${hue % HUES} dash-${series.dash ?? 0}`, d: path.join("") || "M0 0" },
    svg("title", {}, series.name),
  );
  const dots = series.dots ? series.points.filter((point) => finite(point, axes)) : [];
  const circles = dots.map((point) => {
    const what = `${series.name}: ${short(point[0])}, ${short(point[1])}`;
    return svg(
      "circle",
      { class: `fill-${hue % HUES}`, cx: x.place(point[0]), cy: y.place(point[1]), r: 4 },
      svg("title", {}, what),
    );
  });
  return svg("g", {}, ...(series.dotsOnly ? [] : [line]), ...circles);
}

// Names at the ends of curves, pushed apart if they would overlap.
function endNames(spec, x, y) {
  const ends = spec.series.map((series, i) => {
    const last = [...series.points].reverse().find((point) => finite(point, spec));
    const at = last && !series.nameless ? clamped(y.place(last[1]), y) : null;
    return { name: series.name, hue: (series.hue ?? i) % HUES, at, from: last ? x.place(last[0]) : 0, y: at };
  });
  const shown = ends.filter(({ at }) => at !== null).sort((a, b) => a.at - b.at);
  shown.forEach((end, i) => (end.y = Math.max(end.y, i ? shown[i - 1].y + LINE : y.end + 4)));
  [...shown].reverse().forEach((end, i, list) => (end.y = Math.min(end.y, i ? list[i - 1].y - LINE : y.start)));
  return shown.flatMap(({ name, hue, at, from, y: to }) => {
    const early = x.end - from > ENDS_EARLY; // such a curve is labelled where it ends
    const edge = early ? from : x.end;
    const leader = svg("path", { class: `leader stroke-${hue}`, d: `M${from} ${at}L${edge + 8} ${to}` });
    return [leader, svg("text", { class: `fill-${hue}${early ? " halo" : ""}`, x: edge + 12, y: to + 4.5 }, name)];
  });
}

const BAR = 15;
const MOST_LETTERS = 34;
const OF_NAMES = 0.5; // largest share of the width for names

// Horizontal bars from a line at zero. rows: [name, value of each series]; series: names.
export function barChart({ label, rows, series, most, format = (number) => number.toFixed(3) }) {
  const width = room();
  const letters = Math.min(MOST_LETTERS, Math.floor((OF_NAMES * width) / LETTER));
  const shortened = (name) => (name.length > letters ? `${name.slice(0, letters - 1)}…` : name);
  const left = 16 + LETTER * largest(rows.map(([name]) => shortened(name).length));
  const high = series.length * BAR + 12;
  const above = series.length > 1 ? legend(series.map((name) => ({ name })), left, width) : null;
  const top = above ? above.height + 6 : 6;
  const values = rows.flatMap(([, ...numbers]) => numbers).filter(Number.isFinite);
  const [low, top_] = [
    Math.min(0, -largest(values.map((value) => -value))),
    Math.max(most ?? 0, largest(values), 1e-9),
  ];
  const place = (value) => left + ((value - low) / (top_ - low)) * (width - left - 80);
  const bars = rows.flatMap(([name, ...numbers], i) => {
    const y = top + i * high;
    const word = svg(
      "text",
      { x: left - 10, y: y + (high - 12) / 2 + 5, "text-anchor": "end" },
      shortened(name),
      svg("title", {}, name),
    );
    const drawn = numbers.flatMap((value, j) => (Number.isFinite(value) ? bar(value, j, y + j * BAR) : []));
    return [word, ...drawn];
  });
  function bar(value, j, y) {
    const [from, to] = [place(Math.min(0, value)), place(Math.max(0, value))];
    return [
      svg("rect", { class: `fill-${j}`, x: from, y, width: Math.max(1, to - from), height: BAR - 3, rx: 2 }),
      svg("text", { class: "faint", x: to + 6, y: y + BAR - 4 }, format(value)),
    ];
  }
  const zero = svg("line", {
    class: "grid",
    x1: place(0),
    x2: place(0),
    y1: top - 4,
    y2: top + rows.length * high - 8,
  });
  return drawing(width, top + rows.length * high, label, [
    ...(above?.parts ?? []),
    zero,
    ...bars,
  ]);
}

// A legend of names and colours, in as many lines as needed. Returns the parts and the height.
function legend(series, left, width) {
  let [x, y] = [left, 5];
  const parts = series.flatMap(({ name, hue, dash, nameless }, i) => {
    if (nameless) return [];
    const wide = 34 + LETTER * name.length;
    if (x > left && x + wide > width) [x, y] = [left, y + LINE];
    const [here, number] = [x, (hue ?? i) % HUES];
    x += wide;
    const colour = dash
      ? svg("path", { class: `curve stroke-${number} dash-${dash}`, d: `M${here} ${y + 6}h14` })
      : svg("rect", { class: `fill-${number}`, x: here, y, width: 12, height: 12, rx: 2 });
    return [colour, svg("text", { class: "faint", x: here + 18, y: y + 11 }, name)];
  });
  return { parts, height: y + LINE };
}

// Numbers from -1 to 1 as pixels: blue above zero, amber below. Painted in the current colour scheme.
export function signedMap({ label, matrix, xName, yName }) {
  const [rows, columns] = [matrix.length, matrix[0].length];
  const [width, height] = [room() - LEFT - 30, Math.max(160, Math.min(420, rows * 6))];
  const place = { x: LEFT, y: 10, width, height, preserveAspectRatio: "none", "image-rendering": "pixelated" };
  const image = svg("image", { ...place, href: painted(matrix) });
  const border = svg("rect", { class: "border", x: LEFT, y: 10, width, height });
  const ticks = [0, 0.25, 0.5, 0.75, 1];
  const below = ticks.map((tick) =>
    svg(
      "text",
      { class: "faint", x: LEFT + tick * width, y: height + 28, "text-anchor": "middle" },
      String(Math.round(tick * columns)),
    ),
  );
  const beside = ticks.map((tick) =>
    svg(
      "text",
      { class: "faint", x: LEFT - 8, y: 14 + tick * height, "text-anchor": "end" },
      String(Math.round(tick * rows)),
    ),
  );
  const names = [
    svg("text", { class: "faint", x: LEFT + width / 2, y: height + 48, "text-anchor": "middle" }, xName),
    svg(
      "text",
      { class: "faint", transform: `translate(16 ${10 + height / 2}) rotate(-90)`, "text-anchor": "middle" },
      yName,
    ),
  ];
  return drawing(LEFT + width + 30, height + 56, label, [image, border, ...below, ...beside, ...names]);
}

function painted(matrix) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [matrix[0].length, matrix.length];
  const ink = canvas.getContext("2d");
  const image = ink.createImageData(canvas.width, canvas.height);
  const [above, below] = ["var(--ink)", "var(--gold)"].map(channels);
  matrix
    .flat()
    .forEach((value, i) => image.data.set([...(value < 0 ? below : above), 255 * Math.min(1, Math.abs(value))], 4 * i));
  ink.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

// Red, green and blue of a CSS colour of the page.
function channels(colour) {
  const ink = document.createElement("canvas").getContext("2d");
  ink.fillStyle = resolved(colour);
  ink.fillRect(0, 0, 1, 1);
  return [...ink.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

// Pairs of a positional code as points on circles, before and after a rotation.
export function circles({ label, pairs }) {
  const side = Math.min(145, (room() - 8) / 3);
  const across = Math.min(5, Math.floor((room() - 8) / side));
  const parts = pairs.flatMap(({ name, from, to }, i) => {
    const [x, y] = [side * (i % across) + side / 2 + 4, side * 1.25 * Math.floor(i / across) + side / 2];
    const radius = side / 2 - 14;
    const at = ([sine, cosine]) => [x + radius * cosine, y - radius * sine];
    const hand = (point, hue) => svg("path", { class: `curve stroke-${hue}`, d: `M${x} ${y}L${at(point).join(" ")}` });
    const dot = (point, hue) => svg("circle", { class: `fill-${hue}`, cx: at(point)[0], cy: at(point)[1], r: 5 });
    return [
      svg("circle", { class: "border", cx: x, cy: y, r: radius }),
      hand(from, 0),
      dot(from, 0),
      hand(to, 1),
      dot(to, 1),
      svg("text", { class: "faint", x, y: y + radius + 20, "text-anchor": "middle" }, name),
    ];
  });
  return drawing(
    side * Math.min(across, pairs.length) + 8,
    side * 1.25 * Math.ceil(pairs.length / across),
    label,
    parts,
  );
}
