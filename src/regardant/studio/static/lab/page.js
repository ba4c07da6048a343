// The lab: benches on which to try the lectures' mathematics, one shown at a time. Settings are in the URL.

import { choice, html } from "./controls.js";
import { readFields, writeFields } from "./fields.js";
import { guessOf } from "./guesses.js";
import { NO_ANSWER, complain, shell } from "../shell.js";
import { readState, writeState } from "../state.js";

// Titles by name. Each bench is a module of the same name, loaded when shown, so that headings appear at once.
const BENCHES = {
  worked: "“cat” to “chat”",
  retrieval: "Attention as retrieval",
  shuffle: "Shuffled keys and values",
  saturation: "Saturation",
  positions: "Positions",
  rates: "Learning rate",
  costs: "Costs",
  examples: "More examples",
};
const PATIENCE = 250; // milliseconds: browsers reject URL changes at every step of a slider

const main = shell();
const stage = html("div");
const opened = new Set(); // benches whose question is answered or skipped
let [waiting, shown] = [null, null];

async function show(name) {
  shown = name;
  const modules = await Promise.all([import(`./${name}.js`), import("./claims.js")]).catch(() => null);
  if (shown !== name) return; // another bench was chosen meanwhile
  complain(modules ? "" : NO_ANSWER);
  if (!modules) return;
  const [{ bench }, { claimList }] = modules;
  const nothing = Object.fromEntries(Object.keys(bench.fields).map((field) => [field, null]));
  const state = readFields(bench.fields, readState(nothing));
  const remember = () => {
    if (!element.isConnected) return; // a measurement may end when another bench is shown
    clearTimeout(waiting);
    waiting = setTimeout(() => writeState({ bench: name, ...writeFields(bench.fields, state) }), PATIENCE);
  };
  const title = BENCHES[name];
  const element = html(
    "section",
    { class: "lab", "aria-label": title },
    html("h2", {}, title),
    html("p", {}, bench.about),
  );
  stage.replaceChildren(element);
  const fill = () => element.append(bench.open(state, remember), claimList(bench.claims));
  const linked = Object.keys(bench.fields).some((field) => location.hash.includes(`${field}=`)); // settings from a link
  if (linked || opened.has(name)) fill();
  else element.append(guessOf(name, () => (opened.add(name), fill())));
}

function choose(name) {
  clearTimeout(waiting);
  writeState({ bench: name });
  show(name);
}

const names = Object.keys(BENCHES);
const { bench: asked } = readState({ bench: names[0] });
const first = names.includes(asked) ? asked : names[0];
main.append(
  html("h1", {}, "Lab"),
  html(
    "nav",
    { "aria-label": "Benches" },
    choice("Bench", Object.values(BENCHES), BENCHES[first], (_, i) => choose(names[i])),
  ),
  stage,
);
show(first);
for (const query of ["(prefers-color-scheme: dark)", "(max-width: 900px)"])
  matchMedia(query).addEventListener("change", () => show(shown)); // maps depend on the theme, charts on the width
