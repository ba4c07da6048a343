// Positions: waves, rotations, the effect of distance, and extrapolation past the training length.

import { circles, lineChart, short, signedMap } from "./charts.js";
import { choice, dataTable, group, html, note, plate, slider } from "./controls.js";
import * as field from "./fields.js";
import { largestDifference, range } from "./mathematics.js";
import {
  alibiSlopes,
  code,
  codes,
  frequencies,
  rbf,
  rbfRate,
  rotaryScore,
  similarity,
  turned,
  wavelength,
} from "./waves.js";

const fields = {
  view: field.oneOf(["Heat map", "Waves", "A shift is a turn", "Similarity by offset", "Past the training length"]),
  d: field.number(128, 4, 512, { step: 4 }),
  length: field.number(100, 10, 1000, { step: 10 }),
  p: field.number(10, 0, 500, { step: 1 }),
  k: field.number(7, -100, 100, { step: 1 }),
  trained: field.number(128, 16, 1000, { step: 1, log: true }),
  head: field.number(4, 1, 8, { step: 1 }),
};

const SOME = 8; // rows shown of a long table
const evenly = (count, most) => [
  ...new Set(range(Math.min(most, count)).map((i) => Math.round((i * (count - 1)) / (Math.min(most, count) - 1)))),
];

function heatMapView({ d, length }) {
  const matrix = codes(length, d);
  const label = `Sinusoidal codes of ${length} positions, d = ${d}`;
  const columns = evenly(d, SOME);
  return {
    label,
    drawing: signedMap({ label, matrix, xName: "component of the code", yName: "position" }),
    table: () =>
      dataTable(
        label,
        ["position", ...columns.map(String)],
        evenly(length, SOME).map((p) => [String(p), ...columns.map((i) => matrix[p][i].toFixed(6))]),
      ),
    answer: `Blue is above zero, amber below. Columns come in pairs, a sine and a cosine of one wave. The first wavelength is 2π positions, the last ${wavelength(frequencies(d).at(-1)).toFixed(2)}. A code is added to the embedding of its token.`,
  };
}

function wavesView({ d, length }) {
  const omegas = frequencies(d);
  const chosen = evenly(d / 2, 4);
  const places = range(length + 1);
  const series = chosen.map((i, number) => ({
    name: `pair ${i}`,
    points: places.map((p) => [p, Math.sin(p * omegas[i])]),
    dash: number % 3,
  }));
  const label = `Sines of ${chosen.length} of ${d / 2} pairs`;
  return {
    label,
    drawing: lineChart({ label, x: { name: "position" }, y: { name: "sine", from: -1, to: 1 }, series }),
    table: () =>
      dataTable(
        label,
        ["pair", "frequency", "wavelength"],
        evenly(d / 2, 2 * SOME).map((i) => [String(i), omegas[i].toExponential(4), wavelength(omegas[i]).toFixed(2)]),
      ),
    answer: `Frequencies go from ${omegas[0]} to ${omegas.at(-1).toExponential(4)} in even steps of their logarithm, wavelengths from 2π to ${wavelength(omegas.at(-1)).toFixed(2)}: 10000 · 2π = ${(20000 * Math.PI).toFixed(2)} is a limit that no wave reaches.`,
  };
}

function turnView({ d, p, k }) {
  const omegas = frequencies(d);
  const [from, to] = [code(p, omegas), code(p + k, omegas)];
  const residual = largestDifference(turned(from, k, omegas), to);
  const chosen = evenly(d / 2, 10);
  const pairs = chosen.map((i) => ({
    name: `pair ${i}: ${degrees(k * omegas[i])}`,
    from: [from[2 * i], from[2 * i + 1]],
    to: [to[2 * i], to[2 * i + 1]],
  }));
  const label = `PE(${p}) in blue, PE(${p + k}) in amber: each pair is rotated by its own angle`;
  const cell = (number) => number.toFixed(6);
  return {
    label,
    drawing: circles({ label, pairs }),
    table: () =>
      dataTable(
        `T_${k} of each pair: [[cos, sin], [-sin, cos]]`,
        ["pair", "angle", "cos", "sin", `PE(${p})`, `PE(${p + k})`],
        chosen.map((i) => [
          String(i),
          degrees(k * omegas[i]),
          cell(Math.cos(k * omegas[i])),
          cell(Math.sin(k * omegas[i])),
          `${cell(from[2 * i])} ${cell(from[2 * i + 1])}`,
          `${cell(to[2 * i])} ${cell(to[2 * i + 1])}`,
        ]),
      ),
    answer: `PE(p + k) = T_k PE(p): the angles do not depend on p. Here the two sides differ by ${residual < 1e-12 ? "nothing but rounding" : residual.toExponential(1)} (${residual.toExponential(1)}).`,
  };
}

const degrees = (angle) => `${((angle * 180) / Math.PI).toFixed(1)}°`;

function similarityView({ d, length }) {
  const omegas = frequencies(d);
  const rate = rbfRate(omegas);
  const offsets = range(length + 1);
  const series = [
    { name: "sinusoids", points: offsets.map((offset) => [offset, similarity(offset, omegas) / omegas.length]) },
    { name: "RBF kernel", points: offsets.map((offset) => [offset, rbf(offset, rate)]), dash: 1 },
    { name: "one-hot", points: offsets.map((offset) => [offset, Number(offset === 0)]), dash: 2 },
  ];
  const label = `Similarity of two codes by their offset, d = ${d}`;
  const rows = [0, 1, 2, 5, 10, 30, 50, 99].filter((offset) => offset <= length);
  const rise = range(length).find((offset) => similarity(offset + 1, omegas) > similarity(offset, omegas));
  return {
    label,
    drawing: lineChart({ label, x: { name: "offset" }, y: { name: "similarity" }, series }),
    table: () =>
      dataTable(
        label,
        ["offset", "PE · PE", "of d/2", "RBF kernel"],
        rows.map((offset) => [
          String(offset),
          similarity(offset, omegas).toFixed(2),
          (similarity(offset, omegas) / omegas.length).toFixed(3),
          rbf(offset, rate).toFixed(3),
        ]),
      ),
    answer: `Similarity depends on the offset alone. The RBF kernel exp(-λ offset²) with λ = ${rate.toFixed(4)} agrees at offset 1 and then falls at once; the sinusoids fall slowly${rise === undefined ? "" : `, and first rise again after offset ${rise}`}. They are not a truncated series of that kernel.`,
  };
}

// The effect of distance on a key, without learned weights, relative to distance 0 of each kind.
function extrapolationView({ d, trained, head }) {
  const longest = 2 * trained;
  const distances = evenly(longest + 1, 300);
  const omegas = frequencies(d);
  const query = range(64).map(() => 1);
  const slope = alibiSlopes(8)[head - 1];
  const learned = distances.map((distance) => [distance, distance < trained ? 1 : NaN]);
  const series = [
    { name: "learned", points: learned, dash: 2 },
    {
      name: "sinusoidal",
      points: distances.map((distance) => [distance, similarity(distance, omegas) / omegas.length]),
    },
    { name: "rotary", points: distances.map((distance) => [distance, rotaryScore(query, distance, 64) / 64]), dash: 1 },
    { name: "ALiBi", points: distances.map((distance) => [distance, Math.exp(-slope * distance)]) },
  ];
  const unturned = (omega) => omega * trained < 2 * Math.PI;
  const label = `Effect of distance, trained on ${trained} positions`;
  const some = [0, 1, 10, trained - 1, trained, longest].filter((distance, i, all) => all.indexOf(distance) === i);
  const at = {
    learned: (distance) => (distance < trained ? "whatever was learned" : "refused: no vector"),
    sinusoidal: (distance) => short(similarity(distance, omegas) / omegas.length),
    rotary: (distance) => short(rotaryScore(query, distance, 64) / 64),
    ALiBi: (distance) => short(Math.exp(-slope * distance)),
  };
  return {
    label,
    drawing: lineChart({
      label,
      x: { name: "distance" },
      y: { name: "effect, relative to distance 0" },
      series,
      marks: [[trained, "training length"]],
    }),
    table: () =>
      dataTable(
        label,
        ["distance", ...Object.keys(at)],
        some.map((distance) => [String(distance), ...Object.values(at).map((of) => of(distance))]),
      ),
    answer: `Learned positions end with their table: the model refuses longer inputs. Sinusoids and rotary angles are defined everywhere, but ${omegas.filter(unturned).length} of ${omegas.length} sinusoids and ${frequencies(64).filter(unturned).length} of 32 rotary pairs have not completed a turn in ${trained} positions: longer inputs have angles that training never had. ALiBi's factor exp(-${short(slope)} · distance) of head ${head} keeps falling.`,
  };
}

const VIEWS = {
  "Heat map": { make: heatMapView, uses: ["d", "length"] },
  Waves: { make: wavesView, uses: ["d", "length"] },
  "A shift is a turn": { make: turnView, uses: ["d", "p", "k"] },
  "Similarity by offset": { make: similarityView, uses: ["d", "length"] },
  "Past the training length": { make: extrapolationView, uses: ["d", "trained", "head"] },
};
const LABELS = {
  d: "d",
  length: "positions",
  p: "position p",
  k: "shift k",
  trained: "trained length",
  head: "ALiBi's head, of 8",
};

function open(state, remember) {
  const answer = html("p", { class: "answer", "aria-live": "polite" });
  const picture = plate();

  function draw() {
    const { label, drawing, table, answer: text } = VIEWS[state.view].make(state);
    picture.show(label, drawing, table);
    answer.textContent = text;
    for (const [name, control] of Object.entries(sliders))
      control.element.hidden = !VIEWS[state.view].uses.includes(name);
  }

  const set = (name) => (value) => {
    state[name] = value;
    remember();
    draw();
  };
  const sliders = Object.fromEntries(
    Object.entries(LABELS).map(([name, label]) => [name, slider(label, state[name], fields[name], set(name))]),
  );
  const views = choice("View", fields.view.options, state.view, set("view"));
  draw();
  const controls = html(
    "div",
    {},
    group("Codes", ...Object.values(sliders).map(({ element }) => element)),
    note("PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i + 1) = cos(p / 10000^(2i/d)), i from 0."),
  );
  return html(
    "div",
    { class: "lab" },
    views,
    html("div", { class: "work" }, controls, html("div", {}, answer, picture.element)),
  );
}

export const bench = {
  about:
    "Attention knows no order: a code of the position is added to each token, or rotates its queries and keys, or lowers scores by distance.",
  claims: ["N-23", "N-24", "N-25", "N-26", "N-27"],
  fields,
  open,
};
