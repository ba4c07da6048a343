// Every figure of the lectures' claims, computed by this page, under the names that the claims use.
// Printed and true values come from the server, so that they have a single source.

import * as cat from "./example.js";
import {
  attention,
  dot,
  entropy,
  highest,
  identity,
  largest,
  largestDifference,
  bestOf,
  permuted,
  product,
  range,
  scoresOf,
  softmax,
  sum,
  transpose,
  weightsOf,
} from "./mathematics.js";
import { RandomState } from "./random.js";
import { kurtosisOf, saturation, varianceOf } from "./sampling.js";
import { matchingRatio, pairsCosine } from "./similarity.js";
import { SENTENCE, TABLE, apart, asymmetries, asymmetry, causal, zeroedAbove } from "./table.js";

const outputAt = (query, divisor, top) => cat.steps(query, { divisor, top }).output;
const weightsAt = (query, divisor, top) => cat.steps(query, { divisor, top }).weights;

function answer(query) {
  const { scores, weights, output } = cat.steps(query);
  return {
    "most attention": cat.WORDS[bestOf(weights)],
    "output by size": cat.bySize(output),
    scores,
    weights,
    output,
  };
}

function chat() {
  const { weights, exponentials } = cat.steps(cat.QUERY);
  return { weights, exponentials, "their sum": sum(exponentials), "entropy of the weights": entropy(weights) };
}

function temperatures() {
  const output = outputAt(cat.QUERY, 2);
  const largestBelow = (query, feature) => highest((t) => bestOf(outputAt(query, t)) === feature);
  const passes = (t) => outputAt(cat.QUERY, t)[cat.ANIMAL] > outputAt(cat.QUERY, t)[cat.OBJECT];
  const some = [1, 0.5, 0.2, 0.1];
  return {
    "output by size at √4": cat.bySize(output),
    "sum of that output": sum(output),
    "weight of cat at 1, .5, .2, .1": some.map((t) => weightsAt(cat.QUERY, t)[cat.CAT]),
    "output at 1, .5, .2, .1": some.map((t) => outputAt(cat.QUERY, t)),
    "output in the limit 0": outputAt(cat.QUERY, 0),
    "animal passes object below": highest(passes),
    "animal is the largest below": largestBelow(cat.QUERY, cat.ANIMAL),
    "action query at .2: weight of sat": weightsAt(cat.ACTION_QUERY, 0.2)[cat.SAT],
    "action query at .2: output": outputAt(cat.ACTION_QUERY, 0.2),
    "action query: action is the largest below": largestBelow(cat.ACTION_QUERY, cat.ACTION),
  };
}

function fourScores() {
  const scores = [2.1, 0.3, -0.5, 1.8];
  const weights = softmax(scores);
  const logRatios = (of) => [0, 2, 3].map((i) => Math.log(of[i] / of[1]));
  return {
    weights,
    exponentials: scores.map(Math.exp),
    "their sum": sum(scores.map(Math.exp)),
    "log ratios to the second, of the lecture's weights": logRatios([0.58, 0.1, 0.04, 0.28]),
    "of the true weights": logRatios(weights),
  };
}

function dictionary() {
  const keys = [
    [1, 0, 0],
    [0, 1, 0],
    [2, 2, 2],
  ];
  return {
    "weights where two keys tie": weightsOf([[1, 1, 0]], identity(3), { temperature: 0 })[0],
    "weights of [1, 0] on the keys [1, 0] and [2, 0]": weightsOf(
      [[1, 0]],
      [
        [1, 0],
        [2, 0],
      ],
      { temperature: 0 },
    )[0],
    "what [1, 0, 0], [0, 1, 0], [2, 2, 2] find of themselves": scoresOf(keys, keys).map((row) => bestOf(row) + 1),
  };
}

function topK() {
  return {
    "output, k = 1": outputAt(cat.QUERY, 2, 1),
    "weights, k = 3": weightsAt(cat.QUERY, 2, 3),
    "output, k = 3": outputAt(cat.QUERY, 2, 3),
    "weights, k = 4": weightsAt(cat.QUERY, 2, 4),
    "output, k = 4": outputAt(cat.QUERY, 2, 4),
    "output, k = 6": outputAt(cat.QUERY, 2, 6),
    "keys kept, k = 2": weightsAt(cat.QUERY, 2, 2).filter((weight) => weight > 0).length,
  };
}

export const LIBRARY = [0.1, 0.9, 0.5];
export const STUDENTS = [0.95, 0.1, 0.3, 0.9];
export const RECORDS = [
  ["Alice", "CS", 3.9],
  ["Bob", "Math", 3.8],
  ["Carol", "CS", 3.2],
  ["Dave", "CS", 3.7],
];
const shares = (numbers) => numbers.map((number) => number / sum(numbers));

function similarities() {
  return {
    sums: [sum(LIBRARY), sum(STUDENTS)],
    "library, divided by the sum": shares(LIBRARY),
    "students, divided by the sum": shares(STUDENTS),
    "library, softmax": softmax(LIBRARY),
    "students, softmax": softmax(STUDENTS),
    "library, softmax at temperature .1": softmax(LIBRARY, 0.1),
    "students, softmax at temperature .1": softmax(STUDENTS, 0.1),
    "best book": bestOf(LIBRARY) + 1,
    "computer scientists above 3.5": RECORDS.filter(([, field, grade]) => field === "CS" && grade > 3.5).map(
      ([name]) => name,
    ),
  };
}

export const FUZZY = { queries: ["ct", "catt", "dog"], keys: ["cat", "dog", "bird"] };

function softDictionary() {
  const best = FUZZY.queries.map((query) => FUZZY.keys[bestOf(FUZZY.keys.map((key) => matchingRatio(query, key)))]);
  return {
    "best keys": best,
    "similarity, difflib": FUZZY.queries.map((query, i) => matchingRatio(query, best[i])),
    "similarity, pairs of letters": FUZZY.queries.map((query, i) => pairsCosine(query, best[i])),
    "dog and bird, difflib": matchingRatio("dog", "bird"),
    "dog and bird, pairs of letters": pairsCosine("dog", "bird"),
  };
}

function sixBySix() {
  return {
    "sums of rows": TABLE.map(sum),
    "sums of columns": transpose(TABLE).map(sum),
    "rows whose diagonal is largest": TABLE.filter((row, i) => bestOf(row) === i).length,
    "entropies of rows": TABLE.map((row) => entropy(shares(row))),
  };
}

function masked() {
  const scores = TABLE.map((row) => row.map(Math.log)); // the softmax of a logarithm is the row itself
  const weights = weightsOf(scores, identity(6), { temperature: 1, mask: causal(6) });
  return {
    rows: weights.map((row, i) => row.slice(0, i + 1)),
    "weight on the future": sum(weights.map((row, i) => sum(row.slice(i + 1)))),
    "sums of rows zeroed and not normalised": zeroedAbove(TABLE).map(sum),
  };
}

function symmetricScores() {
  const found = asymmetries(TABLE);
  const worst = found[bestOf(found.map(({ by }) => Math.abs(by)))];
  const x = new RandomState(0).matrix(6, 512).map((row) => row.map((number) => number / 4));
  x[5] = x[1];
  const weights = weightsOf(x, x);
  return {
    "how far three words are from a symmetric score": asymmetry(TABLE),
    "those words": [...worst.of].sort().map((i) => SENTENCE[i]),
    "what rounding can explain": (6 * 0.0005) / -largest(TABLE.flat().map((number) => -number)),
    "the same of Q = K = X": asymmetry(weights),
    "the two CATs differ, without positions": apart(weights, 1, 5),
    "√512": Math.sqrt(512),
  };
}

// Queries, keys and values of the lecture's program if run with this seed.
export function fourWords(seed) {
  const words = [
    [1, 0, 0],
    [0, 1, 0],
    [1, 1, 0],
    [0, 0, 1],
  ];
  const random = new RandomState(seed);
  const [q, k, v] = range(3).map(() => product(words, random.matrix(3, 2)));
  return { q, k, v, scores: scoresOf(q, k), weights: weightsOf(q, k), outputs: attention(q, k, v) };
}

function numpyExample() {
  const [zero, answer] = [fourWords(0), fourWords(42)];
  const powers = zero.scores.map((row) => row.map((score) => Math.exp(score / Math.SQRT2)));
  const notASum = (rows) =>
    largestDifference(
      rows[2],
      rows[0].map((number, i) => number + rows[1][i]),
    );
  return {
    "weights_1, seed 0": zero.weights[0],
    "attention_1, seed 0": zero.outputs[0],
    "weights_1, seed 42": answer.weights[0],
    "attention_1, seed 42": answer.outputs[0],
    "scores_1, seed 0": zero.scores[0],
    "score_3 less score_1 + score_2": Math.abs(zero.scores[0][2] - zero.scores[0][0] - zero.scores[0][1]),
    "value_3 less value_1 + value_2": notASum(zero.v),
    "sums of weights, all four words": zero.weights.map(sum),
    "the same by the lecture's softmax": powers.map((row) => sum(row) / sum(powers.flat())),
  };
}

function underWords() {
  const [english, french] = ["The cat sat on the mat", "Le chat s'est assis sur le tapis"].map((text) =>
    text.split(" "),
  );
  return {
    sums: [sum([0.1, 0.8, 0.1]), sum([0.8, 0.15, 0.02, 0.01, 0.01, 0.01])],
    "place of cat": english.indexOf("cat"),
    "words of the French sentence": french.length,
  };
}

// Additive scores v . tanh(s + h), whose weights mix the states.
export function additive(v, state, states) {
  const scores = states.map((h) =>
    dot(
      v,
      h.map((number, i) => Math.tanh(number + state[i])),
    ),
  );
  const weights = softmax(scores);
  return { scores, weights, context: product([weights], states)[0] };
}

const DIMENSIONS = [4, 16, 64, 256, 512, 1024];

async function variances() {
  const random = new RandomState(0);
  return {
    "variance / d at d = 4, 16, 64, 256, 512, 1024": await varianceOf(random, DIMENSIONS, 10000),
    "excess kurtosis at d = 4": await kurtosisOf(random, 4, 100000),
  };
}

async function saturated() {
  const [random, found] = [new RandomState(0), []];
  for (const d of [16, 64, 512]) found.push(await saturation(random, { d }));
  return {
    "largest weight at d = 16, 64, 512": found.map(({ plain }) => plain.top),
    scaled: found.map(({ scaled }) => scaled.top),
    "norm of the softmax's Jacobian": found.map(({ plain }) => plain.jacobian),
    "norm, scaled": found.map(({ scaled }) => scaled.jacobian),
    entropy: found.map(({ plain }) => plain.entropy),
    "entropy, scaled": found.map(({ scaled }) => scaled.entropy),
    "queries whose best key changes": found.map(({ changed }) => changed),
  };
}

function shuffled() {
  const random = new RandomState(0);
  const [x, q, order] = [random.matrix(6, 4), random.matrix(3, 4), [3, 0, 5, 1, 4, 2]];
  const moved = permuted(x, order);
  const [inOrder, outOfOrder] = [attention(x, x, x), attention(moved, moved, moved)];
  return {
    "attention of shuffled words, less shuffled attention": largestDifference(outOfOrder, permuted(inOrder, order)),
    "less the attention of words in order": largestDifference(outOfOrder, inOrder),
    "keys and values shuffled together": largestDifference(attention(q, moved, moved), attention(q, x, x)),
  };
}

export const MEASURES = {
  "N-01": () => ({ "": cat.steps(cat.QUERY).scores }),
  "N-02": chat,
  "N-03": () => ({
    output: outputAt(cat.QUERY, 2),
    "from weights of two decimals": product([[0.16, 0.23, 0.15, 0.14, 0.16, 0.16]], cat.VALUES)[0],
  }),
  "N-04": () => answer(cat.ACTION_QUERY),
  "N-05": () => answer(cat.ACTION_QUERY_IN_PROSE),
  "N-06": temperatures,
  "N-07": fourScores,
  "N-08": dictionary,
  "N-09": topK,
  "N-10": similarities,
  "N-11": softDictionary,
  "N-12": sixBySix,
  "N-13": masked,
  "N-14": symmetricScores,
  "N-15": numpyExample,
  "N-16": underWords,
  "N-17": () =>
    additive(
      [1, 1],
      [1, 0],
      [
        [0, 0],
        [1, 0],
        [-1, 1],
      ],
    ),
  "N-18": () => ({ "": sum([0.1, 0.3, 0.6]) }),
  "N-19": variances,
  "N-20": saturated,
  "N-21": shuffled,
};
