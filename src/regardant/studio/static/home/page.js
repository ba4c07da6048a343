// A picture of a model's attention, where to begin, the user's runs, and the history of attention.

import { BETWEEN } from "../choosing.js";
import { crossing } from "../crossing.js";
import { ask, command, complain, html, shell } from "../shell.js";
import { LECTURE } from "./lecture.js";

const SHOWN = 6; // largest number of runs
const STORY = "story/";

const main = shell();
const start = html("section", { class: "start", "aria-label": "Start here" });
const mine = html("section", { "aria-label": "Your runs" });
const story = html("section", { "aria-label": "The story of attention" });
main.append(hero(), start, mine, story);

function hero() {
  const label = "English words above, their French translation below, joined by lines of attention";
  const picture = crossing(LECTURE, label, { moving: true, height: 300 });
  const name = () => (picture.playing() ? "Pause" : "Play");
  const button = html("button", { type: "button", class: "save" }, "Pause");
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) button.textContent = "Play";
  button.addEventListener("click", () => {
    picture.playing() ? picture.pause() : picture.play();
    button.textContent = name();
  });
  return html(
    "section",
    { class: "hero" },
    html("h1", {}, "See what your model looks at"),
    html(
      "p",
      { class: "lead" },
      "A translator writes one French word at a time. Before each word, attention decides how much every English word counts. Adjectives follow their noun in French, so ",
      html("b", {}, "European Economic Area"),
      " comes out in reverse, and the lines cross.",
    ),
    picture.element,
    html(
      "div",
      { class: "bar" },
      html("p", { class: "note" }, "Measured weights of the model that ", html("code", {}, "regardant demo"), " trains in two minutes. This sentence is not in its training data."),
      button,
    ),
  );
}

function card(number, title, what, ...parts) {
  return html("article", { class: "card" }, html("h3", {}, `${number}. ${title}`), html("p", { class: "quiet" }, what), ...parts);
}

const link = (address, name) => html("a", { href: address, class: "go" }, name);
const lookAt = (run) => `/look#${new URLSearchParams({ run })}`;

function showStart(trained) {
  const best = trained.find(({ task }) => task === "translation") ?? trained[0];
  const first = best
    ? card(1, "Look inside a model", `Type a sentence and see which words ${best.run} looks at.`, link(lookAt(best.run), `Open ${best.run}`))
    : card(1, "Train a model", "Two minutes, no download: English to French.", command("regardant demo"));
  const steps = best
    ? link(`/steps#${new URLSearchParams({ run: best.run })}`, "Play the five steps")
    : html("p", { class: "note" }, "Available once a model is trained.");
  start.replaceChildren(
    html("h2", {}, "Start here"),
    html(
      "div",
      { class: "cards" },
      first,
      card(2, "Watch attention compute", "From vectors to scores, weights and a mix, with every number of your own model.", steps),
      card(3, "Try the mathematics", "Guess first, then move the sliders: softmax, scaling, positions, cost. No model needed.", link("/lab", "Open the lab")),
    ),
  );
}

function runCard(run) {
  if (run.problem) return html("li", {}, html("b", {}, run.run), html("p", { class: "note" }, run.problem));
  const best = run.best === null ? "not validated yet" : `${run.best_by.replaceAll("_", " ")} ${Number(run.best.toPrecision(4))}`;
  const state = run.trained && run.progress >= 1 ? "trained" : `${Math.round(100 * run.progress)}% trained`;
  const links = [...(run.trained ? [link(lookAt(run.run), "Look inside")] : []), link(`/runs#${new URLSearchParams({ runs: run.run })}`, "Curves")];
  return html(
    "li",
    {},
    html("b", {}, run.run),
    html("p", { class: "quiet" }, `${run.task.replaceAll("_", " ")} · ${state} · ${best}`),
    html("p", { class: "links" }, ...links),
  );
}

function showRuns(runs) {
  const first = runs.slice(0, SHOWN).map(runCard);
  const more = runs.length > SHOWN ? [link("/runs", `All ${runs.length} runs`)] : [];
  const title = html("h2", {}, runs.length ? `Your runs (${runs.length})` : "Your runs");
  const none = html("p", { class: "quiet" }, "None yet. Start a training, then load this page again to see its run.");
  mine.replaceChildren(title, ...(runs.length ? [html("ul", { class: "own" }, ...first), ...more] : [none]));
}

// One paper: year, contribution, authors, and the command or the run.
function entry({ year, authors, link: paper, what, recipe, command: line, run }) {
  const description = what || recipe;
  return html(
    "li",
    {},
    html("span", { class: "year" }, year),
    html("p", {}, html("b", {}, `${description[0].toUpperCase()}${description.slice(1)}`), " ", html("a", { href: paper, rel: "noreferrer", class: "paper" }, authors)),
    run ? html("p", { class: "links" }, link(lookAt(run), `Look inside ${run}`)) : command(line),
  );
}

function showStory(papers) {
  const [own, others] = [papers.filter(({ recipe }) => recipe.startsWith(STORY)), papers.filter(({ recipe }) => !recipe.startsWith(STORY))];
  const runs = own.map(({ run }) => run).filter(Boolean);
  const compare = runs.length > 1 ? [html("p", { class: "links" }, link(`/runs#${new URLSearchParams({ runs: runs.join(BETWEEN) })}`, "Compare their curves"))] : [];
  story.replaceChildren(
    html("h2", {}, "The story of attention, in seven models"),
    html("p", { class: "lead" }, "Each one trains for two minutes on the same sentences, generated by a small grammar: nothing is downloaded. Train two, then compare."),
    html("ol", { class: "timeline", "aria-label": "Timeline" }, ...own.map(entry)),
    ...compare,
    html(
      "details",
      { class: "more" },
      html("summary", {}, `${others.length} more papers, on data of your own or a download`),
      html("p", { class: "note" }, "FOLDER is the folder that holds the data set's files; the recipe names them."),
      html("ol", { class: "timeline", "aria-label": "More papers" }, ...others.map(entry)),
    ),
  );
}

try {
  const [runs, papers] = await Promise.all([ask("/api/runs"), ask("/api/timeline")]);
  showStart(runs.filter((run) => run.trained));
  showRuns(runs);
  showStory(papers);
} catch (error) {
  complain(error.message);
}
