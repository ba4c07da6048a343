// The worked example of the lectures: "cat" to "chat", with all intermediate numbers.

import { barChart, lineChart } from "./charts.js";
import { claims } from "./claims.js";
import { button, choice, dataTable, group, html, plate, row, slider, toggle } from "./controls.js";
import { ACTION_QUERY, ACTION_QUERY_IN_PROSE, FEATURES, KEYS, QUERY, VALUES, WORDS, bySize, steps } from "./example.js";
import * as field from "./fields.js";
import { bestOf, entropy, range, spaced, sum } from "./mathematics.js";

const NAMES = WORDS.map((word, i) => (word === "the" ? `the (${i + 1})` : word));
const PRESETS = {
  "chat, an animal": { query: QUERY, claim: ["N-01", "N-02", "N-03"] },
  "the exercise, an action": { query: ACTION_QUERY, claim: ["N-04"] },
  "the prose, an action": { query: ACTION_QUERY_IN_PROSE, claim: ["N-05"] },
};
const AS_PRINTED = { d_k: 4, scaled: true, temperature: 1, top: 6 };

const fields = {
  query: field.numbers([QUERY], -2, 2),
  keys: field.numbers(KEYS, -2, 2),
  values: field.numbers(VALUES, -2, 2),
  scaled: field.flag(true),
  d_k: field.number(4, 1, 1024, { step: 1, log: true }),
  temperature: field.number(1, 0, 10),
  top: field.number(6, 1, 6, { step: 1 }),
  word: field.oneOf(NAMES, "cat"),
};

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
const divisorOf = ({ scaled, d_k, temperature }) => temperature * (scaled ? Math.sqrt(d_k) : 1);

// The preset whose query is set while all other settings are those of the lectures, or null.
function printed(state) {
  const setting = Object.keys(AS_PRINTED).every((name) => state[name] === AS_PRINTED[name]);
  const known = setting && same(state.keys, KEYS) && same(state.values, VALUES);
  return known ? (Object.values(PRESETS).find(({ query }) => same([query], state.query)) ?? null) : null;
}

function open(state, remember) {
  const [numbers, answer] = [html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" }), html("p", { class: "answer", "aria-live": "polite" })];
  const [weights, output, curve] = [plate(), plate(), plate()];
  const sliders = { query: html("div"), word: html("div") };
  let lecture = new Map();

  function draw() {
    const found = steps(state.query[0], {
      keys: state.keys,
      values: state.values,
      divisor: divisorOf(state),
      top: state.top,
    });
    numbers.replaceChildren(table(state, found, lecture));
    answer.textContent = describe(state, found);
    drawWeights(weights, found);
    drawOutput(output, state, found, lecture);
    drawTemperatures(curve, state);
  }

  function set(change) {
    Object.assign(state, change);
    remember();
    draw();
  }

  function fill() {
    const change = (name, i, j) => (number) =>
      set({ [name]: state[name].map((line, at) => (at === i ? line.with(j, number) : line)) });
    const four = (name, i, of) =>
      FEATURES.map(
        (feature, j) => slider(`${of}${feature}`, state[name][i][j], fields[name], change(name, i, j)).element,
      );
    const at = NAMES.indexOf(state.word);
    sliders.query.replaceChildren(...four("query", 0, ""));
    sliders.word.replaceChildren(...four("keys", at, "key: "), ...four("values", at, "value: "));
  }

  const presets = Object.entries(PRESETS).map(([name, { query }]) =>
    button(name, () => {
      set({ ...AS_PRINTED, query: [query], keys: KEYS, values: VALUES });
      place();
      fill();
    }),
  );
  const settings = Object.fromEntries(
    ["temperature", "d_k", "top"].map((name) => [
      name,
      slider(LABELS[name], state[name], fields[name], (number) => set({ [name]: number })),
    ]),
  );
  const scaling = toggle("divide scores by √d_k", state.scaled, (scaled) => set({ scaled }));
  const place = () => {
    for (const [name, control] of Object.entries(settings)) control.set(state[name]);
    scaling.querySelector("input").checked = state.scaled;
  };
  const words = choice("Word", NAMES, state.word, (word) => {
    set({ word });
    fill();
  });

  fill();
  draw();
  claims().then(
    (known) => {
      lecture = known;
      draw();
    },
    () => {},
  ); // the list of claims reports the error
  const controls = html(
    "div",
    {},
    group("A query of the lectures", row(...presets)),
    group("Query: what the decoder looks for", sliders.query),
    group("From scores to weights", scaling, ...Object.values(settings).map(({ element }) => element)),
    group("Key and value of a word", words, sliders.word),
  );
  return html(
    "div",
    { class: "work" },
    controls,
    html("div", {}, answer, numbers, weights.element, output.element, curve.element),
  );
}

const LABELS = { temperature: "temperature", d_k: "d_k", top: "top-k" };

function describe(state, { weights, output }) {
  const divisor = divisorOf(state);
  const how =
    divisor === 0 ? "At temperature 0 this is a hard lookup" : `Scores are divided by ${Number(divisor.toFixed(4))}`;
  const kept = weights.filter((weight) => weight > 0).length;
  const ties = kept > state.top ? `, and ${kept} keys are kept because of ties` : "";
  const order = bySize(output).split(" ").join(", ");
  return `${how}${ties}. “${WORDS[bestOf(weights)]}” gets the most attention. In the output the features by size are: ${order}. They sum to ${sum(output).toFixed(3)}: they are not percentages.`;
}

// The printed numbers of a preset, by the name of the figure.
function lectureOf(state, known) {
  const preset = printed(state);
  const lecture = Object.assign({}, ...(preset?.claim ?? []).map((id) => known.get(id)?.lecture ?? {}));
  return (name) => (/^[-\d. ]+$/.test(lecture[name] ?? "") ? lecture[name].split(" ") : null);
}

function table(state, found, known) {
  const lectureNumbers = lectureOf(state, known);
  const [scores, exponentials, weights] = ["", "exponentials", "weights"].map(lectureNumbers);
  const columns = [
    ["‖k‖", found.lengths, 3],
    ["cos(q, k)", found.cosines, 3],
    ["score q·k", found.scores, 2],
    ...(scores ? [["lecture", scores]] : []),
    ["divided", found.scaled, 4],
    ["exp", found.exponentials, 6],
    ...(exponentials ? [["lecture", exponentials]] : []),
    ["weight", found.weights, 6],
    ...(weights ? [["lecture", weights]] : []),
  ];
  const rows = NAMES.map((name, i) => [
    name,
    ...columns.map(([, numbers, digits]) => (digits === undefined ? numbers[i] : numbers[i].toFixed(digits))),
  ]);
  const total = columns.map(([name, numbers]) => (name === "exp" || name === "weight" ? sum(numbers).toFixed(6) : ""));
  const caption = `From the query to the weights. Entropy of the weights: ${entropy(found.weights).toFixed(6)}; of six equal weights: ${Math.log(6).toFixed(6)}.`;
  return dataTable(caption, ["word", ...columns.map(([name]) => name)], [...rows, ["sum", ...total]]);
}

function drawWeights(plate, { weights }) {
  const rows = NAMES.map((name, i) => [name, weights[i]]);
  const label = "Weights of the words";
  plate.show(label, barChart({ label, rows, series: ["weight"], most: 0.5 }), () =>
    dataTable(
      label,
      ["word", "weight"],
      rows.map(([name, weight]) => [name, weight.toFixed(6)]),
    ),
  );
}

function drawOutput(plate, state, { output }, known) {
  const lectureNumbers = lectureOf(state, known)("output");
  const rows = FEATURES.map((name, i) => [name, output[i], ...(lectureNumbers ? [Number(lectureNumbers[i])] : [])]);
  const series = ["true", ...(lectureNumbers ? ["as the lecture prints it"] : [])];
  const label = "Output: the values, mixed by the weights";
  plate.show(label, barChart({ label, rows, series, most: 1 }), () =>
    dataTable(
      label,
      ["feature", ...series],
      rows.map(([name, truth]) => [name, truth.toFixed(6), ...(lectureNumbers ? [lectureNumbers[FEATURES.indexOf(name)]] : [])]),
    ),
  );
}

// The output by the divisor of the scores.
function drawTemperatures(plate, state) {
  const at = spaced(0.05, 10, 80);
  const of = (divisor) =>
    steps(state.query[0], { keys: state.keys, values: state.values, divisor, top: state.top }).output;
  const outputs = at.map(of);
  const series = FEATURES.map((name, i) => ({
    name,
    points: at.map((divisor, j) => [divisor, outputs[j][i]]),
    dash: i % 3,
  }));
  const label = "Output by the divisor of the scores";
  const marks = [[divisorOf(state), "now"]];
  const drawing = lineChart({
    label,
    x: { name: "divisor of the scores", log: true },
    y: { name: "output" },
    series,
    marks,
  });
  const some = range(9).map((i) => i * 10 - (i > 7 ? 1 : 0));
  plate.show(label, drawing, () =>
    dataTable(
      label,
      ["divisor", ...FEATURES],
      some.map((i) => [at[i].toFixed(3), ...outputs[i].map((number) => number.toFixed(4))]),
    ),
  );
}

export const bench = {
  about:
    "A decoder is about to write “chat” and looks at “the cat sat on the mat”. Each word has four numbers: animal, action, object, definiteness. Change the query, a key, a value, or how scores become weights, and follow every number.",
  claims: ["N-01", "N-02", "N-03", "N-04", "N-05", "N-06", "N-09"],
  fields,
  open,
};
