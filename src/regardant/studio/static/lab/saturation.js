// Why scores are divided by sqrt(d_k): random queries and keys of growing size.

import { barChart, lineChart, short } from "./charts.js";
import { button, choice, dataTable, group, html, numberTable, plate, slider } from "./controls.js";
import * as field from "./fields.js";
import { dot, entropy, jacobianNorm, largest, range, softmax, variance } from "./mathematics.js";
import { RandomState } from "./random.js";
import { products, saturation } from "./sampling.js";

const DIMENSIONS = [4, 16, 64, 256, 512];
const [PAIRS, SETS] = [2000, 25];
const MEASURES = {
  "Largest weight": "top",
  Entropy: "entropy",
  "Gradient: norm of the Jacobian": "jacobian",
  "Variance of scores": "variance",
};

const fields = {
  d: field.number(64, 1, 1024, { step: 1, log: true }),
  keyCount: field.number(32, 2, 64, { step: 1 }),
  draw: field.number(0, 0, 9999, { step: 1 }),
  measure: field.oneOf(Object.keys(MEASURES)),
};

// Draws the weights of one query over random keys, undivided and divided. Returns a sentence about them.
function drawRow(plate, state) {
  const random = new RandomState(state.draw);
  const query = random.vector(state.d);
  const scores = random.matrix(state.keyCount, state.d).map((key) => dot(query, key));
  const [plain, scaled] = [softmax(scores), softmax(scores, Math.sqrt(state.d))];
  const order = range(state.keyCount)
    .sort((a, b) => scores[b] - scores[a])
    .slice(0, 8);
  const rows = order.map((i) => [`key ${i + 1}, score ${scores[i].toFixed(2)}`, plain[i], scaled[i]]);
  const series = ["q·k", `q·k / √${state.d}`];
  const label = `One random query: its ${rows.length} best of ${state.keyCount} keys`;
  plate.show(label, barChart({ label, rows, series, most: 1 }), () => numberTable(label, ["key", ...series], rows));
  const tell = (weights) =>
    `largest weight ${largest(weights).toFixed(3)}, entropy ${entropy(weights).toFixed(3)}, gradient ${jacobianNorm(weights).toFixed(3)}`;
  return `Undivided: ${tell(plain)}. Divided by √d_k: ${tell(scaled)}. Equal weights would have the entropy ${Math.log(state.keyCount).toFixed(3)}. The ranking of keys is the same.`;
}

function drawCurve(plate, state, known) {
  const name = MEASURES[state.measure];
  const points = (which) => known.map((one) => [one.d, one[which][name]]);
  const series = [
    { name: "undivided", points: points("plain"), dots: true },
    { name: "divided by √d", points: points("scaled"), dots: true, dash: 1 },
    ...(name === "variance" ? [{ name: "d", points: DIMENSIONS.map((d) => [d, d]), dash: 2, hue: 5 }] : []),
  ];
  const label = `${state.measure} by d_k, mean of ${SETS * 10} random queries`;
  const y = name === "variance" ? { name: state.measure, log: true } : { name: state.measure, from: 0 };
  const drawing = lineChart({ label, x: { name: "d_k", log: true }, y, series, marks: [[state.d, "d_k"]] });
  plate.show(label, drawing, () =>
    dataTable(
      label,
      ["d_k", "undivided", "divided by √d"],
      known.map(({ d, plain, scaled }) => [String(d), short(plain[name]), short(scaled[name])]),
    ),
  );
}

function open(state, remember) {
  const answer = html("p", { class: "answer", "aria-live": "polite" });
  const [row, curve] = [plate(), plate()];
  let [known, asked] = [[], 0];

  const drawOne = () => (answer.textContent = drawRow(row, state));
  const drawAll = () => known.length && drawCurve(curve, state, known);

  async function sample() {
    const mine = ++asked;
    const random = new RandomState(state.draw);
    const found = [];
    for (const d of DIMENSIONS) {
      const { plain, scaled } = await saturation(random, { d, keys: state.keyCount, sets: SETS });
      const spread = variance(await products(random, PAIRS, d));
      if (mine !== asked) return; // the settings were changed meanwhile
      found.push({ d, plain: { ...plain, variance: spread }, scaled: { ...scaled, variance: spread / d } });
    }
    known = found;
    drawAll();
  }

  const set =
    (name, ...redraw) =>
    (value) => {
      state[name] = value;
      remember();
      redraw.forEach((part) => part());
    };
  let waiting = null;
  const soon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(sample, 300);
  };
  const seed = slider("seed", state.draw, fields.draw, set("draw", drawOne, soon));
  const controls = html(
    "div",
    {},
    group(
      "Random queries and keys",
      slider("d_k", state.d, fields.d, set("d", drawOne, drawAll)).element,
      slider("keys", state.keyCount, fields.keyCount, set("keyCount", drawOne, soon)).element,
      seed.element,
      button("Draw others", () => {
        seed.set((state.draw + 1) % 10000);
        set("draw", drawOne, soon)((state.draw + 1) % 10000);
      }),
    ),
    group("By d_k", choice("Measure", Object.keys(MEASURES), state.measure, set("measure", drawAll))),
  );
  drawOne();
  sample();
  return html("div", { class: "work" }, controls, html("div", {}, answer, row.element, curve.element));
}

export const bench = {
  about:
    "The product of two random vectors of d_k numbers has the variance d_k. A softmax of such scores puts nearly all weight on one key, and a saturated softmax hardly responds to its scores: gradients vanish. Divided by √d_k the variance is 1, whatever d_k is.",
  claims: ["N-19", "N-20"],
  fields,
  open,
};
