// Positions as numbers. PE(p, 2i) = sin(p w_i), PE(p, 2i + 1) = cos(p w_i), w_i = 10000^(-2i/d), i from `first`.
// Vaswani et al. 2017, "Attention is all you need", https://arxiv.org/abs/1706.03762, section 3.5.

import { dot, range } from "./mathematics.js";

export const frequencies = (size, first = 0) => range(size / 2, first).map((i) => 10000 ** ((-2 * i) / size));
export const wavelength = (frequency) => (2 * Math.PI) / frequency;
export const code = (position, omegas) => omegas.flatMap((w) => [Math.sin(position * w), Math.cos(position * w)]);

export function codes(count, size, first = 0) {
  const omegas = frequencies(size, first);
  return range(count).map((p) => code(p, omegas));
}

// T_k: a pair (sin, cos) times [[cos b, sin b], [-sin b, cos b]], b = k w.
export function turned(of, k, omegas) {
  return omegas.flatMap((w, i) => {
    const [sine, cosine, b] = [of[2 * i], of[2 * i + 1], k * w];
    return [sine * Math.cos(b) + cosine * Math.sin(b), cosine * Math.cos(b) - sine * Math.sin(b)];
  });
}

// PE(p) . PE(p + offset), the same for all p: d/2 at offset 0.
export const similarity = (offset, omegas) => omegas.reduce((total, w) => total + Math.cos(offset * w), 0);

// exp(-rate offset^2), equal to the similarity of sinusoids at offset 1.
export const rbfRate = (omegas) => -Math.log(similarity(1, omegas) / omegas.length);
export const rbf = (offset, rate) => Math.exp(-rate * offset * offset);

// Slopes 2^(-8/H), 2^(-16/H), ..., 2^-8: Press et al. 2022, https://arxiv.org/abs/2108.12409, section 3.
export const alibiSlopes = (heads) => range(heads, 1).map((head) => 2 ** ((-8 * head) / heads));

// q . k for k = q at distance `offset`, both rotated by their positions: Su et al. 2021,
// https://arxiv.org/abs/2104.09864, eq. 34.
export function rotaryScore(query, offset, size) {
  return dot(query, turned(query, offset, frequencies(size)));
}

// The code of a cell of a grid: half the numbers for its row, half for its column.
export function gridCodes(rows, columns, size) {
  const omegas = frequencies(size / 2);
  return range(rows).flatMap((y) => range(columns).map((x) => [...code(y, omegas), ...code(x, omegas)]));
}
