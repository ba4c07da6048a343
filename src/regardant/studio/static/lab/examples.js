// The lectures' other numbers: a table of weights under a mask, four scores, four words in NumPy, an additive score.

import { barChart } from "./charts.js";
import { choice, dataTable, group, html, note, numberTable, plate, slider, toggle } from "./controls.js";
import { heatMap, weightTable } from "../pictures/drawing.js";
import * as field from "./fields.js";
import { identity, softmax, sum, weightsOf } from "./mathematics.js";
import { additive, fourWords } from "./measures.js";
import { SENTENCE, TABLE, causal } from "./table.js";

const PRINTED = [0.58, 0.1, 0.04, 0.28]; // the lecture's weights of its four scores
const FOUR = [2.1, 0.3, -0.5, 1.8];
const STATES = [
  [0, 0],
  [1, 0],
  [-1, 1],
];

const fields = {
  view: field.oneOf(["Six words", "Four scores", "Four words in NumPy", "Additive score"]),
  masked: field.flag(false),
  four: field.numbers([FOUR], -4, 4),
  heat: field.number(1, 0, 5),
  numpy: field.number(0, 0, 99999, { step: 1 }),
  v: field.numbers([[1, 1]], -3, 3),
  s: field.numbers([[1, 0]], -3, 3),
};

const written = (numbers) => numbers.map((number) => number.toFixed(6)).join("  ");

function sixWords(state, set) {
  const [picture, numbers] = [plate(), html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" })];
  function draw() {
    const mask = state.masked ? causal(6) : null;
    const weights = weightsOf(
      TABLE.map((row) => row.map(Math.log)),
      identity(6),
      { temperature: 1, mask },
    );
    const shown = state.masked ? weights : TABLE;
    const names = SENTENCE.map((word, i) => (word === "CAT" ? `CAT (${i + 1})` : word));
    const label = state.masked ? "Weights under a causal mask" : "Weights as the walk-through prints them";
    const scene = { source: names, target: names, gold: [], isGold: () => false, matrix: shown };
    picture.show(label, heatMap(scene, label), () => weightTable(scene, label));
    const rows = shown.map((row, i) => [
      names[i],
      ...row.map((weight) => weight.toFixed(state.masked ? 4 : 3)),
      sum(row).toFixed(3),
    ]);
    numbers.replaceChildren(dataTable(label, ["", ...names, "sum"], rows));
  }
  const mask = toggle("causal mask: scores of later words are masked before the softmax", state.masked, (masked) => {
    set({ masked });
    draw();
  });
  draw();
  return [
    [group("Mask", mask), note("If weights were zeroed after the softmax and not normalised, rows would sum to less than one.")],
    [picture.element, numbers],
  ];
}

function fourScores(state, set) {
  const picture = plate();
  function draw() {
    const scores = state.four[0];
    const weights = softmax(scores, state.heat);
    const isLecture = state.heat === 1 && String(scores) === String(FOUR);
    const rows = scores.map((score, i) => [`score ${score}`, weights[i], ...(isLecture ? [PRINTED[i]] : [])]);
    const series = ["softmax", ...(isLecture ? ["as the lecture prints it"] : [])];
    const label = "Softmax of four scores";
    picture.show(label, barChart({ label, rows, series, most: 1 }), () => numberTable(label, ["", ...series], rows, 6));
  }
  const change = (change) => {
    set(change);
    draw();
  };
  const sliders = FOUR.map(
    (_, i) =>
      slider(`score ${i + 1}`, state.four[0][i], fields.four, (number) =>
        change({ four: [state.four[0].with(i, number)] }),
      ).element,
  );
  const temperature = slider("temperature", state.heat, fields.heat, (heat) => change({ heat })).element;
  draw();
  return [[group("Scores", ...sliders, temperature)], [picture.element]];
}

function numpyWords(state, set) {
  const numbers = html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" });
  const picture = plate();
  function draw() {
    const { scores, weights, outputs } = fourWords(state.numpy);
    const rows = scores.map((row, i) => [`word ${i + 1}`, written(row), written(weights[i]), written(outputs[i])]);
    numbers.replaceChildren(
      dataTable(`np.random.seed(${state.numpy})`, ["", "scores", "weights", "attention"], rows, "wrapped"),
    );
    const names = scores.map((_, i) => `word ${i + 1}`);
    const scene = { source: names, target: names, gold: [], isGold: () => false, matrix: weights };
    const label = `Weights of four words, seed ${state.numpy}`;
    picture.show(label, heatMap(scene, label), () => weightTable(scene, label));
  }
  const seed = slider("seed", state.numpy, fields.numpy, (numpy) => {
    set({ numpy });
    draw();
  });
  draw();
  return [
    [
      group("NumPy's random numbers", seed.element),
      note("Word 3 is the sum of words 1 and 2: so are its query, its key, its value and its scores."),
    ],
    [numbers, picture.element],
  ];
}

function additiveScore(state, set) {
  const numbers = html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" });
  const picture = plate();
  function draw() {
    const { scores, weights, context } = additive(state.v[0], state.s[0], STATES);
    const rows = STATES.map((h, i) => [`h${i + 1} = [${h}]`, scores[i].toFixed(6), weights[i].toFixed(6)]);
    numbers.replaceChildren(dataTable(`Context: ${written(context)}`, ["state", "score", "weight"], rows));
    const label = "Weights of three states";
    picture.show(
      label,
      barChart({ label, rows: rows.map(([name], i) => [name, weights[i]]), series: ["weight"], most: 1 }),
      () => dataTable(label, ["", "score", "weight"], rows),
    );
  }
  const change = (name, i) => (number) => {
    set({ [name]: [state[name][0].with(i, number)] });
    draw();
  };
  const two = (name, label) =>
    [0, 1].map((i) => slider(`${label}, number ${i + 1}`, state[name][0][i], fields[name], change(name, i)).element);
  draw();
  return [
    [
      group("v and the decoder's state s", ...two("v", "v"), ...two("s", "s")),
      note("score = v · tanh(s + h), Bahdanau's with identity matrices."),
    ],
    [numbers, picture.element],
  ];
}

const VIEWS = {
  "Six words": sixWords,
  "Four scores": fourScores,
  "Four words in NumPy": numpyWords,
  "Additive score": additiveScore,
};

function open(state, remember) {
  const stage = html("div", { class: "work" });
  const set = (change) => {
    Object.assign(state, change);
    remember();
  };
  function show() {
    const [controls, results] = VIEWS[state.view](state, set);
    stage.replaceChildren(html("div", {}, ...controls), html("div", {}, ...results));
  }
  const views = choice("Example", fields.view.options, state.view, (view) => {
    set({ view });
    show();
  });
  show();
  return html("div", { class: "lab" }, views, stage);
}

export const bench = {
  about: "Other numbers that the lectures print, to try and to check.",
  claims: ["N-07", "N-08", "N-12", "N-13", "N-14", "N-15", "N-17"],
  fields,
  open,
};
