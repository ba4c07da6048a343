// The words of a text that are new compared with an earlier one: those outside a longest common subsequence.

export function changedWords(before, after) {
  const [old, now] = [before, after].map((text) => text.split(/\s+/).filter(Boolean));
  const longest = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      longest[i][j] = old[i] === now[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  let i = 0;
  return now.map((word, j) => {
    while (i < old.length && old[i] !== word && longest[i + 1][j] >= longest[i][j + 1]) i++;
    const same = i < old.length && old[i] === word;
    if (same) i++;
    return { word, changed: !same };
  });
}
