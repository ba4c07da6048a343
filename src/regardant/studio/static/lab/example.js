// The lectures' worked example: the attention of a decoder that is about to write "chat" for "cat".

import { keepTop, norm, cosine, product, scoresOf, softmax } from "./mathematics.js";

export const WORDS = ["the", "cat", "sat", "on", "the", "mat"];
export const FEATURES = ["animal", "action", "object", "definiteness"];
export const [ANIMAL, ACTION, OBJECT] = [0, 1, 2];
export const [CAT, SAT] = [1, 2];

export const KEYS = [
  [0, 0, 0, 1],
  [1, 0, 0.3, 0],
  [0, 1, 0, 0],
  [0, 0, 0, 0],
  [0, 0, 0, 1],
  [0, 0, 1, 0],
];
export const VALUES = [
  [0.1, 0, 0, 0.8],
  [0.9, 0, 0.1, 0.7],
  [0, 0.9, 0, 0.3],
  [0, 0, 0.5, 0],
  [0, 0, 0, 0.9],
  [0, 0, 0.9, 0.6],
];
export const QUERY = [0.9, 0.1, 0.2, 0.3];
export const ACTION_QUERY = [0.1, 0.9, 0.1, 0.2];
export const ACTION_QUERY_IN_PROSE = [0.1, 0.9, 0.1, 0.1];

// All numbers from a query to its output. Scores are divided by `divisor`; 0 stands for the limit, a hard lookup.
export function steps(query, { keys = KEYS, values = VALUES, divisor = 2, top = keys.length } = {}) {
  const scores = scoresOf([query], keys)[0];
  const scaled = divisor === 0 ? scores : scores.map((score) => score / divisor);
  const kept = keepTop(scaled, top);
  const weights = softmax(kept, divisor === 0 ? 0 : 1);
  return {
    scores,
    scaled,
    exponentials: kept.map(Math.exp), // 0 for scores that top-k masks
    weights,
    output: product([weights], values)[0],
    lengths: keys.map(norm),
    cosines: keys.map((key) => cosine(query, key)),
  };
}

// The names of the features, largest first.
export function bySize(output) {
  const order = output.map((_, i) => i).sort((a, b) => output[b] - output[a]);
  return order.map((i) => FEATURES[i]).join(" ");
}
