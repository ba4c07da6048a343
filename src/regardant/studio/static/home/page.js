import { ask, complain, html, shell } from "../shell.js";

const PAGES = [
  ["/runs", "Runs", "Curves while a run trains, what its heads do, what it translates, several runs side by side."],
  [
    "/translate",
    "Translate and look",
    "Every head over a sentence, where each word comes from, how the search went; heads switched off.",
  ],
  ["/steps", "Step through", "The five steps of attention with their numbers, writing token by token, masks, shapes."],
  ["/lab", "Lab", "The lectures' examples with sliders, and what attention costs."],
];

const main = shell();
const cards = PAGES.map(([address, name, what]) =>
  html("a", { href: address, class: "card" }, html("h2", {}, name), html("p", { class: "quiet" }, what)),
);
const count = html("p", { class: "quiet" });
main.append(html("h1", {}, "Studio"), count, html("div", { class: "cards" }, ...cards));
try {
  const runs = await ask("/api/runs");
  count.textContent = runs.length
    ? `${runs.length} ${runs.length === 1 ? "run" : "runs"} here: ${runs.map((run) => run.run).join(", ")}`
    : "There is no run here yet: `regardant demo` trains one in two minutes.";
} catch (error) {
  complain(error.message);
}
