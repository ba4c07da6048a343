// The stages of attention for one query, in the order of the mechanism, each with its explanation.

import { short } from "./strips.js";

const MOVED = 1e-5; // difference of two scores that counts as a bias
const SCALED = 0.6; // share of the stage in which scores are scaled; then they are masked

// answer: the JSON of /api/steps. Returns [{ id, name, says }].
export function stagesOf(answer, queries, keys) {
  const [word, size] = [`“${queries[answer.query]}”`, answer.q.length];
  const stages = [];
  const best = (numbers) => keys[numbers.indexOf(Math.max(...numbers.map((one) => one ?? -Infinity)))];
  const from = answer.projected ? `The vector x of ${word} has ${answer.projected.x.length} numbers. A learned matrix turns it into a query of ${size}.` : `The query of ${word} has ${size} numbers.`;
  stages.push({ id: "project", name: "Project", says: `${from} Each row below has a key, which is compared with the query, and a value, which is mixed into the output.` });
  if (answer.products) {
    stages.push({ id: "score", name: "Score", says: `The dot product of the query and each key: how well they match. The largest is “${best(answer.products)}”, ${short(Math.max(...answer.products))}.` });
    const masked = answer.scores.filter((one) => one === null).length;
    const biased = answer.scores.some((one, i) => one !== null && Math.abs(one - answer.scaled[i]) > MOVED);
    const says = [
      scaleSays(answer.scale, size),
      biased ? "A position bias is added." : "",
      masked ? `Then ${masked} of ${keys.length} keys are masked: their score becomes −∞.` : "No key is masked for this query.",
    ];
    stages.push({ id: "scale", name: "Scale and mask", says: says.filter(Boolean).join(" ") });
  } else if (answer.scores) {
    stages.push({ id: "score", name: "Score", says: `${answer.mechanism} has a score function of its own; scores are shown after masking. The largest is “${best(answer.scores)}”.` });
  }
  const way = answer.softmax ? "A weight is exp(score), divided by the sum of exp over all scores" : answer.scores ? `${answer.mechanism} has its own function from scores to weights` : `${answer.mechanism} has no scores: these weights are equivalent to its sums`;
  const top = Math.max(...answer.weights);
  stages.push({ id: "weights", name: answer.softmax ? "Softmax" : "Weights", says: `${way}. The weights sum to ${answer.weights.reduce((sum, one) => sum + one, 0).toFixed(2)}; the largest is on “${best(answer.weights)}”, ${Math.round(100 * top)}%.` });
  stages.push({ id: "mix", name: "Mix", says: `The output of this head for ${word} is the sum of the values, each multiplied by its weight.` });
  return stages;
}

function scaleSays(scale, size) {
  const root = Math.abs(scale * Math.sqrt(size) - 1) < 1e-6;
  return root
    ? `Divided by √${size}: dot products of longer vectors vary more, and softmax would put nearly all weight on one key.`
    : `Multiplied by ${short(scale)}, the scale of this mechanism.`;
}

// The sum of weighted values over the first `part` (0 to 1) of all rows.
export function mixed(answer, part) {
  const rows = part * answer.weights.length;
  return answer.v[0].map((_, i) =>
    answer.weights.reduce((sum, weight, row) => sum + weight * answer.v[row][i] * Math.min(1, Math.max(0, rows - row)), 0),
  );
}

// The displayed score of a row at a stage and a part of it (0 to 1); null if it is masked.
export function scoreAt(answer, row, stage, part) {
  if (!answer.products) return answer.scores ? answer.scores[row] : null;
  if (stage === "score") return answer.products[row];
  if (stage === "scale" && part < SCALED) return answer.products[row] + (part / SCALED) * (answer.scaled[row] - answer.products[row]);
  return answer.scores[row];
}
