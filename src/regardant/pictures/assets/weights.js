// Attention weights as they travel: one byte per weight, [layers, heads, target, source], base64.

export const MEAN = -1; // in place of a head: the mean of the layer's heads

export function readPicture(record) {
  return {
    ...record,
    bytes: Uint8Array.from(atob(record.weights), (letter) => letter.charCodeAt(0)),
    goldKeys: new Set(record.gold.map(([source, target]) => goldKey(source, target))),
  };
}

export function isGold(picture, source, target) {
  return picture.goldKeys.has(goldKey(source, target));
}

function goldKey(source, target) {
  return `${source}-${target}`;
}

// One Float32Array of source weights per target word.
export function matrixOf(picture, layer, head) {
  const heads = head === MEAN ? [...Array(picture.heads).keys()] : [head];
  const [rows, columns] = [picture.target.length, picture.source.length];
  return picture.target.map((_, row) => {
    const weights = new Float32Array(columns);
    for (const one of heads) {
      const start = ((layer * picture.heads + one) * rows + row) * columns;
      for (let i = 0; i < columns; i++) weights[i] += picture.bytes[start + i] / 255 / heads.length;
    }
    return weights;
  });
}

// Indices of the source words a row looks at hardest, hardest first, leaving out what rounds to nothing.
export function strongest(weights, count) {
  const seen = [...weights.keys()].filter((i) => weights[i] >= 0.005);
  return seen.sort((a, b) => weights[b] - weights[a]).slice(0, count);
}

export function percent(weight) {
  return `${Math.round(weight * 100)}%`;
}
