// The stages of attention for one query, in the order of the mechanism, each with its explanation.

import { short } from "./strips.js";

const MOVED = 1e-5; // difference of two scores that counts as a bias
const SCALED = 0.6; // share of the stage in which scores are scaled; then they are masked

// told: the answer of /api/steps. Returns [{ id, name, says }].
export function stagesOf(told, queries, keys) {
  const [word, size] = [`“${queries[told.query]}”`, told.q.length];
  const stages = [];
  const best = (numbers) => keys[numbers.indexOf(Math.max(...numbers.map((one) => one ?? -Infinity)))];
  const from = told.projected ? `The vector x of ${word} has ${told.projected.x.length} numbers. A learned matrix turns it into a query of ${size}.` : `${word} asks with a query of ${size} numbers.`;
  stages.push({ id: "project", name: "Project", says: `${from} Each row below has a key, to be found by, and a value, to be handed over.` });
  if (told.products) {
    stages.push({ id: "score", name: "Score", says: `The query times a key, number by number, summed: how well they fit. The largest is “${best(told.products)}”, ${short(Math.max(...told.products))}.` });
    const masked = told.scores.filter((one) => one === null).length;
    const biased = told.scores.some((one, i) => one !== null && Math.abs(one - told.scaled[i]) > MOVED);
    const says = [
      scaleSays(told.scale, size),
      biased ? "Positions add their bias." : "",
      masked ? `Then ${masked} of ${keys.length} keys are masked: their score becomes −∞.` : "No key is masked for this query.",
    ];
    stages.push({ id: "scale", name: "Scale and mask", says: says.filter(Boolean).join(" ") });
  } else if (told.scores) {
    stages.push({ id: "score", name: "Score", says: `${told.mechanism} scores pairs in its own way, masks included. The largest is “${best(told.scores)}”.` });
  }
  const way = told.softmax ? "exp(score), divided by the sum of all" : told.scores ? `${told.mechanism} turns scores into weights in its own way` : `${told.mechanism} has no scores: these are the weights that its sums amount to`;
  const top = Math.max(...told.weights);
  stages.push({ id: "weights", name: told.softmax ? "Softmax" : "Weights", says: `${way}. They sum to ${told.weights.reduce((sum, one) => sum + one, 0).toFixed(2)}; most is on “${best(told.weights)}”, ${Math.round(100 * top)}%.` });
  stages.push({ id: "mix", name: "Mix", says: `Each value counts by its weight, and the sum is what this head writes for ${word}.` });
  return stages;
}

function scaleSays(scale, size) {
  const root = Math.abs(scale * Math.sqrt(size) - 1) < 1e-6;
  return root
    ? `Divided by √${size}: sums of more numbers vary more, and softmax would put all weight on one key.`
    : `Times ${short(scale)}, the scale of this mechanism.`;
}

// The sum of weighted values over the first `part` (0 to 1) of all rows.
export function mixed(told, part) {
  const rows = part * told.weights.length;
  return told.v[0].map((_, i) =>
    told.weights.reduce((sum, weight, row) => sum + weight * told.v[row][i] * Math.min(1, Math.max(0, rows - row)), 0),
  );
}

// The displayed score of a row at a stage and a part of it (0 to 1); null if it is masked.
export function scoreAt(told, row, stage, part) {
  if (!told.products) return told.scores ? told.scores[row] : null;
  if (stage === "score") return told.products[row];
  if (stage === "scale" && part < SCALED) return told.products[row] + (part / SCALED) * (told.scaled[row] - told.products[row]);
  return told.scores[row];
}
