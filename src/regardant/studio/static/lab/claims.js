// Printed, true and computed values of the lectures' claims. Printed and true values come from the server, so that they
// have a single source.

import { ask, complain } from "../shell.js";
import { html, dataTable, note } from "./controls.js";
import { COST_MEASURES } from "./cost_measures.js";
import { agrees, shown } from "./digits.js";
import { MEASURES } from "./measures.js";
import { POSITION_MEASURES } from "./position_measures.js";

const ALL = { ...MEASURES, ...POSITION_MEASURES, ...COST_MEASURES };
const VERDICTS = {
  right: "the lecture is right",
  wrong: "the lecture is wrong",
  partly: "the lecture is partly right",
  rounded: "the lecture rounds",
  unstated: "the lecture gives no number",
  experiment: "found by experiment",
};
let asked = null;

// The claims of the lab, by id; fetched once.
export function claims() {
  asked ??= ask("/api/lab/claims").then((list) => new Map(list.map((claim) => [claim.id, claim])));
  return asked;
}

// The claims of these ids: computed when the reader opens one, since some take a second.
export function claimList(ids) {
  const list = html(
    "section",
    { class: "claims", "aria-label": "What the lectures say" },
    html("h2", {}, "What the lectures say"),
  );
  claims().then(
    (known) => list.append(...ids.map((id) => claimOf(known.get(id)))),
    (error) => complain(error.message),
  );
  return list;
}

function claimOf(claim) {
  const mark = html("span", { class: `verdict${claim.verdict === "wrong" ? " is-bad" : ""}` }, VERDICTS[claim.verdict]);
  const body = html("div", {}, note(`${claim.source}. ${claim.note} (Claim ${claim.id} of regardant verify.)`));
  const details = html("details", { id: claim.id }, html("summary", {}, `${claim.title} `, mark), body);
  details.addEventListener("toggle", async () => {
    if (!details.open || body.childElementCount > 1) return;
    const waiting = note("measuring…");
    body.append(waiting);
    await new Promise((resume) => setTimeout(resume)); // so that the browser shows the text first
    const found = await ALL[claim.id]();
    waiting.replaceWith(html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" }, figures(claim, found)));
  });
  return details;
}

function figures(claim, found) {
  const names = [...new Set([...Object.keys(claim.lecture), ...Object.keys(claim.true)])];
  const rows = names.map((name) => {
    const truth = claim.true[name];
    const measured = truth === undefined ? "" : found[name];
    const ok = truth === undefined ? "" : agrees(truth, measured) ? "agrees with the true value" : "DIFFERS from the true value";
    return [
      name || "value",
      asLines(claim.lecture[name] ?? ""),
      asLines(truth ?? ""),
      truth === undefined ? "" : asLines(shown(truth, measured)),
      ok,
    ];
  });
  return dataTable(claim.title, ["", "the lecture says", "true value", "this page computes", ""], rows, "wrapped");
}

const asLines = (text) => text.replaceAll("; ", "\n");
