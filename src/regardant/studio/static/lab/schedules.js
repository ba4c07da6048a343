// The learning rate of an update, counted from 1; `progress` is the share of training that is done.

const cosineDecay = (progress, left) => left + ((1 - left) * (1 + Math.cos(Math.PI * Math.min(progress, 1)))) / 2;
const linearDecay = (progress, left) => left + (1 - left) * (1 - Math.min(progress, 1));
const warmUp = (update, warmup) => Math.min(1, update / Math.max(1, warmup));

export function rate(kind, update, progress, settings) {
  if (update < 1) throw new RangeError(`updates count from 1, so update ${update} has no learning rate`);
  return SCHEDULES[kind](update, progress, settings);
}

// settings: d_model, factor, warmup, peak, left (share of the peak at the end).
export const SCHEDULES = {
  noam: (update, _, { d_model, factor, warmup }) =>
    factor * d_model ** -0.5 * Math.min(update ** -0.5, update * warmup ** -1.5),
  inverse_sqrt: (update, _, { peak, warmup }) => peak * Math.min(update / warmup, Math.sqrt(warmup / update)),
  cosine: (update, progress, { peak, warmup, left }) => peak * warmUp(update, warmup) * cosineDecay(progress, left),
  linear: (update, progress, { peak, warmup, left }) => peak * warmUp(update, warmup) * linearDecay(progress, left),
  constant: (update, _, { peak, warmup }) => peak * warmUp(update, warmup),
};
