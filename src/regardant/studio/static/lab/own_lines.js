// Search over the reader's own lines; each line is both key and value.

import { ask } from "../shell.js";
import { choice, group, html, numberTable, plate, slider, textField } from "./controls.js";
import { barChart } from "./charts.js";
import * as field from "./fields.js";
import { entropy, keepTop, range, softmax } from "./mathematics.js";

const LINES = `Mario's Pizza: nearby restaurant, 4.5 stars, Italian cuisine
Grand Hotel: nearby hotel, 4.0 stars, luxury rooms
The old library: books about neural networks and their history
Restaurant guide: the best restaurants of the town
How attention mixes values by how well keys match a query
A cat sat on the mat and looked at the river bank`;
const BY = { words: "words, TF-IDF", letters: "letters, tolerates misspellings" };
const MOST_SHOWN = 12;
const PATIENCE = 300; // milliseconds after the last key press before the request is sent

const fields = {
  lines: field.text(LINES, 20000),
  wanted: field.text("best restaurants near me", 500),
  by: field.oneOf(Object.keys(BY)),
  lineTemperature: field.number(0.1, 0, 2),
  lineTop: field.number(20, 1, 20, { step: 1 }),
};

function open(state, remember) {
  const answer = html("p", { class: "answer", "aria-live": "polite" });
  const picture = plate();
  let [lines, similarities, waiting, asked] = [[], [], null, 0];

  function draw() {
    if (!lines.length) {
      answer.textContent = "Write a line, and a query.";
      return;
    }
    const weights = softmax(keepTop(similarities, state.lineTop), state.lineTemperature);
    const order = range(lines.length)
      .sort((a, b) => weights[b] - weights[a] || similarities[b] - similarities[a])
      .slice(0, MOST_SHOWN);
    const found = similarities.some((similarity) => similarity > 0);
    answer.textContent = found
      ? `A hard search returns “${lines[order[0]]}”. Attention spreads as widely as equal weights on ${Math.exp(entropy(weights)).toFixed(2)} of ${lines.length} lines.`
      : "No line has anything in common with the query, so all weights are equal: try letters.";
    const rows = order.map((i) => [lines[i], similarities[i], weights[i]]);
    const label = "Your lines: similarity and weight";
    picture.show(label, barChart({ label, rows, series: ["similarity", "weight"], most: 1 }), () =>
      numberTable(label, ["line", "similarity", "weight"], rows),
    );
  }

  async function search() {
    const mine = ++asked;
    const given = state.lines
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    try {
      const found = await ask("/api/lab/search", { body: { lines: given, query: state.wanted, by: state.by } });
      if (mine !== asked) return; // a newer search was started meanwhile
      [lines, similarities] = [given, found.similarities];
      draw();
    } catch (error) {
      answer.textContent = error.message;
    }
  }

  const later = (name) => (value) => {
    state[name] = value;
    remember();
    clearTimeout(waiting);
    waiting = setTimeout(search, PATIENCE);
  };
  const atOnce = (name) => (value) => {
    state[name] = value;
    remember();
    draw();
  };
  const names = Object.values(BY);
  const kind = choice("What is counted", names, BY[state.by], (_, i) => {
    state.by = Object.keys(BY)[i];
    remember();
    search();
  });
  const controls = html(
    "div",
    {},
    group("Query", textField("text to look for", state.wanted, 1, later("wanted")), kind),
    group("Lines (each is both key and value)", textField("one per line", state.lines, 10, later("lines"))),
    group(
      "From similarities to weights",
      slider("temperature", state.lineTemperature, fields.lineTemperature, atOnce("lineTemperature")).element,
      slider("top-k", state.lineTop, fields.lineTop, atOnce("lineTop")).element,
    ),
  );
  search();
  return html("div", { class: "work" }, controls, html("div", {}, answer, picture.element));
}

export const ownLines = { fields, open };
