// Why scores are divided by sqrt(d), by samples of random vectors. Sampling runs in parts, so that the page can draw.

import {
  bestOf,
  dot,
  entropy,
  excessKurtosis,
  jacobianNorm,
  largest,
  mean,
  range,
  softmax,
  variance,
} from "./mathematics.js";

const PATIENCE = 40; // milliseconds of sampling before the page may draw

// Calls `part` `count` times and lets the page draw in between.
export async function inParts(count, part) {
  let since = performance.now();
  for (let i = 0; i < count; i++) {
    part(i);
    if (performance.now() - since < PATIENCE) continue;
    await new Promise((resume) => setTimeout(resume));
    since = performance.now();
  }
}

// q . k of Gaussian q and k of d numbers. If d is large, several queries share the same keys: that is almost as good as
// independent pairs, and drawing random numbers takes most of the time.
export async function products(random, count, d) {
  const shared = Math.max(1, Math.floor(d / 16));
  const found = [];
  await inParts(Math.ceil(count / shared ** 2), () => {
    const keys = random.matrix(shared, d);
    for (const query of random.matrix(shared, d)) found.push(...keys.map((key) => dot(query, key)));
  });
  return found;
}

// variance / d at each d.
export async function varianceOf(random, dimensions, count) {
  const ratios = [];
  for (const d of dimensions) ratios.push(variance(await products(random, count, d)) / d);
  return ratios;
}

export const kurtosisOf = async (random, d, count) => excessKurtosis(await products(random, count, d));

const QUERIES = 10; // that share the same keys

// Means over random queries, for the softmax of their scores undivided and divided by sqrt(d).
export async function saturation(random, { d, keys = 32, sets = 150 }) {
  const [plain, scaled] = [[], []];
  await inParts(sets, () => {
    const among = random.matrix(keys, d);
    for (const query of random.matrix(QUERIES, d)) {
      const scores = among.map((key) => dot(query, key));
      plain.push(softmax(scores));
      scaled.push(softmax(scores, Math.sqrt(d)));
    }
  });
  const changed = range(plain.length).filter((i) => bestOf(plain[i]) !== bestOf(scaled[i])).length;
  return { plain: summary(plain), scaled: summary(scaled), changed };
}

const summary = (rows) => ({
  top: mean(rows.map(largest)),
  jacobian: mean(rows.map(jacobianNorm)),
  entropy: mean(rows.map(entropy)),
});
