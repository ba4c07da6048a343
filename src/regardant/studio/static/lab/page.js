// The lab: benches to try the lectures' mathematics on, one shown at a time. What is set is in the address.

import { choice, html } from "./controls.js";
import { readFields, writeFields } from "./fields.js";
import { guessOf } from "./guesses.js";
import { NO_ANSWER, complain, shell } from "../shell.js";
import { readState, writeState } from "../state.js";

// Titles by name. Each bench is the module of its name, loaded when it is shown: the headings wait for none.
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
const PATIENCE = 250; // milliseconds: browsers refuse an address that changes with every step of a slider

const main = shell();
const stage = html("div");
const opened = new Set(); // benches whose question is answered
let [waiting, shown] = [null, null];

async function show(name) {
  shown = name;
  const modules = await Promise.all([import(`./${name}.js`), import("./claims.js")]).catch(() => null);
  if (shown !== name) return; // another one was chosen meanwhile
  complain(modules ? "" : NO_ANSWER);
  if (!modules) return;
  const [{ bench }, { claimList }] = modules;
  const nothing = Object.fromEntries(Object.keys(bench.fields).map((field) => [field, null]));
  const state = readFields(bench.fields, readState(nothing));
  const remember = () => {
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
  const linked = Object.keys(bench.fields).some((field) => location.hash.includes(`${field}=`)); // somebody's settings
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
  matchMedia(query).addEventListener("change", () => show(shown)); // maps are painted, and charts as wide as there is room
