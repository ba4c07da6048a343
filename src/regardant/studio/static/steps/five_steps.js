// Project, score, scale, softmax, mix: one query of one head, with the model's own numbers.

import { choice } from "../pictures/view.js";
import { busy, field, select } from "../choosing.js";
import { ask, complain, html, saveButton } from "../shell.js";
import { natural } from "../state.js";
import { short, strips } from "./strips.js";

const PRODUCTS = 12;

export function fiveSteps(page, panel) {
  const { state, keep, question } = page;

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
      const told = await busy(panel, () => ask("/api/steps", { body }));
      panel.replaceChildren(chooser(told), ...sections(told));
    } catch (error) {
      complain(error.message);
    }
  }

  function chooser(told) {
    const here = told.places.find(({ place }) => place === told.place);
    const heads = Array.from({ length: here.heads }, (_, i) => String(i + 1));
    const places = select(
      told.places.map(({ place }) => place),
      told.place,
      (attention) => show({ attention, head: "0", query: "0" }),
    );
    const words = told.queries.map((word, i) => `${i}: ${word}`);
    const query = select(words, words[told.query], (name) => show({ query: String(words.indexOf(name)) }));
    const head = choice("Head", heads, String(told.head + 1), (_, number) => show({ head: String(number) }));
    return html(
      "div",
      { class: "asking" },
      field("Attention", places),
      field("Query", query),
      html("div", { class: "field" }, html("span", {}, "Head"), head),
    );
  }

  function sections(told) {
    const word = told.queries[told.query];
    const size = told.q.length;
    const steps = [];
    const add = (name, formula, told, ...drawings) => steps.push(section(steps.length + 1, name, formula, told, drawings));
    const vectors = [
      { name: `q of ${word}`, values: told.q, marked: true },
      ...told.keys.map((key, i) => ({ name: `k of ${key}`, values: told.k[i] })),
    ];
    const values = told.keys.map((key, i) => ({ name: `v of ${key}`, values: told.v[i] }));
    add(
      "Project",
      "q = x·Wq + b, k = y·Wk + b, v = y·Wv + b",
      projectionOf(told),
      strips(vectors, "Query and keys"),
      strips(values, "Values"),
    );
    const row = (name, numbers) => strips([{ name, values: numbers }], name, { columns: told.keys });
    if (told.products) {
      add(
        "Score",
        "q · k of every key = |q| |k| cos θ",
        `${sumOf(told)} |q| = ${short(told.length)}. ${symmetryOf(told)}`,
        row("q · k", told.products),
        row("|k|", told.lengths),
        row("cos θ", told.cosines),
      );
      const scale = `times ${short(told.scale)}${Math.abs(told.scale * Math.sqrt(size) - 1) < 1e-6 ? ` = 1/√${size}` : ""}`;
      const hidden = told.scores.filter((one) => one === null).length;
      const moved = told.scores.some((one, i) => one !== null && Math.abs(one - told.scaled[i]) > 1e-5);
      const what = [
        moved ? "A position bias is added." : "",
        hidden ? `${hidden} masked ${hidden === 1 ? "key is" : "keys are"} set to −∞.` : "",
      ];
      const masked = hidden || moved ? [row("to softmax", told.scores)] : [];
      add(
        "Scale",
        `${scale}; then masks`,
        what.filter(Boolean).join(" ") || "No key is masked for this query.",
        row("scaled", told.scaled),
        ...masked,
      );
    } else if (told.scores) {
      add("Score", `${told.mechanism} scores pairs in its own way`, "Masked keys have −∞.", row("score", told.scores));
    }
    const own = told.scores ? "turns scores into weights in its own way" : "has no scores, only these weights";
    const rest = told.softmax ? "exp(score) / sum of exp(scores)" : `${told.mechanism} ${own}`;
    const sum = told.weights.reduce((total, one) => total + one, 0);
    add(
      told.softmax ? "Softmax" : "Weights",
      rest,
      `They sum to ${sum.toFixed(4)}.`,
      strips([{ name: "weight", values: told.weights }], "weights", { columns: told.keys, largest: 1 }),
    );
    const shares = told.keys.map((key, i) => ({
      name: `${short(told.weights[i])} · v of ${key}`,
      values: told.v[i].map((one) => one * told.weights[i]),
    }));
    const most = Math.max(1e-9, ...told.mixed.map(Math.abs), ...shares.flatMap(({ values }) => values.map(Math.abs)));
    add(
      "Mix",
      "sum of weight · v over all keys",
      `The output of head ${told.head + 1} for ${word}.`,
      strips(shares, "Weighted values", { largest: most }),
      strips([{ name: "mixed", values: told.mixed, marked: true }], "mixed", { largest: most }),
    );
    return steps;
  }

  // The sum of one component of the query: the largest of its products.
  function projectionOf(told) {
    const projected = told.projected;
    if (!projected) return `${told.mechanism} takes queries that no single matrix projects.`;
    const { x, weight, bias, component, q, turned } = projected;
    const products = x.map((one, i) => [i, one, weight[i], one * weight[i]]).sort((a, b) => Math.abs(b[3]) - Math.abs(a[3]));
    const first = products.slice(0, PRODUCTS);
    const rest = products.slice(PRODUCTS).reduce((sum, one) => sum + one[3], 0);
    const rows = first.map(([i, a, b, ab]) =>
      html("tr", {}, html("th", { scope: "row" }, `x[${i}]`), ...[a, b, ab].map((one) => html("td", {}, one.toFixed(4)))),
    );
    const end = [
      ["other products", "", "", rest],
      ["bias", "", "", bias],
      [`q[${component}]`, "", "", q[component]],
    ];
    rows.push(
      ...end.map(([name, a, b, value]) =>
        html(
          "tr",
          {},
          html("th", { scope: "row" }, name),
          html("td", {}, a),
          html("td", {}, b),
          html("td", {}, value.toFixed(4)),
        ),
      ),
    );
    const head = html("tr", {}, ...["", "x", "Wq", "product"].map((name) => html("th", { scope: "col" }, name)));
    const input = html("input", { type: "number", min: 0, max: q.length - 1, value: component });
    input.addEventListener("change", () => show({ component: input.value }));
    const after = turned ? " Positions then rotate q; the vectors below are rotated." : "";
    const summary = html(
      "summary",
      {},
      `x has ${x.length} numbers, Wq is ${x.length} × ${q.length}: how q[${component}] is computed.${after}`,
    );
    return html(
      "details",
      { class: "table" },
      summary,
      field("Component", input),
      html("table", {}, html("thead", {}, head), html("tbody", {}, ...rows)),
    );
  }

  function symmetryOf(told) {
    if (told.asymmetry === null) return "";
    const share = `${(100 * told.asymmetry).toFixed(1)} %`;
    return told.asymmetry < 1e-6
      ? "The scores of this head are symmetric: i scores j as j scores i."
      : `${share} of this head's scores is antisymmetric: i scores j otherwise than j scores i.`;
  }

  function sumOf(told) {
    const best = told.products.indexOf(Math.max(...told.products));
    const terms = told.q.slice(0, 3).map((one, i) => `${short(one)}·${short(told.k[best][i])}`);
    return `For ${told.keys[best]}: ${terms.join(" + ")} + … = ${short(told.products[best])}, the largest.`;
  }

  return show();
}

function section(number, name, formula, told, drawings) {
  const figures = drawings.map((drawing) =>
    html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" }, drawing),
  );
  const saves = drawings.map((drawing) =>
    saveButton(
      () => drawing,
      () => `${number} ${name} ${drawing.getAttribute("aria-label")}`,
    ),
  );
  const shown = figures.flatMap((figure, i) => [figure, saves[i]]);
  const note = typeof told === "string" ? html("p", { class: "quiet" }, told) : told;
  return html(
    "section",
    { class: "step" },
    html("h2", {}, `${number}. ${name}`),
    html("p", { class: "formula" }, formula),
    note,
    ...shown,
  );
}
