// Attention of one head, from its input vector to its output, with the model's own numbers: animated for one query, and
// at once for all queries.

import { choice } from "../pictures/view.js";
import { field, select } from "../choosing.js";
import { ask, complain, html, saveButton } from "../shell.js";
import { natural } from "../state.js";
import { working } from "../working.js";
import { flow } from "./flow.js";
import { strips } from "./strips.js";
import { readable } from "./tokens.js";

const PRODUCTS = 12;
const WAYS = ["One word", "All words at once"];

export function fiveSteps(page, panel) {
  const { state, keep, question } = page;
  const stage = html("div");
  panel.append(stage);

  async function show(change = {}) {
    keep(change);
    complain();
    try {
      const body = {
        ...question(),
        attention: state.attention || null,
        head: natural(state.head),
        query: natural(state.query),
        component: natural(state.component),
      };
      const answer = await working(stage, `${state.run} reads the item`, (signal) => ask("/api/steps", { body, signal }));
      if (answer !== null) draw(answer);
    } catch (error) {
      complain(error.message);
    }
  }

  function draw(answer) {
    const [queries, keys] = [readable(answer.queries), readable(answer.keys)];
    const at = /^\d+(\.\d+)?$/.test(state.time) ? Number(state.time) : null;
    const body = html("div", {});
    const fill = (way) => {
      keep({ words: way });
      const one = () => flow(answer, queries, keys, at, (time) => keep({ time: time.toFixed(2) }));
      body.replaceChildren(way === WAYS[1] ? whole(answer, queries, keys) : one());
    };
    stage.replaceChildren(chooser(answer, queries, fill), body, projectionOf(answer), anglesOf(answer));
    fill(WAYS.includes(state.words) ? state.words : WAYS[0]);
  }

  function chooser(answer, queries, fill) {
    const here = answer.places.find(({ place }) => place === answer.place);
    const heads = Array.from({ length: here.heads }, (_, i) => String(i + 1));
    const names = answer.places.map(({ name }) => name);
    const places = select(names, here.name, (name) =>
      show({ attention: answer.places[names.indexOf(name)].place, head: "0", query: "0", time: "" }),
    );
    const head = choice("Head", heads, String(answer.head + 1), (_, number) => show({ head: String(number), time: "" }));
    const ways = choice("Words", WAYS, WAYS.includes(state.words) ? state.words : WAYS[0], fill);
    const words = queries.map((word, i) => {
      const button = html("button", { type: "button", class: `word${i === answer.query ? " is-row" : ""}`, "aria-pressed": i === answer.query }, word);
      button.addEventListener("click", () => show({ query: String(i), time: "" }));
      return button;
    });
    const asks = html("p", { class: "sentence asks", role: "group", "aria-label": "Query word" }, ...words.flatMap((one) => [one, " "]));
    return html(
      "div",
      { class: "flow-chooser" },
      html("div", { class: "asking" }, field("Attention", places), html("div", { class: "field" }, html("span", {}, "Head"), head), ways),
      html("p", { class: "quiet" }, "Choose the query word."),
      asks,
    );
  }

  // The sum of one component of the query, by its largest products.
  function projectionOf(answer) {
    const projected = answer.projected;
    if (!projected) return html("p", { class: "quiet" }, `${answer.mechanism} has no single matrix that projects its queries.`);
    const { x, weight, bias, component, q, turned } = projected;
    const products = x.map((one, i) => [i, one, weight[i], one * weight[i]]).sort((a, b) => Math.abs(b[3]) - Math.abs(a[3]));
    const rest = products.slice(PRODUCTS).reduce((sum, one) => sum + one[3], 0);
    const line = (name, ...cells) => html("tr", {}, html("th", { scope: "row" }, name), ...cells.map((one) => html("td", {}, one)));
    const rows = products.slice(0, PRODUCTS).map(([i, a, b, ab]) => line(`component ${i + 1} of x`, ...[a, b, ab].map((one) => one.toFixed(4))));
    const end = [
      ["all others", rest],
      ["bias", bias],
      [`component ${component + 1} of the query`, q[component]],
    ];
    rows.push(...end.map(([name, value]) => line(name, "", "", value.toFixed(4))));
    const head = html("tr", {}, ...["", "x", "matrix", "product"].map((name) => html("th", { scope: "col" }, name)));
    const input = html("input", { type: "number", min: 1, max: q.length, value: component + 1 });
    input.addEventListener("change", () => show({ component: String(Math.max(0, natural(input.value) - 1)) }));
    const after = turned ? " Rotary positions then rotate the query; the animation shows it rotated." : "";
    return html(
      "details",
      { class: "table" },
      html("summary", {}, "How one component of the query is computed"),
      html("p", { class: "note" }, `x has ${x.length} numbers, the matrix ${x.length} × ${q.length}.${after}`),
      field("Component of the query", input),
      html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" }, html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows))),
    );
  }

  // Each product of query and key as two norms and an angle.
  function anglesOf(answer) {
    if (!answer.products) return "";
    const cells = (...numbers) => numbers.map((one) => html("td", {}, one.toFixed(4)));
    const rows = readable(answer.keys).map((key, i) =>
      html("tr", {}, html("th", { scope: "row" }, key), ...cells(answer.products[i], answer.lengths[i], answer.cosines[i])),
    );
    const head = html("tr", {}, ...["", "q · k", "|k|", "cos θ"].map((name) => html("th", { scope: "col" }, name)));
    return html(
      "details",
      { class: "table" },
      html("summary", {}, "Length and direction in each score"),
      html("p", { class: "note" }, `q · k = |q| |k| cos θ, with |q| = ${answer.length.toFixed(4)}. ${symmetryOf(answer)}`),
      html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" }, html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows))),
    );
  }

  function symmetryOf(answer) {
    if (answer.asymmetry === null) return "";
    const share = `${(100 * answer.asymmetry).toFixed(1)} %`;
    return answer.asymmetry < 1e-6
      ? "The scores of this head are symmetric: word i scores word j as j scores i."
      : `${share} of this head's scores is antisymmetric: word i scores word j differently than j scores i.`;
  }

  return show();
}

// All queries of the head: their scores, weights and outputs.
function whole(answer, queries, keys) {
  if (!answer.whole) return html("p", { class: "quiet" }, "This item has too many elements to show all numbers at once: choose One word.");
  const { scores, weights, mixed } = answer.whole;
  const rows = (matrix) => matrix.map((values, i) => ({ name: queries[i], values, marked: i === answer.query }));
  const parts = [];
  if (scores) parts.push(figure("Scores, scaled and masked", strips(rows(scores), "Scores of all words", { columns: keys, robust: true })));
  parts.push(figure("Weights: each row sums to 1", strips(rows(weights), "Weights of all words", { columns: keys, largest: 1 })));
  parts.push(figure("Output of the head", strips(rows(mixed), "Outputs of all words", { robust: true })));
  return html("div", { class: "whole" }, ...parts);
}

function figure(title, drawing) {
  return html(
    "section",
    { class: "step" },
    html("h3", {}, title),
    html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": `${title}, scrolls if wide` }, drawing),
    saveButton(
      () => drawing,
      () => title,
    ),
  );
}
