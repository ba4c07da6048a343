// The page: one section per item, one shown at a time, drawn when first shown. The URL hash holds the state.

import { html } from "./drawing.js";
import { UNITS, attentionView, choice } from "./view.js";
import { MEAN, inflate, readKind } from "./weights.js";

const textOf = (id) => document.getElementById(id).textContent;
const sentences = JSON.parse(textOf("sentences")).map((record, s) => ({
  ...record,
  kinds: record.kinds.map((kind, k) => readKind(kind, record.layouts, (layer) => inflate(textOf(`weights-${s}-${k}-${layer}`)))),
}));
const main = document.querySelector("main");
const inFrame = location.protocol === "about:"; // in a notebook, whose URL is not ours to change
const views = [];
let shown = 0; // index of a sentence

function startOf(sentence) {
  const [kind, layer, head] = sentence.chosen;
  return { kind, layer, head, form: null, unit: sentence.unit, word: null };
}

function show(number, start) {
  shown = number;
  views.forEach((view) => (view.element.hidden = true));
  if (!views[number]) {
    views[number] = { state: start, element: attentionView(sentences[number], start, remember) };
    main.append(views[number].element);
  }
  views[number].element.hidden = false;
}

function remember(state) {
  if (inFrame) return;
  const { kind, layer, head, form, unit, word } = state;
  const place = { kind: sentences[shown].kinds[kind].kind, layer, head: head === MEAN ? "mean" : head };
  const chosen = { sentence: shown + 1, ...place, form, unit, word };
  const written = Object.entries(chosen).filter(([, value]) => value !== null);
  history.replaceState(null, "", `#${new URLSearchParams(written)}`);
}

// Anybody may write the URL: unknown names and numbers are replaced by the defaults.
function recall() {
  const given = new URLSearchParams(location.hash.slice(1));
  const among = (name, count) => (/^\d+$/.test(given.get(name)) && given.get(name) < count ? Number(given.get(name)) : null);
  const number = (among("sentence", sentences.length + 1) || 1) - 1;
  const state = startOf(sentences[number]);
  const kind = sentences[number].kinds.findIndex((one) => one.kind === given.get("kind"));
  if (kind !== -1) Object.assign(state, { kind, layer: 0, head: MEAN });
  const { layers, heads } = sentences[number].kinds[state.kind];
  state.layer = among("layer", layers) ?? state.layer;
  state.head = given.get("head") === "mean" ? MEAN : (among("head", heads) ?? state.head);
  state.form = given.get("form"); // the view replaces an unknown form by its first
  if (UNITS.includes(given.get("unit"))) state.unit = given.get("unit");
  state.word = among("word", Infinity);
  show(number, state);
  return number;
}

if (sentences.length > 1) {
  const names = sentences.map((sentence, i) => `${i + 1}. ${sentence.title}`);
  const chooser = choice("Sentence", names, names[recall()], (_, number) => {
    show(number, startOf(sentences[number]));
    remember(views[number].state);
  });
  main.prepend(html("nav", { "aria-label": "Sentences" }, chooser));
} else {
  recall();
}
if (inFrame && frameElement) {
  document.documentElement.classList.add("framed");
  const fit = () => (frameElement.style.height = `${Math.ceil(document.body.getBoundingClientRect().height)}px`);
  new ResizeObserver(fit).observe(document.body);
}
addEventListener("hashchange", () => location.reload()); // the URL was edited
