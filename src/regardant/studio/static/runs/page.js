// Runs, and their curves while they train. Choices are in the URL.

import { choice } from "../pictures/view.js";
import { BETWEEN, button, field, select } from "../choosing.js";
import { ask, command, complain, empty, html, shell } from "../shell.js";
import { readState, writeState } from "../state.js";
import { AXES, chartsOf, drawChart, drawEntropy, library, removeChart, saveChart } from "./charts.js";
import { Following } from "./following.js";
import { samplesView } from "./samples.js";

const EVERY = 2000; // milliseconds between two requests
const FEW = 8; // settings that are shown unfolded
const state = readState({ runs: "", axis: "Updates", look: "", kind: "", sample: "0" });

const asked = state.runs.split(BETWEEN).filter(Boolean);
const main = shell();
const list = html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "List of runs, scrolls" });
const charts = html("div", { class: "charts" });
const verdict = html("section", { class: "verdicts", "aria-label": "Comparison", "aria-live": "polite" });
const looks = html("section", { class: "looks", "aria-label": "Heads and samples" });
const followed = new Map(); // by the name of the run
const drawn = new Map(); // by title: the element of a chart
let none = false; // there was no run at the last request
let runs = [];
let begun = false; // the list has been filled

const chosen = () => state.runs.split(BETWEEN).filter((name) => runs.some((run) => run.run === name));

async function refreshList() {
  runs = await ask("/api/runs");
  if (none && runs.length) location.reload(); // the first run has started
  none = !runs.length;
  if (!begun && runs.length && !chosen().length) state.runs = runs[0].run;
  begun ||= runs.length > 0;
  const rows = runs.map((run) =>
    html("tr", {}, html("td", {}, boxOf(run)), ...cellsOf(run).map((cell) => html("td", {}, cell))),
  );
  const names = ["show", "run", "task", "parameters", "updates", "minutes", "best", "done"];
  const head = html("tr", {}, ...names.map((name) => html("th", { scope: "col" }, name)));
  const had = document.activeElement?.dataset?.run;
  list.replaceChildren(html("table", { class: "runs" }, html("thead", {}, head), html("tbody", {}, ...rows)));
  if (had) list.querySelector(`[data-run="${CSS.escape(had)}"]`)?.focus();
}

function boxOf(run) {
  const on = chosen().includes(run.run) ? { checked: "" } : {};
  const box = html("input", { type: "checkbox", "aria-label": `Show ${run.run}`, "data-run": run.run, ...on });
  box.addEventListener("change", () => {
    const others = chosen().filter((name) => name !== run.run);
    set({ runs: (box.checked ? [...others, run.run] : others).join(BETWEEN) });
  });
  return box;
}

const taskOf = (run) => run?.task?.replaceAll("_", " ") ?? "an unknown task";

function cellsOf(run) {
  if (run.problem) return [run.run, run.problem];
  const best = run.best === null ? "" : `${run.best_by} ${Number(run.best.toPrecision(4))}`;
  const parameters = run.parameters ? `${(run.parameters / 1e6).toFixed(2)} M` : "";
  return [
    run.run,
    taskOf(run),
    parameters,
    run.update.toLocaleString("en"),
    (run.seconds / 60).toFixed(1),
    best,
    `${Math.round(100 * run.progress)}%`,
  ];
}

function set(change) {
  Object.assign(state, change);
  writeState(state);
  refresh(true);
}

let failed = false; // the last request failed
let working = false;
let wanted = false; // the choice changed during the last request

async function refresh(changed = false) {
  wanted ||= changed;
  if (working) return;
  working = true;
  try {
    do {
      const redraw = wanted;
      wanted = false;
      const names = chosen();
      names.filter((name) => !followed.has(name)).forEach((name) => followed.set(name, new Following(name)));
      const shown = names.map((name) => followed.get(name));
      const news = await Promise.all(shown.map((one) => one.more()));
      await library;
      if (failed) complain();
      failed = false;
      if (redraw || news.some(Boolean)) draw(shown);
      if (news.some(Boolean)) await refreshList();
    } while (wanted);
  } catch (error) {
    failed = true;
    complain(error.message);
  } finally {
    working = false;
  }
}

function draw(shown) {
  const wanted = shown.length ? chartsOf(shown, unitsOf(shown)) : [];
  for (const [title, element] of drawn) {
    if (!wanted.some((chart) => chart.title === title)) (removeChart(element), drawn.delete(title));
  }
  for (const chart of wanted) {
    if (!drawn.has(chart.title)) drawn.set(chart.title, placeFor(charts, chart.title));
  }
  for (const chart of wanted) {
    // Drawn after all places exist: the width of a place depends on their number.
    drawChart(drawn.get(chart.title), chart, shown, state.axis);
  }
  drawLooks(shown);
  judge(shown.map(({ run }) => run));
}

let judged = ""; // the runs whose comparison is shown or requested, each with its best score

// Differences between the runs in scores and settings, or the error that prevents the comparison.
async function judge(names) {
  const far = names.map((name) => `${name} ${runs.find(({ run }) => run === name)?.best}`).join(",");
  if (far === judged) return;
  judged = far;
  if (names.length < 2) {
    const next = names.length ? "a second run to see which is better, whether the difference is significant, and which settings differ" : "a run to see its curves";
    verdict.replaceChildren(html("p", { class: "note" }, `Tick ${next}.`));
    return;
  }
  let found;
  try {
    found = await ask(`/api/verdict?${new URLSearchParams(names.map((name) => ["runs", name]))}`);
  } catch (error) {
    if (far !== judged) return;
    judged = ""; // requested again when the runs are drawn again
    verdict.replaceChildren(html("h2", {}, "Differences"), html("p", { class: "note" }, `These runs were not compared: ${error.message}`));
    return;
  }
  if (far !== judged) return; // other runs were chosen during the request
  const settings = Object.entries(found.settings).map(([name, lines]) => settingsOf(name, names[0], lines));
  verdict.replaceChildren(html("h2", {}, "Differences"), ...found.sentences.map((line) => html("p", { class: "says" }, line)), ...settings);
}

function settingsOf(name, first, lines) {
  const rows = lines.map((line) => {
    const [, path, before, now] = /^(\S+) was (.*), is (.*)$/s.exec(line) ?? [null, line, "", ""];
    return html("tr", {}, html("th", { scope: "row" }, path), html("td", {}, before), html("td", {}, now));
  });
  const head = html("tr", {}, ...["setting", first, name].map((one) => html("th", { scope: "col" }, one)));
  const table = html("table", { class: "differing" }, html("thead", {}, head), html("tbody", {}, ...rows));
  const summary = html("summary", {}, `${lines.length} ${lines.length === 1 ? "setting differs" : "settings differ"} between ${first} and ${name}`);
  return html("details", { ...(lines.length <= FEW ? { open: "" } : {}) }, summary, html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" }, table));
}

// The units of targets and of the loss: those of the runs' tasks, or neutral words if they differ.
function unitsOf(shown) {
  const among = (name, otherwise) => {
    const named = new Set(shown.map(({ run }) => runs.find((one) => one.run === run)?.[name]).filter(Boolean));
    return named.size === 1 ? [...named][0] : otherwise;
  };
  return { target: among("unit", "target"), loss: among("loss_unit", "nats") };
}

function placeFor(into, title) {
  const element = html("div", { class: "chart", role: "img", "aria-label": title });
  into.append(
    html(
      "figure",
      {},
      element,
      button("Save this picture", () => saveChart(element, title), { "aria-label": `Save this picture: ${title}` }),
    ),
  );
  return element;
}

const entropy = html("div", { class: "part" });
const samples = html("div", { class: "part" });
let heat = null; // the chart of entropies and its kind of attention
let offered = ""; // the choices between the looks
let looked = ""; // the events that the looks show, and how

function clearEntropy() {
  if (heat) removeChart(heat.element);
  heat = null;
}

// The entropy of heads and the samples of one run. Choices stay in the page, with their focus, until there are others.
function drawLooks(shown) {
  const observed = shown.filter((one) => one.named("observation").length);
  const one = observed.find(({ run }) => run === state.look) ?? observed[0];
  const events = one?.named("observation") ?? [];
  const kinds = Object.keys(events.at(-1)?.entropy ?? {});
  const kind = kinds.includes(state.kind) ? state.kind : kinds.at(-1);
  const items = (events[0]?.samples ?? []).map((_, i) => `Item ${i + 1}`);
  const number = /^\d+$/.test(state.sample) && state.sample < items.length ? Number(state.sample) : 0;
  const names = observed.map(({ run }) => run);
  const choices = JSON.stringify([names, kinds, items.length, one ? "" : lineWithout(shown)]);
  if (choices !== offered) {
    clearEntropy();
    offered = choices;
    looked = "";
    if (one) looks.replaceChildren(...choicesOf(names, one.run, kinds, kind), entropy, ...choiceOf(items, number), samples);
    else looks.replaceChildren(...(shown.length ? [html("p", { class: "quiet" }, lineWithout(shown))] : []));
  }
  if (!one) return;
  const now = JSON.stringify([one.run, kind, number, state.axis, events.length, events.at(-1).time]);
  if (now === looked) return;
  looked = now;
  if (heat?.kind !== kind) clearEntropy();
  if (kind) {
    heat ??= { kind, element: placeFor(entropy, `Entropy of heads, ${kind}`) };
    drawEntropy(heat.element, events, kind, state.axis);
  }
  samples.replaceChildren(...(items.length ? samplesView(events, number) : []));
}

function lineWithout(shown) {
  const validated = shown.filter((one) => one.named("validation").length).map(({ run }) => run);
  return validated.length
    ? `${validated.join(", ")} ${validated.length > 1 ? "have" : "has"} no attention whose entropy could be recorded, and no samples.`
    : "Samples and the entropy of heads appear after the first validation.";
}

function choicesOf(names, run, kinds, kind) {
  const parts = [html("h2", {}, "Heads and samples")];
  if (names.length > 1) parts.push(field("Run", select(names, run, (look) => set({ look }))));
  if (kinds.length > 1) parts.push(choice("Kind of attention", kinds, kind, (name) => set({ kind: name })));
  return parts;
}

const choiceOf = (items, number) => (items.length ? [choice("Item", items, items[number], (_, i) => set({ sample: String(i) }))] : []);

if (!Object.hasOwn(AXES, state.axis)) state.axis = "Updates";
const axes = choice("Horizontal axis", Object.keys(AXES), state.axis, (axis) => set({ axis }));
main.append(html("h1", {}, "Runs"), list, verdict, html("div", { class: "bar over" }, html("h2", {}, "Curves"), axes), charts, looks);
try {
  await refreshList();
  if (!runs.length) {
    main.replaceChildren(html("h1", {}, "Runs"), empty("There is no run here yet. This command trains one in two minutes; it appears here by itself.", command("regardant demo"), list));
  }
  const gone = asked.filter((name) => !runs.some((run) => run.run === name));
  await refresh(true);
  if (gone.length && runs.length) complain(`There is no run ${gone.map((name) => `“${name}”`).join(", ")} here. Choose one from the list.`);
} catch (error) {
  complain(error.message);
}
setInterval(refresh, EVERY);
setInterval(() => refreshList().catch((error) => complain(error.message)), 5 * EVERY);
