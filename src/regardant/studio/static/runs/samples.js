// Texts that a run's model wrote for a few fixed items at each validation, with new words marked.

import { html } from "../shell.js";
import { changedWords } from "../look/changes.js";

const MOST = 40;

export function samplesView(events, number) {
  const [first] = events;
  const { source, reference } = first.samples[number];
  const texts = events.map((event) => [event.update, event.samples[number]?.translation ?? ""]);
  const rows = texts.map(([update, text], i) => {
    const words = changedWords(i ? texts[i - 1][1] : "", text);
    const written = words.flatMap(({ word, changed }) => [html(changed && i ? "mark" : "span", {}, word), " "]);
    return html("tr", {}, html("th", { scope: "row" }, update.toLocaleString("en")), html("td", { dir: "auto" }, ...written));
  });
  const kept = rows.slice(-MOST).reverse();
  const head = html(
    "tr",
    {},
    html("th", { scope: "col" }, "update"),
    html("th", { scope: "col" }, "answer, latest first"),
  );
  return [
    html("p", { class: "sentence", dir: "auto" }, source),
    html("p", { class: "quiet", dir: "auto" }, `reference: ${reference}`),
    html(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" },
      html("table", { class: "samples translation" }, html("thead", {}, head), html("tbody", {}, ...kept)),
    ),
  ];
}
