// The arithmetic of attention on plain arrays: a vector is an array of numbers, a matrix an array of rows.
// Rows of weights are queries and sum to one, or to zero if all keys are masked.

export const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
export const norm = (a) => Math.sqrt(dot(a, a));
export const largest = (numbers) => numbers.reduce((most, number) => Math.max(most, number), -Infinity);
export const bestOf = (numbers) => numbers.indexOf(largest(numbers));
export const mean = (numbers) => sum(numbers) / numbers.length;
export const range = (count, start = 0) => Array.from({ length: count }, (_, i) => start + i);
export const identity = (size) => range(size).map((i) => range(size).map((j) => Number(i === j)));
export const transpose = (matrix) => matrix[0].map((_, j) => matrix.map((row) => row[j]));
export const scoresOf = (queries, keys) => queries.map((query) => keys.map((key) => dot(query, key)));
export const product = (a, b) => scoresOf(a, transpose(b));

// A plain loop for speed: sampling computes millions of dot products.
export function dot(a, b) {
  let total = 0;
  for (let i = 0; i < a.length; i++) total += a[i] * b[i];
  return total;
}

// 0 if a vector is zero, which has no direction.
export function cosine(a, b) {
  const lengths = norm(a) * norm(b);
  return lengths === 0 ? 0 : dot(a, b) / lengths;
}

export function variance(numbers) {
  const centre = mean(numbers);
  return sum(numbers.map((number) => (number - centre) ** 2)) / (numbers.length - 1);
}

// 0 for Gaussian numbers.
export function excessKurtosis(numbers) {
  const centre = mean(numbers);
  return mean(numbers.map((number) => (number - centre) ** 4)) / variance(numbers) ** 2 - 3;
}

export function largestDifference(a, b) {
  const others = b.flat();
  return largest(a.flat().map((number, i) => Math.abs(number - others[i])));
}

// Temperature 0 is the limit: the largest score gets all weight, shared equally in a tie.
export function softmax(scores, temperature = 1) {
  const most = largest(scores);
  if (most === -Infinity) return scores.map(() => 0); // all keys are masked
  const powers = scores.map((score) =>
    temperature === 0 ? Number(score === most) : Math.exp((score - most) / temperature),
  );
  const total = sum(powers);
  return powers.map((power) => power / total);
}

// Scores below the k-th largest are masked; ties with it are kept.
export function keepTop(scores, k) {
  if (k >= scores.length) return scores;
  const least = [...scores].sort((a, b) => b - a)[k - 1];
  return scores.map((score) => (score >= least ? score : -Infinity));
}

// mask[i][j]: query i may see key j. The temperature replaces sqrt(d).
export function weightsOf(
  queries,
  keys,
  { temperature = Math.sqrt(keys[0].length), top = Infinity, mask = null } = {},
) {
  return scoresOf(queries, keys).map((row, i) => {
    const seen = row.map((score, j) => (mask === null || mask[i][j] ? score : -Infinity));
    return softmax(keepTop(seen, top), temperature);
  });
}

export const attention = (queries, keys, values, options) => product(weightsOf(queries, keys, options), values);

// In nats: 0 for a single key, ln n for n equal weights.
export const entropy = (weights) => -sum(weights.map((weight) => (weight > 0 ? weight * Math.log(weight) : 0)));

// Frobenius norm of diag(w) - w wT, the Jacobian of the weights with respect to the scores.
export function jacobianNorm(weights) {
  const squares = dot(weights, weights);
  const cubes = sum(weights.map((weight) => weight ** 3));
  return Math.sqrt(Math.max(0, squares - 2 * cubes + squares * squares));
}

export const permuted = (rows, order) => order.map((index) => rows[index]);

// Numbers from first to last, evenly spaced on a logarithmic scale.
export function spaced(first, last, count) {
  const step = Math.log(last / first) / (count - 1);
  return range(count).map((i) => first * Math.exp(i * step));
}

// The largest number for which `holds` is true, by bisection; it is true at `low` and false at `high`.
export function highest(holds, low = 0.1, high = 2) {
  for (let i = 0; i < 40; i++) {
    const middle = (low + high) / 2;
    if (holds(middle)) low = middle;
    else high = middle;
  }
  return low;
}
