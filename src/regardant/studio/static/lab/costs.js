// Costs of layers and models: predicted curves by length, their crossings, presets up to GPT-3, and measured times.

import { ask } from "../shell.js";
import { lineChart, short } from "./charts.js";
import { button, choice, dataTable, group, html, note, pick, plate, slider } from "./controls.js";
import {
  ATTENTIONS,
  FAMILIES,
  KINDS,
  PARTS,
  PRESETS,
  attentionFlops,
  cacheBytes,
  crossover,
  feedForward,
  forwardFlops,
  trainingFlops,
  weightBytes,
} from "./costmodel.js";
import * as field from "./fields.js";
import { range, spaced } from "./mathematics.js";

const WHAT = ["FLOPs", "numbers kept", "time here"];
const AS_MEASURED = { d: 512, heads: 8, window: 64, rank: 64, kernel: 5 }; // the settings that the server measures with
const [SHORTEST, LONGEST] = [16, 131072];

const fields = {
  preset: field.oneOf([...Object.keys(PRESETS), "my own"]),
  n: field.number(512, 1, LONGEST, { step: 1, log: true }),
  d: field.number(512, 16, 16384, { step: 1, log: true }),
  d_ff: field.number(2048, 16, 65536, { step: 1, log: true }),
  heads: field.number(8, 1, 128, { step: 1 }),
  layers: field.number(6, 1, 128, { step: 1 }),
  words: field.number(37000, 1, 300000, { step: 1, log: true }),
  family: field.oneOf(Object.keys(FAMILIES)),
  window: field.number(64, 1, 4096, { step: 1, log: true }),
  rank: field.number(64, 1, 4096, { step: 1, log: true }),
  kernel: field.number(5, 2, 31, { step: 1 }),
  bytes: field.oneOf(["4", "2", "1"]),
  tokens: field.number(300, 0.001, 20000, { step: 0.001, log: true }),
  teraflops: field.number(28, 0.1, 2000, { step: 0.1, log: true }),
  part: field.oneOf(Object.keys(PARTS), "with its projections"),
  what: field.oneOf(WHAT),
};
const SIZES = ["n", "d", "d_ff", "heads", "layers", "words"];
const OF_MODEL = [...SIZES, "family"]; // the fields that a preset sets
const NAMES = {
  n: "tokens n",
  d: "d_model",
  d_ff: "d_ff",
  heads: "heads",
  layers: "layers",
  words: "vocabulary",
  window: "window, each side",
  rank: "rank",
  kernel: "kernel",
  tokens: "training tokens, 10⁹",
  teraflops: "TFLOP/s of a device",
};

const settingsOf = (state) => ({ ...state, bytes: Number(state.bytes), positions: state.n });
const grouped = (number) => Math.round(number).toLocaleString("en");

function bytesOf(number) {
  return number >= 1e9 ? `${(number / 1e9).toFixed(2)} GB` : `${(number / 1e6).toFixed(2)} MB`;
}

function modelTable(state) {
  const of = settingsOf(state);
  const parameters = FAMILIES[of.family]({ ...of, positions: PRESETS[of.preset]?.positions ?? of.n });
  const training = trainingFlops(parameters, of.tokens * 1e9);
  const days = training / (of.teraflops * 1e12) / 86400;
  const rows = [
    ["parameters", grouped(parameters)],
    ["bytes of parameters", bytesOf(parameters * of.bytes)],
    ["weights of one attention, one sequence", bytesOf(weightBytes(of))],
    ["weights of all attentions of all layers", bytesOf(ATTENTIONS[of.family] * of.layers * weightBytes(of))],
    ["cached keys and values while decoding", bytesOf(cacheBytes(of))],
    ["FLOPs of one pass over n tokens, 2 · parameters · n", forwardFlops(parameters, of.n).toExponential(3)],
    ["FLOPs of attention in addition, 4 · n² · d each", attentionFlops(of).toExponential(3)],
    ["FLOPs of training, 6 · parameters · tokens", training.toExponential(3)],
    ["days of training on one such device", days >= 1 ? grouped(days) : days.toPrecision(2)],
  ];
  return dataTable(`The model: ${of.preset}`, ["", "value"], rows);
}

function kindTable(state) {
  const of = settingsOf(state);
  const rows = Object.entries(KINDS).map(([kind, { name, note, path, numbers }]) => [
    name,
    note,
    ...Object.keys(PARTS).map((part) => short(2 * PARTS[part](kind, of))),
    short(numbers(of)),
    grouped(path(of)),
  ]);
  return dataTable(
    `FLOPs of one layer, ${grouped(of.n)} tokens`,
    ["", "", ...Object.keys(PARTS), "numbers kept", "path between both ends, in layers or steps"],
    rows,
    "wrapped",
  );
}

function crossings(state) {
  const of = settingsOf(state);
  const meet = (n) => `${grouped(n)} (${Number((n / of.d).toFixed(2))} d)`;
  const own = [
    ["attention's mixing costs as much as the feed-forward network", meet(of.d_ff)], // 2 n² d = 2 n d d_ff
    ["attention's mixing costs as much as the rest of the layer", meet(2 * of.d + of.d_ff)], // 2 n² d = 4 n d² + 2 n d d_ff
  ];
  const others = Object.keys(KINDS)
    .filter((kind) => kind !== "full")
    .map((kind) => {
      const at = crossover("full", kind, state.part, of);
      return [
        `full attention costs more than: ${KINDS[kind].name} (${state.part})`,
        at === null ? "at no length" : at === 1 ? "at every length" : `from ${grouped(at)} on`,
      ];
    });
  return dataTable("Crossovers, in tokens", ["", "n"], [...own, ...others], "wrapped");
}

// Predicted seconds of a kind are scaled to its longest measured point, so only the shape of the curve is tested.
function timeSeries(points) {
  return Object.keys(KINDS).flatMap((kind, hue) => {
    const measured = points.filter((point) => point.kind === kind).map(({ n, seconds }) => [n, seconds]);
    if (!measured.length) return [];
    const [longest, seconds] = measured.at(-1);
    const flops = (n) => KINDS[kind].mix({ n, ...AS_MEASURED });
    const predicted = spaced(measured[0][0], longest, 40).map((n) => [n, (flops(n) / flops(longest)) * seconds]);
    return [
      { name: KINDS[kind].name, points: predicted, hue, dash: hue % 3 },
      { name: `${KINDS[kind].name}, measured`, points: measured, hue, dots: true, dotsOnly: true, nameless: true },
    ];
  });
}

function lines(state) {
  const of = settingsOf(state);
  const lengths = spaced(SHORTEST, LONGEST, 60);
  const value =
    state.what === "FLOPs"
      ? (kind, n) => 2 * PARTS[state.part](kind, { ...of, n })
      : (kind, n) => KINDS[kind].numbers({ ...of, n });
  const series = Object.keys(KINDS).map((kind, i) => ({
    name: KINDS[kind].name,
    points: lengths.map((n) => [n, value(kind, n)]),
    dash: i % 3,
  }));
  if (state.what === "FLOPs" && state.part === "the mixing alone") {
    series.push({
      name: "feed-forward",
      points: lengths.map((n) => [n, 2 * feedForward({ ...of, n })]),
      hue: 5,
      dash: 2,
    });
  }
  return series;
}

const nearest = (points, n) =>
  points.reduce((best, point) =>
    Math.abs(Math.log(point[0] / n)) < Math.abs(Math.log(best[0] / n)) ? point : best,
  )[1];

function drawCosts(picture, state) {
  const series = lines(state);
  const label = `${state.what} of one layer by length${state.what === "FLOPs" ? `, ${state.part}` : ""}`;
  const axes = { x: { name: "tokens", log: true }, y: { name: state.what, log: true } };
  const row = (n) => [grouped(n), ...series.map(({ points }) => short(nearest(points, n)))];
  picture.show(label, lineChart({ label, ...axes, series, marks: [[state.n, "n"]] }), () =>
    dataTable(label, ["tokens", ...series.map(({ name }) => name)], [128, 512, 2048, 8192, 32768].map(row)),
  );
}

function drawTimes(picture, points) {
  const label = "Seconds of the mixing alone on this machine: points measured, lines predicted";
  const axes = { x: { name: "tokens", log: true }, y: { name: "seconds", log: true } };
  const row = ({ kind, n, seconds }) => [KINDS[kind].name, grouped(n), seconds.toExponential(3)];
  picture.show(label, lineChart({ label, ...axes, series: timeSeries(points) }), () =>
    dataTable(label, ["kind", "tokens", "seconds"], points.map(row)),
  );
}

function describe({ what, d, d_ff }, points) {
  if (what === "time here" && !points.length) return "Nothing is measured yet: press Measure here.";
  if (what === "time here") {
    return (
      "Lines have the slope that the closed forms predict and pass through the point of the longest input. Where points " +
      "leave their line, something other than arithmetic takes the time, such as call overhead for short inputs."
    );
  }
  return (
    `Attention's own mixing grows with n²: at ${grouped(d_ff)} tokens it costs as much as the feed-forward network, ` +
    `at ${grouped(2 * d + d_ff)} as much as everything else in its layer.`
  );
}

function measureButton(measured, complain) {
  const one = button("Measure here", async () => {
    one.disabled = true;
    one.textContent = "measuring…";
    try {
      measured(await ask("/api/lab/measure", { body: {} }));
    } catch (error) {
      complain(error.message);
    }
    one.disabled = false;
    one.textContent = "Measure here";
  });
  return one;
}

function settingsOfPreset(preset) {
  const { positions: _, ...settings } = PRESETS[preset] ?? {};
  return { ...settings, preset };
}

function open(state, remember) {
  // A URL may name only a preset, or sizes without a preset.
  const sized = OF_MODEL.some((name) => state[name] !== fields[name].start);
  if (sized && state.preset === fields.preset.start) state.preset = "my own";
  Object.assign(state, settingsOfPreset(state.preset));
  const [model, kinds, cross] = range(3).map(() => html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" }));
  const picture = plate();
  const answer = html("p", { class: "answer", "aria-live": "polite" });
  let points = [];

  function draw() {
    model.replaceChildren(modelTable(state));
    kinds.replaceChildren(kindTable(state));
    cross.replaceChildren(crossings(state));
    parts.hidden = state.what !== "FLOPs";
    if (state.what === "time here") drawTimes(picture, points);
    else drawCosts(picture, state);
    answer.textContent = describe(state, points);
  }

  function set(change) {
    Object.assign(state, change);
    remember();
    draw();
  }

  const own = (name) => (number) => {
    if (OF_MODEL.includes(name)) pick(presets, fields.preset.options, "my own");
    set(OF_MODEL.includes(name) ? { [name]: number, preset: "my own" } : { [name]: number });
  };
  const sliders = Object.fromEntries(
    Object.keys(NAMES).map((name) => [name, slider(NAMES[name], state[name], fields[name], own(name))]),
  );
  const presets = choice("Preset", fields.preset.options, state.preset, (preset) => {
    set(settingsOfPreset(preset));
    for (const name of SIZES) sliders[name].set(state[name]);
    pick(families, fields.family.options, state.family);
  });
  const families = choice("Family", fields.family.options, state.family, own("family"));
  const measuring = measureButton(
    (found) => {
      points = found;
      pick(whats, WHAT, "time here");
      set({ what: "time here" });
    },
    (line) => (answer.textContent = line),
  );
  const whats = choice("What is drawn", WHAT, state.what, (what) => set({ what }));
  const of = (...names) => names.map((name) => sliders[name].element);
  const controls = html(
    "div",
    {},
    group("Preset", presets),
    group("Model", families, ...of(...SIZES)),
    group("Other kinds of layers", ...of("window", "rank", "kernel")),
    group(
      "Bytes of a number",
      choice("Bytes of a number", fields.bytes.options, state.bytes, (bytes) => set({ bytes })),
    ),
    group("Training", ...of("tokens", "teraflops")),
  );
  const parts = choice("What is counted", fields.part.options, state.part, (part) => set({ part }));
  draw();
  const results = html(
    "div",
    {},
    html("div", { class: "bar" }, whats, measuring),
    parts,
    answer,
    picture.element,
    model,
    cross,
    kinds,
    note("A multiply-add is two FLOPs. Norms, softmax and biases are left out of FLOPs, not of parameters."),
  );
  return html("div", { class: "work" }, controls, results);
}

export const bench = {
  about:
    "The cost of a layer by input length, the length from which one kind costs more than another, and the cost of whole models up to GPT-3.",
  claims: ["N-30", "N-31", "N-32", "N-33", "N-34", "N-35", "N-36", "N-37", "N-38", "N-40", "N-41", "N-52"],
  fields,
  open,
};
