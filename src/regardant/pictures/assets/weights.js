// Encoded attention weights of a layer, deflated, in base64: the largest weight of each row in float32 [heads, rows],
// then a byte for each weight [heads, rows, columns], 255 for the largest of its row.

export const MEAN = -1; // index that stands for the mean of the layer's heads

// One kind of attention over an item. `load` returns a promise of a layer's bytes; it is called when the layer is first
// shown. `layouts` are those of the item's record; a kind refers to them by index.
export function readKind(record, layouts, load) {
  const layers = Array(record.layers);
  return {
    ...record,
    sourceLayout: layouts[record.sourceLayout] ?? null,
    targetLayout: layouts[record.targetLayout] ?? null,
    bytesOf: (layer) => (layers[layer] ??= load(layer)),
    hasUnits: record.sourceUnits.length > 0,
  };
}

export async function inflate(base64) {
  const letters = atob(base64);
  const packed = new Uint8Array(letters.length);
  for (let i = 0; i < packed.length; i++) packed[i] = letters.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Data of a head's drawings: labels of columns and rows, their layouts, gold links, and one Float32Array per row.
export async function sceneOf(kind, layer, head, inWords) {
  const matrix = matrixOf(kind, await kind.bytesOf(layer), head);
  if (!inWords) return { ...scene(kind.source, kind.target, kind.gold, matrix), layout: kind.sourceLayout };
  const [source, target] = [kind.sourceUnits, kind.targetUnits].map((units) => units.map(([word]) => word));
  return scene(source, target, [], merged(matrix, kind.sourceUnits, kind.targetUnits));
}

function scene(source, target, gold, matrix) {
  const keys = new Set(gold.map(String));
  return { source, target, gold, matrix, layout: null, isGold: (column, row) => keys.has(`${column},${row}`) };
}

// Number of elements before those of the grid, drawn beside it: a class token, or none.
export function besideGrid(labels, layout) {
  return labels.length - layout.rows * layout.columns;
}

// The weights of a row, or the mean of all rows.
export function rowOf(scene, row) {
  if (row !== null) return scene.matrix[row];
  return scene.source.map((_, i) => scene.matrix.reduce((sum, weights) => sum + weights[i], 0) / scene.matrix.length);
}

export function matrixOf(kind, bytes, head) {
  const heads = head === MEAN ? [...Array(kind.heads).keys()] : [head];
  const [rows, columns] = [kind.target.length, kind.source.length];
  const peaks = new Float32Array(bytes.buffer, 0, kind.heads * rows);
  const fractions = bytes.subarray(peaks.byteLength);
  return kind.target.map((_, row) => {
    const weights = new Float32Array(columns);
    for (const one of heads) {
      const line = one * rows + row;
      const scale = peaks[line] / (255 * heads.length);
      for (let i = 0; i < columns; i++) weights[i] += fractions[line * columns + i] * scale;
    }
    return weights;
  });
}

// Weights of words from weights of pieces: the sum over the pieces of a key, the mean over the pieces of a query.
function merged(matrix, sourceUnits, targetUnits) {
  let row = 0;
  return targetUnits.map(([, height]) => {
    const weights = new Float32Array(sourceUnits.length);
    for (const end = row + height; row < end; row++) {
      let column = 0;
      sourceUnits.forEach(([, width], unit) => {
        for (const last = column + width; column < last; column++) weights[unit] += matrix[row][column] / height;
      });
    }
    return weights;
  });
}

// The maximum of every block, so that at most `most` rows and columns remain.
export function pooled(matrix, most) {
  const [down, across] = [matrix.length, matrix[0].length].map((length) => Math.ceil(length / most));
  if (down === 1 && across === 1) return matrix;
  return Array.from({ length: Math.ceil(matrix.length / down) }, (_, block) => {
    const largest = new Float32Array(Math.ceil(matrix[0].length / across));
    for (const weights of matrix.slice(block * down, (block + 1) * down)) {
      weights.forEach((weight, i) => (largest[Math.floor(i / across)] = Math.max(largest[Math.floor(i / across)], weight)));
    }
    return largest;
  });
}

// Indices of the largest weights of a row, in descending order, without weights below a 200th of the largest.
export function strongest(weights, count) {
  const least = Math.max(...weights) / 200;
  const seen = [...weights.keys()].filter((i) => weights[i] > least);
  return seen.sort((a, b) => weights[b] - weights[a]).slice(0, count);
}

// Whole percent, with a decimal below 10%.
export function percent(weight) {
  return `${(100 * weight).toFixed(weight > 0 && weight < 0.0995 ? 1 : 0)}%`;
}
