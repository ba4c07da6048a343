// The learning rate of every update, by schedule.

import { lineChart, short } from "./charts.js";
import { choice, dataTable, group, html, note, plate, slider, toggle } from "./controls.js";
import * as field from "./fields.js";
import { largest, range, spaced } from "./mathematics.js";
import { SCHEDULES, rate } from "./schedules.js";

const POINTS = 240;
const NAMES = Object.keys(SCHEDULES);

const fields = {
  shown: field.oneOf(["all", ...NAMES]),
  d_model: field.number(512, 16, 12288, { step: 1, log: true }),
  factor: field.number(1, 0.1, 10),
  warmup: field.number(4000, 1, 50000, { step: 1, log: true }),
  peak: field.number(0.0005, 0.00001, 0.01, { step: 0.00001, log: true }),
  left: field.number(0, 0, 1),
  updates: field.number(30000, 100, 300000, { step: 100, log: true }),
  at: field.number(10000, 1, 300000, { step: 1, log: true }),
  logarithmic: field.flag(false),
};

function open(state, remember) {
  const answer = html("p", { class: "answer", "aria-live": "polite" });
  const numbers = html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" });
  const curve = plate();
  const of = (kind, update) => rate(kind, update, update / state.updates, state);

  function draw() {
    const kinds = state.shown === "all" ? NAMES : [state.shown];
    const even = range(POINTS).map((i) => 1 + (i * (state.updates - 1)) / (POINTS - 1));
    const updates = [
      ...new Set([
        ...(state.logarithmic ? spaced(1, state.updates, POINTS) : even),
        Math.min(state.warmup, state.updates),
      ]),
    ].sort((a, b) => a - b);
    const series = kinds.map((kind) => ({
      name: kind,
      points: updates.map((update) => [update, of(kind, update)]),
      hue: NAMES.indexOf(kind),
      dash: NAMES.indexOf(kind) % 3,
    }));
    const label = "Learning rate by update";
    const marks = [
      [state.warmup, "warm-up ends"],
      [state.at, "update"],
    ];
    const axes = {
      x: { name: "update", log: state.logarithmic },
      y: { name: "learning rate", log: state.logarithmic, ...(state.logarithmic ? {} : { from: 0 }) },
    };
    const some = [1, 100, 1000, state.warmup, 2 * state.warmup, 4 * state.warmup, state.updates].filter(
      (update) => update <= state.updates,
    );
    const rows = [...new Set(some)]
      .sort((a, b) => a - b)
      .map((update) => [update.toLocaleString("en"), ...kinds.map((kind) => of(kind, update).toExponential(6))]);
    curve.show(label, lineChart({ label, ...axes, series, marks }), () => dataTable(label, ["update", ...kinds], rows));
    numbers.replaceChildren(
      dataTable(
        `Learning rate of update ${state.at.toLocaleString("en")}`,
        ["schedule", "rate", "highest rate", "at update"],
        kinds.map((kind) => highest(kind, updates)),
      ),
    );
    const peak = rate("noam", state.warmup, 0, state);
    answer.textContent = `Noam is highest at update ${state.warmup.toLocaleString("en")}: factor / √(d_model · warm-up) = ${peak.toExponential(6)}. Updates count from 1: at 0 the formula divides by zero.`;
  }

  function highest(kind, updates) {
    const most = largest(updates.map((update) => of(kind, update)));
    return [
      kind,
      of(kind, state.at).toExponential(6),
      most.toExponential(6),
      short(Math.round(updates.find((update) => of(kind, update) === most))),
    ];
  }

  const set = (name) => (value) => {
    state[name] = value;
    remember();
    draw();
  };
  const make = (name, label = name) => slider(label, state[name], fields[name], set(name)).element;
  const controls = html(
    "div",
    {},
    group("Schedule", choice("Schedule", fields.shown.options, state.shown, set("shown"))),
    group("Warm-up and length", make("warmup", "warm-up"), make("updates"), make("at", "update to show")),
    group("Noam", make("d_model"), make("factor")),
    group("Other schedules", make("peak", "peak"), make("left", "share of the peak at the end")),
    toggle("logarithmic axes", state.logarithmic, set("logarithmic")),
    note("The same schedules as training.schedule.kind of a recipe; cosine and linear end with the budget."),
  );
  draw();
  return html("div", { class: "work" }, controls, html("div", {}, answer, curve.element, numbers));
}

export const bench = {
  about:
    "Early gradients are large and Adam's averages are still empty: the rate rises first. Then it falls, with the inverse square root of the updates or to a final value.",
  claims: ["N-39"],
  fields,
  open,
};
