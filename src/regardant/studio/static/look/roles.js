// The role of a head on one item, in words: the pattern that explains most of its weight.

import { sceneOf } from "../pictures/weights.js";

const MOST_OF_IT = 0.5; // least share of the weight of a pattern
const EVEN = 0.93; // entropy, relative to the largest possible, of an even spread
const OFFSETS = { "-1": "the $ before", 1: "the $ after", 0: "itself", "-2": "the second $ before", 2: "the second $ after" };

// The role of every head of a kind: [{ layer, head, says, strength, telling }], in the order of layers and heads.
export async function rolesOf(kind) {
  const found = [];
  for (let layer = 0; layer < kind.layers; layer++) {
    for (let head = 0; head < kind.heads; head++) {
      const scene = await sceneOf(kind, layer, head, kind.hasUnits);
      found.push({ layer, head, ...roleOf(scene, unitOf(kind)) });
    }
  }
  return found;
}

export function unitOf(kind) {
  if (kind.sourceLayout?.places.length) return "node";
  return kind.sourceLayout ? "part" : "word";
}

// The strongest pattern of a matrix: `says` in words, `strength` its share of the weight, `telling` its interest.
export function roleOf({ source, target, matrix, layout }, unit) {
  const own = source.length === target.length && source.every((word, i) => word === target[i]);
  const rows = matrix.map((_, row) => row).filter((row) => matrix[row].some((weight) => weight > 0));
  const later = rows.length > 1 ? rows.slice(1) : rows; // the first token of a causal text sees only itself
  const mean = (share) => later.reduce((sum, row) => sum + share(matrix[row], row), 0) / Math.max(1, later.length);
  const habits = [];
  if (own) {
    for (const [offset, says] of Object.entries(OFFSETS)) {
      const there = later.filter((row) => row + Number(offset) >= 0 && row + Number(offset) < source.length);
      const share = there.reduce((sum, row) => sum + matrix[row][row + Number(offset)], 0) / Math.max(1, there.length);
      if (offset !== "0" && layout) continue; // adjacent elements of the list are not neighbours in a picture or graph
      habits.push({ says: `looks at ${says.replace("$", unit)}`, share, worth: offset === "0" ? 0.5 : 1.2 });
    }
    if (layout?.edges.length) habits.push(neighbours(layout, source, matrix, later));
  }
  source.forEach((word, i) => {
    const share = mean((weights) => weights[i]);
    habits.push({ says: `looks mostly at “${word}”`, share, worth: 0.3 });
  });
  const peaks = later.map((row) => matrix[row].indexOf(Math.max(...matrix[row])));
  const different = new Set(peaks).size / Math.max(1, peaks.length);
  const largest = mean((weights) => Math.max(...weights));
  if (!own && different > 0.5) habits.push({ says: `picks one ${unit} for each ${unit} it writes`, share: largest, worth: 1.5 });
  const entropy = mean((weights) => {
    const seen = [...weights].filter((weight) => weight > 0);
    return -seen.reduce((sum, weight) => sum + weight * Math.log(weight), 0) / Math.log(Math.max(2, seen.length));
  });
  const best = habits.sort((a, b) => b.share - a.share || b.worth - a.worth)[0];
  if (entropy > EVEN) return { says: `spreads evenly over all ${unit}s`, strength: entropy, telling: 0.05 };
  if (best && best.share >= MOST_OF_IT) return { says: best.says, strength: best.share, telling: best.share * best.worth };
  const strongest = later.flatMap((row) => [...matrix[row]].map((weight, i) => [weight, row, i])).sort((a, b) => b[0] - a[0])[0];
  if (!strongest) return { says: "sees nothing here", strength: 0, telling: 0 };
  const [weight, row, i] = strongest;
  return { says: `has no clear pattern; its largest weight is from “${target[row]}” to “${source[i]}”`, strength: weight, telling: 0.6 * largest };
}

function neighbours(layout, source, matrix, rows) {
  const before = source.length - layout.places.length;
  const joined = rows.map((row) => layout.edges.flatMap(([a, b]) => (a + before === row ? [b] : b + before === row ? [a] : [])));
  const share = rows.reduce((sum, row, n) => sum + joined[n].reduce((all, i) => all + matrix[row][i + before], 0), 0);
  return { says: "looks at its neighbours", share: share / Math.max(1, rows.length), worth: 1.2 };
}
