// Similarity of two words.

// Twice the matching letters over all letters, as in Python's difflib: the longest common substring, then the same left
// and right of it (Ratcliff and Obershelp).
export function matchingRatio(a, b) {
  const [left, right] = [[...a], [...b]];
  const all = left.length + right.length;
  return all === 0 ? 1 : (2 * matches(left, right)) / all;
}

function matches(a, b) {
  let best = { length: 0, i: 0, j: 0 };
  for (let i = 0; i < a.length; i++) {
    for (let j = 0; j < b.length; j++) {
      let length = 0;
      while (i + length < a.length && j + length < b.length && a[i + length] === b[j + length]) length++;
      if (length > best.length) best = { length, i, j };
    }
  }
  if (best.length === 0) return 0;
  const [i, j] = [best.i + best.length, best.j + best.length];
  return best.length + matches(a.slice(0, best.i), b.slice(0, best.j)) + matches(a.slice(i), b.slice(j));
}

// The cosine between counts of character bigrams, with ^ and $ as the ends of a word.
export function pairsCosine(a, b) {
  const [left, right] = [pairs(a), pairs(b)];
  let common = 0;
  for (const [pair, count] of left) common += count * (right.get(pair) ?? 0);
  return common / Math.sqrt(squares(left) * squares(right));
}

function pairs(word) {
  const letters = ["^", ...word, "$"];
  const counts = new Map();
  for (let i = 1; i < letters.length; i++) {
    const pair = letters[i - 1] + letters[i];
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return counts;
}

const squares = (counts) => [...counts.values()].reduce((total, count) => total + count * count, 0);
