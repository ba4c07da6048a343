// The lectures' figures of sizes and costs, computed by this page in closed form; see measures.js.

import {
  FAMILIES,
  KINDS,
  PRESETS,
  attentionFlops,
  decoderLayer,
  encoderLayer,
  feedForward,
  forwardFlops,
  layersToMeet,
  trainingFlops,
  weightBytes,
} from "./costmodel.js";

const [YEAR, MONTH] = [365 * 86400, 30 * 86400]; // in seconds
const size = (preset, change = {}) => FAMILIES[PRESETS[preset].family]({ ...PRESETS[preset], ...change });

function base() {
  const { d, d_ff, layers, words } = PRESETS["Transformer, base"];
  return {
    "all embeddings tied": size("Transformer, base"),
    "target and output tied": size("Transformer, base", { embeddings: 2 }),
    "none tied": size("Transformer, base", { embeddings: 3 }),
    "an encoder layer": encoderLayer(d, d_ff),
    "a decoder layer": decoderLayer(d, d_ff),
    "both stacks": layers * (encoderLayer(d, d_ff) + decoderLayer(d, d_ff)),
    "an embedding": words * d,
    "all tied, without biases": size("Transformer, base", { biases: 0 }),
  };
}

function big() {
  return {
    "all tied, 37,000 words": size("Transformer, big"),
    "both stacks": size("Transformer, big", { words: 0 }),
    "32,000 words": size("Transformer, big", { words: 32000 }),
  };
}

function gpt3() {
  const { d, d_ff, heads, layers } = PRESETS["GPT-3"];
  return {
    parameters: size("GPT-3"),
    "of a layer": encoderLayer(d, d_ff),
    "12 · layers · d²": 12 * layers * d * d,
    "numbers of a head": d / heads,
  };
}

function smallerModels() {
  const lab = (d, positions) => FAMILIES["decoder only"]({ d, d_ff: 4 * d, layers: 4, words: 65, positions });
  return {
    "BERT-base": size("BERT, base"),
    "without its pooler": size("BERT, base") - 768 * 768 - 768,
    "a head of two classes": 768 * 2 + 2,
    "4 layers, 65 characters; d 128, 256, 384; length 128, 256, 256": [lab(128, 128), lab(256, 256), lab(384, 256)],
    "GPT-2 small": size("GPT-2, small"),
  };
}

function bytesOfWeights() {
  const layer = weightBytes({ n: 1024, heads: 8, bytes: 4 });
  return { "a layer": layer, "12 layers": 12 * layer, "in MiB": [layer / 2 ** 20, (12 * layer) / 2 ** 20] };
}

function regimes() {
  const at = (n) => ({ n, d: 512, d_ff: 2048 });
  const { mix, projections } = KINDS.full;
  const meets = (other) => [1, 2, 3, 4, 5, 6, 7, 8].find((times) => mix(at(times * 512)) === other(at(times * 512)));
  return {
    "projections, attention, feed-forward, N = d = 512": [projections, mix, feedForward].map((part) => part(at(512))),
    "attention = feed-forward at N / d": meets(feedForward),
    "attention = all the rest at N / d": meets((of) => projections(of) + feedForward(of)),
    "attention and feed-forward at N = 2048": [mix(at(2048)), feedForward(at(2048))],
  };
}

function fourLayers() {
  const [length, d, d_v, kernel] = [128, 512, 64, 5];
  const dense = length * d * (length * d_v);
  return {
    "parameters of a dense layer": dense,
    "of self-attention, convolution and RNN": [3 * d * d_v, kernel * d * d_v, d * d_v + d_v * d_v],
    "multiplications: scores, RNN, convolution, dense": [
      length * length * d_v,
      length * (d * d_v + d_v * d_v),
      length * kernel * d * d_v,
      dense,
    ],
    "of attention's mix and projections": [length * length * d_v, 3 * length * d * d_v],
  };
}

function training() {
  const seconds = 3.14e23 / 28e12; // the assumptions of the published price: 28 TFLOP/s at 1.5 dollars an hour
  return {
    FLOPs: trainingFlops(size("GPT-3"), 300e9),
    "FLOPs of 175 billion parameters": trainingFlops(175e9, 300e9),
    dollars: (seconds / 3600) * 1.5,
    "years of one device at 28 TFLOP/s": seconds / YEAR,
    "such devices for a month": seconds / MONTH,
    "A100s at 40% for a month": 3.14e23 / (0.4 * 312e12) / MONTH,
  };
}

function paths() {
  const among = (reach, growth) => [16, 100, 1000, 1024].map((n) => layersToMeet(n, reach(n), growth));
  return {
    RNN: among(() => 1, 1),
    "convolutions of kernel 3, dilated": among(() => 2, 3),
    "convolutions of kernel 3, plain": among(() => 2, 1),
    attention: among((n) => n - 1, 1),
  };
}

export const COST_MEASURES = {
  "N-30": base,
  "N-31": big,
  "N-32": gpt3,
  "N-33": smallerModels,
  "N-34": bytesOfWeights,
  "N-35": () => ({ "": [7, 8, 9, 10, 11, 12].map((power) => 4 ** power) }),
  "N-36": regimes,
  "N-37": fourLayers,
  "N-38": () => ({ dense: (1024 * 512) ** 2, attention: 4 * 512 * 512, "feed-forward": 2 * 512 * 2048 }),
  "N-40": training,
  "N-41": () => ({
    FLOPs: forwardFlops(175e9, 2048),
    "attention beside it": attentionFlops(PRESETS["GPT-3"]),
  }),
  "N-52": paths,
};
