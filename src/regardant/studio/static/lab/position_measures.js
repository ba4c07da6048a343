// The lectures' figures of positions and learning rates, computed by this page; see measures.js.

import { largest, largestDifference, product, range, transpose } from "./mathematics.js";
import { rate } from "./schedules.js";
import { code, codes, frequencies, gridCodes, rbf, rbfRate, similarity, turned, wavelength } from "./waves.js";

const ends = (list) => [list[0], list[list.length - 1]];

function countedFromOne() {
  const omegas = ends(frequencies(512, 1));
  return {
    "d = 4, position 1": code(1, frequencies(4, 1)),
    "d = 512: first and last frequency": omegas,
    "d = 512: first and last wavelength": omegas.map(wavelength),
  };
}

function waves() {
  const omegas = frequencies(512);
  const table = codes(10000, 512);
  const near = table.slice(0, 100);
  const similarities = product(near, transpose(near));
  const spread = range(100).map((offset) => {
    const line = range(100 - offset).map((p) => similarities[p][p + offset]);
    return largest(line) + largest(line.map((number) => -number));
  });
  return {
    "longest wavelength": wavelength(omegas[255]),
    "10000 · 2π": 10000 * 2 * Math.PI,
    "first and last frequency": ends(omegas),
    "PE(p + 7) less T_7 PE(p)": largest(
      range(93).map((p) => largestDifference(table[p + 7], turned(table[p], 7, omegas))),
    ),
    "similarity at offsets 0, 1, 2, 5, 10, 50, 99": [0, 1, 2, 5, 10, 50, 99].map((offset) => similarities[0][offset]),
    "similarities of equal offsets differ by": largest(spread),
    "different codes of 10,000": new Set(table.map((row) => String(row.slice(0, 8)))).size, // enough to tell them apart
    "largest number": largest(table.map((row) => largest(row.map(Math.abs)))),
  };
}

function rbfKernel() {
  const omegas = frequencies(128);
  const kernelRate = rbfRate(omegas);
  const firstRise = (size) => {
    const waves = frequencies(size);
    return range(200).find((offset) => similarity(offset + 1, waves) > similarity(offset, waves));
  };
  const long = frequencies(512);
  const least = -largest(range(10000).map((offset) => -similarity(offset, long)));
  return {
    "λ that agrees at offset 1": kernelRate,
    "sinusoids at offsets 2, 5, 10, 30": [2, 5, 10, 30].map((offset) => similarity(offset, omegas) / 64),
    "RBF kernel": [2, 5, 10, 30].map((offset) => rbf(offset, kernelRate)),
    "offset after which similarity first rises, d = 512 and 64": [firstRise(512), firstRise(64)],
    "least similarity of 10,000 offsets, d = 512": least,
  };
}

function grid() {
  const table = gridCodes(2, 3, 8);
  return { shape: [table.length, table[0].length], "places 0, 1 and 3": [0, 1, 3].map((place) => table[place]) };
}

function schedule() {
  const noam = (update, d_model = 512) => rate("noam", update, 0, { d_model, factor: 1, warmup: 4000 });
  const some = (...updates) => updates.map((update) => noam(update));
  let atZero;
  try {
    atZero = String(noam(0));
  } catch {
    atZero = "refused";
  }
  return {
    "updates 1, 100, 1000, 3999": some(1, 100, 1000, 3999),
    "the peak, 4000": noam(4000),
    "updates 4001, 8000, 16000": some(4001, 8000, 16000),
    "updates 100,000 and 300,000": some(100000, 300000),
    "the peak, d = 1024": noam(4000, 1024),
    "update 0": atZero,
  };
}

export const POSITION_MEASURES = {
  "N-23": () => ({ "d = 4, positions 0 to 3": codes(4, 4), "d = 8, position 1": code(1, frequencies(8)) }),
  "N-24": countedFromOne,
  "N-25": waves,
  "N-26": rbfKernel,
  "N-27": grid,
  "N-39": schedule,
};
