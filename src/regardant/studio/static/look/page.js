// An item, the answer of a run and its attention: alignment, all heads, one head, beam search, comparison.

import { UNITS, attentionView, nameOf } from "../pictures/view.js";
import { MEAN, inflate, readKind } from "../pictures/weights.js";
import { button, field, select, tabbed, trainedRuns } from "../choosing.js";
import { itemField } from "../item.js";
import { ask, command, complain, empty, html, saveButton, shell } from "../shell.js";
import { readState, writeState } from "../state.js";
import { working } from "../working.js";
import { alignmentView } from "./alignment.js";
import { answerOf } from "./answer.js";
import { beamTree } from "./beam_tree.js";
import { comparison } from "./compare.js";
import { gallery } from "./gallery.js";
import { rolesOf } from "./roles.js";
import { vocabulary } from "./vocabulary.js";

const [ALIGNMENT, ATTENTION, HEADS, BEAM, COMPARE] = ["Alignment", "One head", "All heads", "Beam search", "Compare"];
const TABS = [ALIGNMENT, ATTENTION, HEADS, BEAM, COMPARE];
const NOTHING = { kind: "", layer: "", head: "", form: "", unit: "Words", word: "" };
const OTHER = { run2: "", text2: "", head1: "", head2: "" };
const state = readState({ run: "", text: "", target: "", beam: "", off: "", tab: "", candidate: "", ...NOTHING, ...OTHER });

const main = shell();
const item = itemField(1, look, () => (target.value = "")); // a translation of the item before
const target = html("textarea", { rows: 1, dir: "auto", placeholder: "the model's own" });
const beam = html("input", { type: "number", min: 1, max: 16, placeholder: "auto" });
const results = html("section", { "aria-label": "Answer", class: "answer-line" });
const switches = html("div");
const options = html("details", { class: "options", ...(state.target || state.beam || state.off ? { open: "" } : {}) }, html("summary", {}, "Options"));
const words = vocabulary((word) => (item.text.value = `${item.text.value.trimEnd()} ${word}`.trim()));
const shown = html("div", {}, results);
let found = null; // the last answer
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
  const chosen = { target: takes("target") && given ? given : null, beam_size: takes("beam_size") ? size : null };
  return { run: state.run, text: item.text.value, ...chosen, off: switched };
}

async function look() {
  complain();
  Object.assign(state, { text: item.text.value, target: target.value.trim(), beam: beam.value });
  writeState(state);
  if (!state.text.trim()) {
    complain(item.missing());
    return;
  }
  try {
    const body = question();
    const answer = await working(shown, `${state.run} reads the item`, (signal) => ask("/api/look", { body, signal }));
    if (answer === null) return;
    before = found;
    found = { ...answer, forced: body.target !== null, off: body.off.length, pictures: answer.pictures && sentenceOf(answer.pictures) };
    await show();
  } catch (error) {
    complain(error.message);
  }
}

function sentenceOf(pictures) {
  const kinds = pictures.kinds.map((kind, k) => readKind(kind, pictures.layouts, (layer) => inflate(pictures.weights[k][layer])));
  return { ...pictures, kinds };
}

async function show() {
  results.replaceChildren(...answerOf(found, before));
  if (found.pictures) {
    found.roles = await Promise.all(found.pictures.kinds.map(rolesOf));
    found.best = bestHead();
  }
  tabs.element.hidden = false;
  showSwitches();
  const drawn = Boolean(found.pictures);
  const offered = { [ALIGNMENT]: Boolean(found.alignment), [ATTENTION]: true, [HEADS]: drawn, [BEAM]: found.views.includes("beam search"), [COMPARE]: drawn };
  tabs.again(TABS.filter((name) => offered[name]), state.tab); // the first tab after a change of the run
}

// The head that is shown first: the one from which alignments are read, or the one with the most telling role.
function bestHead() {
  const last = found.pictures.kinds.length - 1;
  if (found.alignment) return [last, found.alignment.layer, found.alignment.head];
  const all = found.roles.flatMap((roles, k) => roles.map((role) => ({ k, ...role })));
  const best = all.sort((a, b) => b.telling - a.telling)[0];
  return best ? [best.k, best.layer, best.head] : found.pictures.chosen;
}

function showSwitches() {
  const chosen = off();
  const kinds = found.pictures ? found.pictures.kinds : [];
  const groups = kinds.flatMap((kind, k) => {
    const boxes = found.pictures.places[k].flatMap((name, layer) =>
      [...Array(kind.heads).keys()].map((head) => switchOf(`${name}:${head}`, layer, head, chosen)),
    );
    return boxes.length ? [html("fieldset", {}, html("legend", {}, kind.kind), ...boxes)] : []; // none for convolutions
  });
  const on = button("Switch all on", () => {
    state.off = "";
    look();
  });
  const count = chosen.size ? `${chosen.size}` : "none";
  switches.hidden = !groups.length;
  switches.replaceChildren(html("p", { class: "quiet" }, `Heads switched off: ${count}`), ...groups, ...(chosen.size ? [on] : []));
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

// The gallery of all heads; a chosen head opens in its tab.
function heads(chosen) {
  return gallery(found.pictures.kinds, found.roles, chosen, (k, layer, head) => {
    Object.assign(state, { kind: found.pictures.kinds[k].kind, layer: String(layer), head: String(head), word: "", form: "" });
    tabs.choose(ATTENTION);
  });
}

function showAttention(panel) {
  const sentence = found.pictures;
  if (!sentence) {
    panel.append(html("p", { class: "quiet" }, `${state.run} has no attention to draw: Step through shows the vectors at each of its layers.`));
    return;
  }
  const [kind, layer, head] = found.best;
  const start = { kind, layer, head, form: state.form, unit: state.unit, word: numberOr(state.word, null) };
  const named = sentence.kinds.findIndex((one) => one.kind === state.kind);
  if (named !== -1) {
    const { layers, heads: count } = sentence.kinds[named];
    const wanted = numberOr(state.head, MEAN);
    Object.assign(start, { kind: named, layer: Math.min(numberOr(state.layer, 0), layers - 1), head: wanted < count ? wanted : MEAN });
  }
  if (!UNITS.includes(start.unit)) start.unit = "Words";
  const says = html("p", { class: "quiet", "aria-live": "polite" });
  const describe = (now) => {
    const role = found.roles[now.kind].find((one) => one.layer === now.layer && one.head === now.head);
    says.textContent = role ? `On this item the head ${role.says} (${Math.round(100 * role.strength)}% of its weight).` : "The mean of the layer's heads.";
  };
  describe(start);
  const view = attentionView(
    sentence,
    start,
    (now) => {
      Object.assign(state, {
        kind: sentence.kinds[now.kind].kind,
        layer: String(now.layer),
        head: now.head === MEAN ? "mean" : String(now.head),
        form: String(now.form),
        unit: now.unit,
        word: String(now.word ?? ""),
      });
      writeState(state);
      describe(now);
    },
    { titled: false },
  );
  view.classList.add("look-attention");
  panel.append(says, view);
}

function showAlignment(panel) {
  const height = innerHeight > 860 ? 280 : 220;
  const view = html("div", {}, ...alignmentView(found.alignment, found.item, height));
  const save = saveButton(
    () => view.querySelector(".figure > svg"),
    () => "alignment",
  );
  view.append(html("div", { class: "bar" }, save));
  panel.append(html("div", { class: "beside" }, view, heads(found.best)));
}

async function showBeam(panel) {
  const stage = panel.appendChild(html("div"));
  try {
    const body = { ...question(), view: "beam search", target: null };
    const tree = await working(stage, `${state.run} searches again and keeps the whole tree`, (signal) => ask("/api/view", { body, signal }));
    if (tree === null) return;
    const { drawing, readout } = beamTree(tree, numberOr(state.candidate, null), (number) => {
      state.candidate = number === null ? "" : String(number);
      writeState(state);
    });
    const figure = html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" }, drawing);
    const save = saveButton(
      () => drawing,
      () => "beam search",
    );
    const title = html("h3", {}, `${tree.beam_size} ${tree.beam_size === 1 ? "beam" : "beams"}: one column per step, the likeliest at the top`);
    stage.replaceChildren(html("div", { class: "bar" }, title, save), readout, figure);
  } catch (error) {
    complain(error.message);
  }
}

function showCompare(panel) {
  const [k, layer, head] = found.best;
  const first = { run: state.run, text: item.text.value, head: state.head1 || `${k}.${layer}.${head}` };
  const second = { run: state.run2 || state.run, text: state.text2 || item.text.value, head: state.head2 };
  panel.append(
    comparison(Object.keys(known), [first, second], ([a, b]) => {
      Object.assign(state, { head1: a.head, run2: b.run, text2: b.text, head2: b.head });
      writeState(state);
    }),
  );
}

const SHOW = { [ALIGNMENT]: showAlignment, [ATTENTION]: showAttention, [HEADS]: (panel) => panel.append(heads(found.best)), [BEAM]: showBeam, [COMPARE]: showCompare };
const tabs = tabbed(TABS, state.tab, (name, panel) => {
  if (!found) return;
  state.tab = name;
  writeState(state);
  SHOW[name](panel);
});

async function open(name) {
  state.run = name;
  for (const [option, one] of Object.entries(fields)) one.hidden = !takes(option);
  found = before = null;
  results.replaceChildren();
  switches.replaceChildren();
  tabs.element.hidden = words.element.hidden = true;
  const opened = await working(shown, `Opening ${name}: the first time takes some seconds`, () => item.follow(known[name]));
  if (opened === null) return;
  await look();
  if (state.run === name) await words.follow(name);
}

const fields = { target: field("Its translation", target), beam_size: field("Beam size", beam) };
try {
  known = await trainedRuns();
  const names = Object.keys(known);
  if (!names.length) {
    main.append(html("h1", {}, "Look inside"), empty("There is no trained model here yet. This command trains a translator in two minutes; then load this page again.", command("regardant demo")));
  } else {
    const gone = state.run && !names.includes(state.run) ? state.run : null;
    if (!names.includes(state.run)) state.run = names.find((name) => known[name].task === "translation") ?? names[0];
    [item.text.value, target.value, beam.value] = [state.text, state.target, state.beam];
    const runs = select(names, state.run, (name) => {
      Object.assign(state, { off: "", candidate: "", tab: "", ...NOTHING, ...OTHER });
      open(name).catch((error) => complain(error.message));
    });
    const form = html("form", { class: "ask" }, field("Run", runs), item.element, html("button", { type: "submit", class: "do" }, "Show"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      look();
    });
    options.append(html("div", { class: "asking" }, fields.target, fields.beam_size), switches);
    shown.append(tabs.element);
    main.append(html("h1", { class: "small" }, "Look inside"), form, html("div", { class: "tries" }, item.examples, words.element, options), shown);
    await open(state.run);
    if (gone) complain(`There is no trained run “${gone}” here. This page shows ${state.run}; choose another one below.`);
  }
} catch (error) {
  complain(error.message);
}
