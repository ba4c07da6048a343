// What happens inside, one step at a time. The sentence and all that is chosen are in the address.

import { field, select, tabbed, trainedRuns } from "../choosing.js";
import { complain, html, shell } from "../shell.js";
import { readState, writeState } from "../state.js";
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
const OF_STEPS = { attention: "", head: "0", query: "0", component: "0" };
const OF_WRITING = { way: "", at: "0" };
const OF_STREAMS = { place: "", quantity: "", token: "0" };
const OF_MASKS = { length: "10", padding: "0", causal: "1", window: "", edges: "" };
const EXAMPLE = { run: "", text: "The old judge sees the small cat.", target: "" };
const OF_TABS = { ...OF_STEPS, ...OF_WRITING, ...OF_STREAMS, ...OF_MASKS, open: "" };
const state = readState({ tab: "Five steps", ...EXAMPLE, ...OF_TABS });

let known = {}; // the runs by name

const takes = (option) => known[state.run]?.inspect_options.includes(option) ?? false;
const offered = () =>
  Object.keys(TABS).filter((tab) => tab !== "Token by token" || known[state.run]?.views.includes("token by token"));

const main = shell();
const text = html("textarea", { rows: 1, dir: "auto" });
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
  form.hidden = tab === "Masks";
  if (tab !== "Masks" && !state.run) return;
  TABS[tab](page, panel);
});
const form = html("form", { class: "asking" });

main.append(html("h1", {}, "Step through"), form, tabs.element);
try {
  known = await trainedRuns();
  const names = Object.keys(known);
  if (!names.includes(state.run)) state.run = names[0];
  const translation = field("Its translation", target);
  translation.hidden = !takes("target");
  const runs = select(names, state.run, (run) => {
    page.keep({ run, ...OF_STEPS, ...OF_STREAMS, open: "" });
    translation.hidden = !takes("target");
    tabs.again(offered());
  });
  [text.value, target.value] = [state.text, state.target];
  form.append(
    field("Run", runs),
    field("Sentence", text),
    translation,
    html("button", { type: "submit", class: "do" }, "Show"),
  );
} catch (error) {
  complain(error.message);
}
form.addEventListener("submit", (event) => {
  event.preventDefault();
  page.keep({ text: text.value, target: target.value, query: "0", at: "0", token: "0" });
  tabs.again(offered());
});
tabs.again(offered());
