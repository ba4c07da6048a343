// An item, the answer of a run, the attention of all heads, and how the answer changes with the item and without heads.

import { UNITS, attentionView, nameOf } from "../pictures/view.js";
import { MEAN, inflate, readKind } from "../pictures/weights.js";
import { busy, button, field, select, tabbed, trainedRuns } from "../choosing.js";
import { itemField } from "../item.js";
import { ask, complain, html, saveButton, shell } from "../shell.js";
import { readState, writeState } from "../state.js";
import { alignmentView } from "./alignment.js";
import { beamTree } from "./beam_tree.js";
import { changedWords } from "./changes.js";

const TABS = ["Attention", "Alignment", "Beam search"];
const NOTHING = { kind: "", layer: "", head: "", form: "", unit: "Words", word: "" };
const state = readState({ run: "", text: "", target: "", beam: "", off: "", tab: TABS[0], candidate: "", ...NOTHING });

const main = shell();
const item = itemField(2, look);
const target = html("textarea", { rows: 2, dir: "auto", placeholder: "the model's own" });
const beam = html("input", { type: "number", min: 1, max: 16, placeholder: "auto" });
const results = html("section", { "aria-label": "Answer" });
const heads = html("details", { class: "switches" }, html("summary", {}, "Heads switched off: none"));
let found = null; // the last answer
let asked = 0; // number of the last question: answers to earlier ones are dropped
let before = null; // the answer before that
let known = {}; // the runs by name

const takes = (option) => known[state.run]?.inspect_options.includes(option) ?? false;

const off = () => new Set(state.off.split(",").filter(Boolean));
const numberOr = (given, otherwise) => (/^\d+$/.test(given) ? Number(given) : otherwise);

function question() {
  const [given, size] = [target.value.trim(), numberOr(beam.value, null)];
  const switched = [...off()].map((one) => ({
    attention: one.slice(0, one.lastIndexOf(":")),
    head: Number(one.slice(one.lastIndexOf(":") + 1)),
  }));
  const options = { target: takes("target") && given ? given : null, beam_size: takes("beam_size") ? size : null };
  return { run: state.run, text: item.text.value, ...options, off: switched };
}

async function look() {
  const mine = ++asked;
  complain();
  Object.assign(state, { text: item.text.value, target: target.value.trim(), beam: beam.value });
  writeState(state);
  if (!state.text.trim()) return;
  try {
    const answer = await busy(main, () => ask("/api/look", { body: question() }));
    if (mine !== asked) return;
    before = found;
    found = answer;
    show();
  } catch (error) {
    if (mine === asked) complain(error.message);
  }
}

function show() {
  const words = before
    ? changedWords(before.answer, found.answer)
    : found.answer.split(/\s+/).map((word) => ({ word, changed: false }));
  const sentence = words.flatMap(({ word, changed }) => [html(changed ? "mark" : "span", {}, word), " "]);
  const candidates = found.candidates ?? [];
  const scores = candidates
    .slice(1)
    .map((one) =>
      html(
        "li",
        { class: "candidate-line" },
        html("span", { class: "number" }, one.score.toFixed(3)),
        html("span", { dir: "auto" }, one.text),
      ),
    );
  const score = candidates.length ? `, score ${candidates[0].score.toFixed(3)}` : "";
  const number = found.log_probability === undefined ? "" : `log-probability ${found.log_probability.toFixed(3)}${score}`;
  const shares = found.shares.map(([name, share]) =>
    html(
      "li",
      { class: "candidate-line" },
      html("span", { class: "number" }, `${(100 * share).toFixed(1)}%`),
      html("span", { dir: "auto" }, name),
    ),
  );
  const notes = (found.notes ?? []).map((note) => html("p", { class: "note" }, note));
  const earlier =
    before && before.answer !== found.answer ? [html("p", { class: "quiet", dir: "auto" }, `before: ${before.answer}`)] : [];
  results.replaceChildren(
    html("p", { class: "sentence translation", dir: "auto" }, ...sentence),
    ...(number ? [html("p", { class: "quiet" }, number)] : []),
    ...(shares.length ? [html("ol", { class: "candidates", "aria-label": "Probabilities" }, ...shares)] : []),
    ...earlier,
    ...notes,
    ...(scores.length
      ? [
          html(
            "details",
            {},
            html("summary", { class: "quiet" }, "Next best"),
            html("ol", { class: "candidates" }, ...scores),
          ),
        ]
      : []),
  );
  heads.hidden = !found.pictures;
  tabs.element.hidden = false;
  showSwitches();
  const offered = { Attention: true, Alignment: found.alignment, "Beam search": found.views.includes("beam search") };
  tabs.again(TABS.filter((name) => offered[name]));
}

function showSwitches() {
  const chosen = off();
  const count = chosen.size ? [...chosen].join(", ") : "none";
  const kinds = found.pictures ? found.pictures.kinds : [];
  const groups = kinds.map((kind, k) => {
    const boxes = found.pictures.places[k].flatMap((name, layer) =>
      [...Array(kind.heads).keys()].map((head) => switchOf(`${name}:${head}`, layer, head, chosen)),
    );
    return html("fieldset", {}, html("legend", {}, kind.kind), ...boxes);
  });
  const on = button("Switch all on", () => {
    state.off = "";
    look();
  });
  heads.replaceChildren(html("summary", {}, `Heads switched off: ${count}`), ...groups, on);
}

function switchOf(name, layer, head, chosen) {
  const box = html("input", { type: "checkbox", ...(chosen.has(name) ? { checked: "" } : {}) });
  box.addEventListener("change", () => {
    const next = off();
    box.checked ? next.add(name) : next.delete(name);
    state.off = [...next].join(",");
    look();
  });
  return html("label", { class: "switch" }, box, nameOf(layer, head));
}

function showAttention(panel) {
  const sentence = sentenceOf(found.pictures);
  const [kind, layer, head] = sentence.chosen;
  const start = { kind, layer, head, form: state.form, unit: state.unit, word: null };
  const named = sentence.kinds.findIndex((one) => one.kind === state.kind);
  if (named !== -1) {
    const { layers, heads: count } = sentence.kinds[named];
    const wanted = numberOr(state.head, MEAN);
    Object.assign(start, {
      kind: named,
      layer: Math.min(numberOr(state.layer, 0), layers - 1),
      head: wanted < count ? wanted : MEAN,
    });
  }
  if (!UNITS.includes(start.unit)) start.unit = "Words";
  start.word = numberOr(state.word, null);
  panel.append(
    attentionView(sentence, start, (now) => {
      Object.assign(state, {
        kind: sentence.kinds[now.kind].kind,
        layer: now.layer,
        head: now.head === MEAN ? "mean" : now.head,
        form: now.form,
        unit: now.unit,
        word: now.word ?? "",
      });
      for (const name of ["layer", "head", "word"]) state[name] = String(state[name]);
      writeState(state);
    }),
  );
}

function sentenceOf(pictures) {
  const kinds = pictures.kinds.map((kind, k) => readKind(kind, pictures.layouts, (layer) => inflate(pictures.weights[k][layer])));
  return { ...pictures, kinds };
}

async function showBeam(panel) {
  try {
    const tree = await busy(panel, () => ask("/api/view", { body: { ...question(), view: "beam search", target: null } }));
    const { drawing, readout } = beamTree(tree, numberOr(state.candidate, null), (number) => {
      state.candidate = number === null ? "" : String(number);
      writeState(state);
    });
    const figure = html(
      "div",
      { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" },
      drawing,
    );
    panel.replaceChildren(
      html(
        "div",
        { class: "bar" },
        html("h3", {}, `${tree.beam_size} beams`),
        saveButton(
          () => drawing,
          () => "beam search",
        ),
      ),
      readout,
      figure,
    );
  } catch (error) {
    complain(error.message);
  }
}

const tabs = tabbed(TABS, state.tab, (name, panel) => {
  state.tab = name;
  writeState(state);
  if (!found) return;
  if (name === "Beam search") showBeam(panel);
  else if (!found.pictures)
    panel.append(html("p", { class: "quiet" }, `${state.run} has no attention to draw: Step through shows the vectors at each of its layers.`));
  else if (name === "Attention") showAttention(panel);
  else {
    const view = alignmentView(found.alignment, found.item);
    panel.append(
      html(
        "div",
        { class: "bar" },
        html("h3", {}, "Alignment"),
        saveButton(
          () => panel.querySelector(".figure > svg"),
          () => "alignment",
        ),
      ),
      ...view,
    );
  }
});

async function open(name) {
  state.run = name;
  for (const [option, one] of Object.entries(fields)) one.hidden = !takes(option);
  results.replaceChildren();
  heads.hidden = true;
  tabs.element.hidden = true;
  await item.follow(known[name]);
  await look();
}

const fields = { target: field("Its translation", target), beam_size: field("Beam size", beam) };
main.append(html("h1", {}, "Look inside"));
try {
  known = await trainedRuns();
  const names = Object.keys(known);
  if (!names.includes(state.run)) state.run = names[0];
  [item.text.value, target.value, beam.value] = [state.text, state.target, state.beam];
  const runs = select(names, state.run, (name) => {
    Object.assign(state, { off: "", candidate: "", ...NOTHING });
    found = before = null;
    complain();
    open(name).catch((error) => complain(error.message));
  });
  const form = html(
    "form",
    { class: "asking" },
    field("Run", runs),
    item.element,
    fields.target,
    fields.beam_size,
    html("button", { type: "submit", class: "do" }, "Show"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  main.append(form, results, heads, tabs.element);
  await open(state.run);
} catch (error) {
  complain(error.message);
}
