// The lab: benches to try the lectures' mathematics on, one shown at a time. What is set is in the address.

import { shell } from "../shell.js";
import { readState, writeState } from "../state.js";
import { claimList } from "./claims.js";
import { choice, html } from "./controls.js";
import { costs } from "./costs.js";
import { examples } from "./examples.js";
import { readFields, writeFields } from "./fields.js";
import { guessOf } from "./guesses.js";
import { positions } from "./positions.js";
import { rates } from "./rates.js";
import { retrieval } from "./retrieval.js";
import { saturating } from "./saturating.js";
import { shuffling } from "./shuffling.js";
import { worked } from "./worked.js";

const BENCHES = [worked, retrieval, shuffling, saturating, positions, rates, costs, examples];
const PATIENCE = 250; // milliseconds: browsers refuse an address that changes with every step of a slider

const main = shell();
const stage = html("div");
const opened = new Set(); // benches whose question is answered
let [waiting, shown] = [null, null];

function show(bench) {
  shown = bench;
  const nothing = Object.fromEntries(Object.keys(bench.fields).map((name) => [name, null]));
  const state = readFields(bench.fields, readState(nothing));
  const remember = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => writeState({ bench: bench.id, ...writeFields(bench.fields, state) }), PATIENCE);
  };
  const element = html(
    "section",
    { class: "lab", "aria-label": bench.title },
    html("h2", {}, bench.title),
    html("p", {}, bench.about),
  );
  stage.replaceChildren(element);
  const fill = () => element.append(bench.open(state, remember), claimList(bench.claims));
  const linked = Object.keys(bench.fields).some((name) => location.hash.includes(`${name}=`)); // somebody's settings
  if (linked || opened.has(bench.id)) fill();
  else element.append(guessOf(bench.id, () => (opened.add(bench.id), fill())));
}

function choose(bench) {
  clearTimeout(waiting);
  writeState({ bench: bench.id });
  show(bench);
}

const { bench: asked } = readState({ bench: BENCHES[0].id });
const first = BENCHES.find((bench) => bench.id === asked) ?? BENCHES[0];
const titles = BENCHES.map((bench) => bench.title);
main.append(
  html("h1", {}, "Lab"),
  html(
    "nav",
    { "aria-label": "Benches" },
    choice("Bench", titles, first.title, (_, i) => choose(BENCHES[i])),
  ),
  stage,
);
show(first);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => show(shown)); // maps are painted
