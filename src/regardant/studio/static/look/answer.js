// The answer to an item with its details: changes, probabilities, next best candidates, words not in the training text.

import { html } from "../shell.js";
import { changedWords } from "./changes.js";

const MOST_SHARES = 5; // shown at first

// `found.forced`: the answer was given by the reader; `found.off`: number of heads that were switched off.
export function answerOf(found, before) {
  const plain = found.answer.split(/\s+/).map((word) => ({ word, changed: false }));
  const words = before ? changedWords(before.answer, found.answer) : plain;
  const sentence = words.flatMap(({ word, changed }) => [html(changed ? "mark" : "span", {}, word), " "]);
  const candidates = found.candidates ?? [];
  const next = candidates.slice(1).map((one) => line(one.score.toFixed(3), one.text));
  const score = candidates.length ? `, score ${candidates[0].score.toFixed(3)}` : "";
  const number = found.log_probability === undefined ? "" : `log-probability ${found.log_probability.toFixed(3)}${score}`;
  const shares = found.shares.map(([name, share]) => line(`${(100 * share).toFixed(1)}%`, name));
  const parts = [];
  if (found.forced) parts.push(html("p", { class: "note" }, "This is your own translation, not the model's."));
  if (found.off) parts.push(html("p", { class: "note" }, `With ${found.off} ${found.off === 1 ? "head" : "heads"} switched off.`));
  parts.push(html("p", { class: "sentence translation", dir: "auto" }, ...sentence));
  if (before && before.answer !== found.answer) parts.push(html("p", { class: "quiet", dir: "auto" }, `before: ${before.answer}`));
  if (found.unseen.length) parts.push(unseen(found.unseen));
  parts.push(...(found.notes ?? []).map((note) => html("p", { class: "note" }, note)));
  if (number) parts.push(folded(`${number}${next.length ? "; next best" : ""}`, "Next best", next));
  if (shares.length) parts.push(...probabilities(shares));
  return parts;
}

function unseen(words) {
  const named = words.map((word) => `“${word}”`).join(", ");
  const [are, these] = words.length === 1 ? ["is", "this word"] : ["are", "these words"];
  return html("p", { class: "unseen", role: "note" }, `${named} ${are} not in the training text: the model has never seen ${these}, and its answer may still look confident.`);
}

function line(number, text) {
  return html("li", { class: "candidate-line" }, html("span", { class: "number" }, number), html("span", { dir: "auto" }, text));
}

function folded(summary, label, lines) {
  if (!lines.length) return html("p", { class: "quiet" }, summary);
  return html("details", {}, html("summary", { class: "quiet" }, summary), html("ol", { class: "candidates", "aria-label": label }, ...lines));
}

// The first probabilities, and a button that shows the others.
function probabilities(shares) {
  const list = html("ol", { class: "candidates shares", "aria-label": "Probabilities" }, ...shares);
  if (shares.length <= MOST_SHARES) return [list];
  const rest = shares.slice(MOST_SHARES);
  rest.forEach((one) => (one.hidden = true));
  const more = html("button", { type: "button", class: "save" }, `${rest.length} more`);
  more.addEventListener("click", () => {
    rest.forEach((one) => (one.hidden = false));
    more.remove();
  });
  return [list, more];
}
