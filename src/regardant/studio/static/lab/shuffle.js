// The exercise of the lectures: keys and values shuffled, together or alone, and words shuffled before self-attention.

import { button, choice, dataTable, group, html, note, plate, row, slider } from "./controls.js";
import { heatMap, weightTable } from "../pictures/drawing.js";
import * as field from "./fields.js";
import { attention, largestDifference, permuted, range, weightsOf } from "./mathematics.js";
import { RandomState } from "./random.js";

const SIZE = 4; // numbers of a vector
const MOST = 8;
const MOVED = ["keys with values", "values alone", "keys alone", "words of self-attention"];
const EXPLAINED = {
  [MOVED[0]]:
    "A sum has no order: each value still comes with its key, so every output stays the same. The columns of the weights move.",
  [MOVED[1]]: "Each weight now applies to another value: the weights stay the same, the outputs change.",
  [MOVED[2]]: "Each value now has another key: weights and outputs change.",
  [MOVED[3]]:
    "Queries, keys and values come from the same words: the outputs move with the words. Self-attention is equivariant, not invariant.",
};
const SAME = 1e-12;

const fields = {
  moved: field.oneOf(MOVED),
  count: field.number(5, 2, MOST, { step: 1 }),
  seed: field.number(0, 0, 9999, { step: 1 }),
  order: field.numbers([[2, 0, 4, 1, 3, 5, 6, 7]], 0, MOST - 1, 1),
};

// Weights and outputs before and after the shuffle; rows are queries.
function experiment({ moved, count, seed }, order) {
  const random = new RandomState(seed);
  const [words, others, values] = range(3).map(() => random.matrix(count, SIZE));
  const itself = moved === MOVED[3];
  const [q, k, v] = itself ? [words, words, words] : [random.matrix(3, SIZE), others, values];
  const shuffled = {
    q: itself ? permuted(q, order) : q,
    k: moved === MOVED[1] ? k : permuted(k, order),
    v: moved === MOVED[2] ? v : permuted(v, order),
  };
  const before = { weights: weightsOf(q, k), outputs: attention(q, k, v) };
  const after = { weights: weightsOf(shuffled.q, shuffled.k), outputs: attention(shuffled.q, shuffled.k, shuffled.v) };
  return { before, after, itself };
}

function open(state, remember) {
  const answer = html("p", { class: "answer", "aria-live": "polite" });
  const places = html("div", { class: "bar", role: "group", "aria-label": "Order" });
  const [first, second] = [plate(), plate()];
  const numbers = html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" });

  const order = () => {
    const wanted = [...new Set(state.order[0])].filter((i) => i < state.count);
    return [...wanted, ...range(state.count).filter((i) => !wanted.includes(i))]; // valid, whatever the URL holds
  };

  function draw() {
    const now = order();
    const found = experiment(state, now);
    const queries = range(found.before.weights.length).map((i) => `q${i + 1}`);
    const keys = range(state.count).map((i) => `k${i + 1}`);
    const keysAfter = state.moved === MOVED[1] ? keys : permuted(keys, now);
    const queriesAfter = found.itself ? permuted(queries, now) : queries;
    drawWeights(first, "Weights before", queries, keys, found.before.weights);
    drawWeights(second, "Weights after", queriesAfter, keysAfter, found.after.weights);
    numbers.replaceChildren(outputs(queries, queriesAfter, found));
    answer.replaceChildren(...describe(state, found, now));
    writePlaces(now);
  }

  function set(change) {
    Object.assign(state, change);
    remember();
    draw();
  }

  function swap(now, i, j) {
    const next = now.with(i, now[j]).with(j, now[i]);
    set({ order: [[...next, ...range(MOST).filter((at) => !next.includes(at))]] });
    places.children[j].focus(); // keep the focus on the moved item
  }

  // One button per place; arrow keys and clicks move its item.
  function writePlaces(now) {
    const buttons = now.map((index, i) => {
      const one = button(`${i + 1}: was ${index + 1}`, () => i + 1 < now.length && swap(now, i, i + 1));
      one.setAttribute("title", "Click or press → to move right, ← to move left");
      one.addEventListener("keydown", (event) => {
        const j = i + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0);
        if (j !== i && j >= 0 && j < now.length) swap(now, i, j);
      });
      return one;
    });
    places.replaceChildren(...buttons);
  }

  const shuffle = (next) => set({ order: [[...next, ...range(MOST, state.count).slice(0, MOST - state.count)]] });
  const controls = html(
    "div",
    {},
    group(
      "What is shuffled",
      choice("What is shuffled", MOVED, state.moved, (moved) => set({ moved })),
    ),
    group(
      "Order",
      places,
      row(
        button("Shuffle", () => shuffle(new RandomState(Math.floor(Math.random() * 2 ** 32)).order(state.count))),
        button("Reverse", () => shuffle(order().reverse())),
        button("As it was", () => shuffle(range(state.count))),
      ),
      note("Click a place to swap it with the next, or move it with the arrow keys."),
    ),
    group(
      "Random vectors of four numbers",
      slider("keys", state.count, fields.count, (count) => set({ count })).element,
      slider("seed", state.seed, fields.seed, (seed) => set({ seed })).element,
    ),
  );
  draw();
  return html("div", { class: "work" }, controls, html("div", {}, answer, first.element, second.element, numbers));
}

function drawWeights(plate, label, target, source, weights) {
  const scene = { source, target, gold: [], isGold: () => false, matrix: weights };
  plate.show(label, heatMap(scene, label), () => weightTable(scene, label));
}

function outputs(queries, queriesAfter, { before, after }) {
  const write = (row) => row.map((number) => number.toFixed(4)).join("  ");
  const rows = queries.map((name, i) => [
    `${i + 1}`,
    name,
    write(before.outputs[i]),
    queriesAfter[i],
    write(after.outputs[i]),
  ]);
  return dataTable("Outputs", ["row", "query", "before", "query", "after"], rows);
}

function describe(state, { before, after, itself }, order) {
  const same = largestDifference(after.outputs, before.outputs);
  const moved = itself ? largestDifference(after.outputs, permuted(before.outputs, order)) : null;
  const size = (number) =>
    number === 0 ? "none" : number < SAME ? `none but rounding (${number.toExponential(0)})` : number.toFixed(4);
  const shifted = moved === null ? "" : ` With the outputs before moved likewise: ${size(moved)}.`;
  return [`Largest difference between outputs before and after: ${size(same)}.${shifted} ${EXPLAINED[state.moved]}`];
}

export const bench = {
  about:
    "Does order matter to attention? Shuffle keys and values together, or one of them alone, and see which outputs move.",
  claims: ["N-21"],
  fields,
  open,
};
