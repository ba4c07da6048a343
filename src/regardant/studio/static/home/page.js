// The way to the other pages, and the story of attention as a list of what can be trained.

import { ask, complain, html, shell } from "../shell.js";

const PAGES = [
  ["/runs", "Runs", "Curves while a run trains, what its heads do, what it translates, several runs side by side."],
  [
    "/look",
    "Translate and look",
    "Every head over a sentence, where each word comes from, how the search went; heads switched off.",
  ],
  ["/steps", "Step through", "The five steps of attention with their numbers, writing token by token, what passes the layers, masks, shapes."],
  ["/lab", "Lab", "The lectures' examples with sliders, and what attention costs."],
];

const main = shell();
const cards = PAGES.map(([address, name, what]) =>
  html("a", { href: address, class: "card" }, html("h2", {}, name), html("p", { class: "quiet" }, what)),
);
const count = html("p", { class: "quiet" });
const story = html("ol", { class: "timeline", "aria-label": "Timeline" });
main.append(html("h1", {}, "Studio"), count, html("div", { class: "cards" }, ...cards), html("h2", { class: "over" }, "The story, to be trained"), story);

// One paper: when, who, what it brought, and the command or the run.
function told({ year, authors, link, what, command, run }) {
  const look = run ? [" ", html("a", { href: `/look#${new URLSearchParams({ run })}` }, "Look at its run")] : [];
  return html(
    "li",
    {},
    html("span", { class: "year" }, year),
    html("div", {}, html("a", { href: link, rel: "noreferrer" }, authors), `: ${what}`),
    html("div", { class: "quiet" }, html("code", {}, command), ...look),
  );
}

try {
  const [runs, papers] = await Promise.all([ask("/api/runs"), ask("/api/timeline")]);
  story.append(...papers.map(told));
  count.textContent = runs.length
    ? `${runs.length} ${runs.length === 1 ? "run" : "runs"} here: ${runs.map((run) => run.run).join(", ")}`
    : "There is no run here yet: `regardant demo` trains one in two minutes.";
} catch (error) {
  complain(error.message);
}
