// The cost of a model, in closed form. A multiply-add is two FLOPs; the model has n tokens of d numbers, heads, layers
// and a feed-forward network of d_ff.

// Kinds of layers: multiply-adds of projections and of mixing tokens, numbers kept, and path length between both ends.
export const KINDS = {
  full: {
    name: "full attention",
    note: "every query attends to every key",
    projections: ({ n, d }) => 4 * n * d * d,
    mix: ({ n, d }) => 2 * n * n * d,
    numbers: ({ n, heads }) => heads * n * n,
    path: () => 1,
  },
  window: {
    name: "window",
    note: "each query attends to a fixed number of keys on each side",
    projections: ({ n, d }) => 4 * n * d * d,
    mix: ({ n, d, window }) => 2 * n * Math.min(n, 2 * window + 1) * d,
    numbers: ({ n, heads, window }) => heads * n * Math.min(n, 2 * window + 1),
    path: ({ n, window }) => Math.ceil((n - 1) / window),
  },
  linear: {
    name: "linear attention",
    note: "keys and values are summed up once, in d/heads features",
    projections: ({ n, d }) => 4 * n * d * d,
    mix: ({ n, d, heads }) => (2 * n * d * d) / heads,
    numbers: ({ n, d }) => n * d,
    path: () => 1,
  },
  lowrank: {
    name: "low rank",
    note: "keys and values are projected to a fixed number of positions, as in Linformer",
    projections: ({ n, d }) => 4 * n * d * d,
    mix: ({ n, d, rank }) => 4 * n * Math.min(n, rank) * d,
    numbers: ({ n, heads, rank }) => heads * n * Math.min(n, rank),
    path: () => 1,
  },
  recurrent: {
    name: "recurrent",
    note: "one step after the other",
    projections: ({ n, d }) => n * d * d,
    mix: ({ n, d }) => n * d * d,
    numbers: ({ n, d }) => n * d,
    path: ({ n }) => n - 1,
  },
  convolution: {
    name: "convolution",
    note: "fixed offsets, every channel with every other",
    projections: () => 0,
    mix: ({ n, d, kernel }) => n * kernel * d * d,
    numbers: ({ n, d }) => n * d,
    path: ({ n, kernel }) => Math.ceil((n - 1) / (kernel - 1)),
  },
};

export const feedForward = ({ n, d, d_ff }) => 2 * n * d * d_ff;

// Multiply-adds counted: of the mixing alone, with its projections, or of the whole layer.
export const PARTS = {
  "the mixing alone": (kind, of) => KINDS[kind].mix(of),
  "with its projections": (kind, of) => KINDS[kind].mix(of) + KINDS[kind].projections(of),
  "the whole layer": (kind, of) => KINDS[kind].mix(of) + KINDS[kind].projections(of) + feedForward(of),
};

// The length from which one kind costs more than the other, or null if it never does up to `longest`.
export function crossover(kind, other, part, of, longest = 2 ** 24) {
  const dearer = (n) => PARTS[part](kind, { ...of, n }) > PARTS[part](other, { ...of, n });
  if (!dearer(longest)) return null;
  if (dearer(1)) return 1;
  let [low, high] = [1, longest]; // `kind` is cheaper at low, dearer at high
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (dearer(middle)) high = middle;
    else low = middle;
  }
  return high;
}

// Layers until a receptive field has n tokens, if the first adds `reach` and each next one `growth` times as many.
export function layersToMeet(n, reach, growth) {
  let [met, layers] = [1, 0];
  for (let more = reach; met < n; more *= growth, layers++) met += more;
  return layers;
}

const norm = (d) => 2 * d;
const attentionParameters = (d, biases) => 4 * d * d + biases * 4 * d;
const networkParameters = (d, d_ff, biases) => 2 * d * d_ff + biases * (d_ff + d);
export const encoderLayer = (d, d_ff, biases = 1) =>
  attentionParameters(d, biases) + networkParameters(d, d_ff, biases) + 2 * norm(d);
export const decoderLayer = (d, d_ff, biases = 1) =>
  encoderLayer(d, d_ff, biases) + attentionParameters(d, biases) + norm(d);

// Parameters of a model. embeddings: number of embedding tables of an encoder-decoder, 1 if all are tied.
export const FAMILIES = {
  "encoder-decoder": ({ d, d_ff, layers, words, embeddings = 1, biases = 1 }) =>
    layers * (encoderLayer(d, d_ff, biases) + decoderLayer(d, d_ff, biases)) + embeddings * words * d,
  "decoder only": ({ d, d_ff, layers, words, positions }) =>
    layers * encoderLayer(d, d_ff) + (words + positions) * d + norm(d),
  "encoder only": ({ d, d_ff, layers, words, positions }) =>
    layers * encoderLayer(d, d_ff) + (words + positions + 2) * d + norm(d) + d * d + d, // segments; norm; pooler
};

export const PRESETS = {
  "Transformer, base": {
    family: "encoder-decoder",
    d: 512,
    d_ff: 2048,
    heads: 8,
    layers: 6,
    words: 37000,
    n: 512,
    positions: 512,
  },
  "Transformer, big": {
    family: "encoder-decoder",
    d: 1024,
    d_ff: 4096,
    heads: 16,
    layers: 6,
    words: 37000,
    n: 512,
    positions: 512,
  },
  "BERT, base": {
    family: "encoder only",
    d: 768,
    d_ff: 3072,
    heads: 12,
    layers: 12,
    words: 30522,
    n: 512,
    positions: 512,
  },
  "GPT-2, small": {
    family: "decoder only",
    d: 768,
    d_ff: 3072,
    heads: 12,
    layers: 12,
    words: 50257,
    n: 1024,
    positions: 1024,
  },
  "GPT-3": {
    family: "decoder only",
    d: 12288,
    d_ff: 49152,
    heads: 96,
    layers: 96,
    words: 50257,
    n: 2048,
    positions: 2048,
  },
};

// Number of attentions per layer, encoder and decoder together, and number of those that cache keys and values.
export const ATTENTIONS = { "encoder-decoder": 3, "decoder only": 1, "encoder only": 1 };
export const CACHES = { "encoder-decoder": 2, "decoder only": 1, "encoder only": 0 };

export const weightBytes = ({ n, heads, bytes }) => heads * n * n * bytes; // of one layer and one sequence
export const cacheBytes = ({ n, d, layers, bytes, family }) => 2 * CACHES[family] * layers * n * d * bytes;
export const trainingFlops = (parameters, tokens) => 6 * parameters * tokens; // two forward, four backward
export const forwardFlops = (parameters, n) => 2 * parameters * n;
export const attentionFlops = ({ n, d, layers, family }) => 4 * ATTENTIONS[family] * layers * n * n * d;
