// Links to the other pages, and the papers whose models can be trained.

import { ask, complain, html, shell } from "../shell.js";

const PAGES = [
  ["/runs", "Runs", "Loss and metrics while a run trains, of one run or of several; entropy of heads and samples at each validation."],
  [
    "/look",
    "Look inside",
    "The answer to an item and the attention of every head; alignment, beam search, heads switched off.",
  ],
  ["/steps", "Step through", "Attention in five steps with its numbers, generation token by token, vectors at each layer, masks, shapes."],
  ["/lab", "Lab", "The lectures' examples with sliders, and what attention costs."],
];

const main = shell();
const cards = PAGES.map(([address, name, what]) =>
  html("a", { href: address, class: "card" }, html("h2", {}, name), html("p", { class: "quiet" }, what)),
);
const count = html("p", { class: "quiet" });
const story = html("ol", { class: "timeline", "aria-label": "Timeline" });
main.append(html("h1", {}, "Studio"), count, html("div", { class: "cards" }, ...cards), html("h2", { class: "over" }, "Papers to train"), story);

// One paper: year, authors, contribution, and the command or the run.
function entry({ year, authors, link, what, command, run }) {
  const look = run ? [" ", html("a", { href: `/look#${new URLSearchParams({ run })}` }, "Look inside its run")] : [];
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
  story.append(...papers.map(entry));
  count.textContent = runs.length
    ? `${runs.length} ${runs.length === 1 ? "run" : "runs"} here: ${runs.map((run) => run.run).join(", ")}`
    : "There is no run here yet: `regardant demo` trains one in two minutes.";
} catch (error) {
  complain(error.message);
}
