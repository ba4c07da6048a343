// The weights that the walk-through of the paper prints for its sentence.

import { largest, largestDifference, range } from "./mathematics.js";

export const SENTENCE = ["YOUR", "CAT", "IS", "A", "LOVELY", "CAT"];
export const TABLE = [
  [0.268, 0.119, 0.134, 0.148, 0.179, 0.152],
  [0.124, 0.278, 0.201, 0.128, 0.154, 0.115],
  [0.147, 0.132, 0.262, 0.097, 0.218, 0.145],
  [0.21, 0.128, 0.206, 0.212, 0.119, 0.125],
  [0.146, 0.158, 0.152, 0.143, 0.227, 0.174],
  [0.195, 0.114, 0.203, 0.103, 0.157, 0.229],
];

export const causal = (size) => range(size).map((i) => range(size).map((j) => j <= i));
export const zeroedAbove = (matrix) => matrix.map((row, i) => row.map((number, j) => (j <= i ? number : 0)));

// log a_ij + log a_jk + log a_ki minus the reverse cycle: 0 for all i, j, k if scores are symmetric.
export function asymmetries(weights) {
  const log = weights.map((row) => row.map(Math.log));
  const off = (i, j) => log[i][j] - log[j][i];
  const words = range(weights.length);
  return words.flatMap((i) =>
    words.flatMap((j) => words.map((k) => ({ of: [i, j, k], by: off(i, j) + off(j, k) + off(k, i) }))),
  );
}

export const asymmetry = (weights) => largest(asymmetries(weights).map(({ by }) => Math.abs(by)));

// The largest difference between the rows, and between the columns, of two equal words.
export function apart(weights, one, other) {
  const columns = weights.map((row) => row[one]);
  return Math.max(
    largestDifference(weights[one], weights[other]),
    largestDifference(
      columns,
      weights.map((row) => row[other]),
    ),
  );
}
