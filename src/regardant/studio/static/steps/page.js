// The inside of a model, one step at a time. The item and all choices are in the URL.

import { field, select, tabbed, trainedRuns } from "../choosing.js";
import { itemField } from "../item.js";
import { command, complain, empty, html, shell } from "../shell.js";
import { readState, writeState } from "../state.js";
import { working } from "../working.js";
import { fiveSteps } from "./five_steps.js";
import { masks } from "./masks.js";
import { shapes } from "./shapes.js";
import { streams } from "./streams.js";
import { writing } from "./writing.js";

const TABS = {
  "Five steps": fiveSteps,
  "Token by token": writing,
  "Through the layers": streams,
  Masks: masks,
  Shapes: shapes,
};
const OF_STEPS = { attention: "", head: "0", query: "0", component: "0", time: "", words: "" };
const OF_WRITING = { way: "", at: "0" };
const OF_STREAMS = { place: "", quantity: "", token: "0" };
const OF_MASKS = { length: "10", padding: "0", causal: "1", window: "", edges: "" };
const OF_ITEM = { run: "", text: "", target: "" };
const OF_TABS = { ...OF_STEPS, ...OF_WRITING, ...OF_STREAMS, ...OF_MASKS, open: "" };
const state = readState({ tab: "Five steps", ...OF_ITEM, ...OF_TABS });

let known = {}; // the runs by name

const takes = (option) => known[state.run]?.inspect_options.includes(option) ?? false;
const offered = () =>
  Object.keys(TABS).filter((tab) => tab !== "Token by token" || known[state.run]?.views.includes("token by token"));

const main = shell();
const item = itemField(1, show, () => (target.value = "")); // a translation of the item before
const target = html("textarea", { rows: 1, dir: "auto", placeholder: "the model's own" });
const page = {
  state,
  keep(change) {
    Object.assign(state, change);
    writeState(state);
  },
  question: () => ({ run: state.run, text: state.text, target: (takes("target") && state.target.trim()) || null }),
};
const tabs = tabbed(Object.keys(TABS), state.tab, (tab, panel) => {
  page.keep({ tab });
  form.hidden = item.examples.hidden = tab === "Masks";
  if (tab !== "Masks" && !(state.run && state.text.trim())) return;
  TABS[tab](page, panel);
});
const form = html("form", { class: "ask" });

function show() {
  page.keep({ text: item.text.value, target: target.value, query: "0", time: "", at: "0", token: "0" });
  tabs.again(offered());
}

const translation = field("Its translation", target);

async function open(name) {
  translation.hidden = !takes("target");
  tabs.clear(); // they show the run before
  const opened = await working(tabs.element, `Opening ${name}: the first time takes some seconds`, () => item.follow(known[name]));
  if (opened === null) return;
  page.keep({ text: item.text.value });
  tabs.again(offered());
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  show();
});
try {
  known = await trainedRuns();
  const names = Object.keys(known);
  if (!names.length) {
    state.tab = "Masks"; // they need no model
    main.append(html("h1", {}, "Step through"), empty("There is no trained model here yet. This command trains a translator in two minutes; then load this page again. Masks can be tried without a model:", command("regardant demo")), tabs.element);
    tabs.again(["Masks"]);
  } else {
    const gone = state.run && !names.includes(state.run) ? state.run : null;
    if (!names.includes(state.run)) state.run = names.find((name) => known[name].task === "translation") ?? names[0];
    const runs = select(names, state.run, (run) => {
      page.keep({ run, ...OF_STEPS, ...OF_STREAMS, open: "" });
      open(run).catch((error) => complain(error.message));
    });
    [item.text.value, target.value] = [state.text, state.target];
    form.append(field("Run", runs), item.element, translation, html("button", { type: "submit", class: "do" }, "Show"));
    main.append(html("h1", { class: "small" }, "Step through"), form, item.examples, tabs.element);
    await open(state.run);
    if (gone) complain(`There is no trained run “${gone}” here. This page shows ${state.run}; choose another one below.`);
  }
} catch (error) {
  complain(error.message);
}
