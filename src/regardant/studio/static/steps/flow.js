// Attention as an animation: a query meets every key, scores become weights, values are mixed. A slider is the time.

import { html, svg } from "../shell.js";
import { mixed, scoreAt, stagesOf } from "./storyboard.js";
import { short } from "./strips.js";

const STAGE = 2600; // milliseconds per stage
const FRAME = 40;
const NOTCHES = 100; // steps of the slider per stage
const still = matchMedia("(prefers-reduced-motion: reduce)");

// `at`: number of stages passed, from the URL. `moved` is called with the new number.
export function flow(answer, queries, keys, at, moved) {
  const stages = stagesOf(answer, queries, keys);
  const most = Math.max(1e-9, ...answer.v.flat().map(Math.abs));
  const mostK = Math.max(1e-9, ...answer.k.flat().map(Math.abs), ...answer.q.map(Math.abs));
  const word = queries[answer.query];
  const [query, output] = [vector(answer.q, mostK, `query of ${word}`), vector(mixed(answer, 0), most, `output for ${word}`)];
  const x = answer.projected ? vector(answer.projected.x, 0, `x of ${word}`) : null;
  const rows = keys.map((key, row) => rowOf(answer, key, row, mostK, most));
  const says = html("p", { class: "stage-says", "aria-live": "polite" });
  const slider = html("input", { type: "range", min: 0, max: stages.length * NOTCHES, "aria-label": "Time" });
  const play = html("button", { type: "button", class: "do" }, "Play");
  const marks = stages.map(({ name }, i) => {
    const button = html("button", { type: "button", class: "mark-of-stage" }, `${i + 1}. ${name}`);
    button.addEventListener("click", () => run(i, i + 1));
    return button;
  });
  const header = html("div", { class: "flow-row flow-head" }, ...["", "key", "score", "weight", "value", "weight × value"].map((name) => html("span", {}, name)));
  const board = html("div", { class: "board", role: "group", "aria-label": "Attention in time" });
  board.append(
    html("div", { class: "flow-ask" }, html("b", {}, word), ...(x ? [labelled("x", x)] : []), labelled("query", query)),
    header,
    ...rows.map(({ element }) => element),
    html("div", { class: "flow-out" }, html("b", {}, `Output for ${word}`), output.element),
  );
  let [timer, now] = [null, 0];

  function show(time) {
    now = Math.min(stages.length, Math.max(0, time));
    const number = Math.min(stages.length - 1, Math.floor(now));
    const part = now - number;
    const index = (id) => stages.findIndex((stage) => stage.id === id);
    const passed = (id) => (index(id) < 0 ? 0 : Math.min(1, Math.max(0, now - index(id))));
    const stage = stages[number].id;
    says.textContent = stages[number].says;
    board.dataset.stage = stage;
    marks.forEach((mark, i) => mark.setAttribute("aria-current", i === number ? "step" : "false"));
    query.element.style.opacity = Math.max(0.08, passed("project") * 2);
    rows.forEach((row, i) => {
      const turn = (part_) => Math.min(1, Math.max(0, part_ * rows.length - i)); // one row after the other
      const projected = turn(passed("project"));
      const scored = answer.scores ? turn(passed("score")) : 0;
      row.key.style.opacity = row.value.style.opacity = Math.max(0.08, projected);
      const score = scored > 0 ? scoreAt(answer, i, stage, part) : undefined;
      row.score.textContent = scored > 0 ? short(score) : "";
      row.element.classList.toggle("is-masked", scored > 0 && score === null);
      const weighed = passed("weights");
      row.weight.style.setProperty("--weight", answer.weights[i] * weighed);
      row.percent.textContent = weighed > 0 ? `${(100 * answer.weights[i] * weighed).toFixed(1)}%` : "";
      const share = turn(passed("mix"));
      row.share.style.opacity = share;
      const active = (stage === "score" || stage === "mix" || stage === "project") && part < 1 && Math.floor(part * rows.length) === i;
      row.element.classList.toggle("is-now", active);
    });
    output.set(mixed(answer, passed("mix")));
    output.element.style.opacity = Math.max(0.08, passed("mix") > 0 ? 1 : 0);
    slider.value = Math.round(now * NOTCHES);
    slider.setAttribute("aria-valuetext", `${stages[number].name}, ${Math.round(100 * part)}%`);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    moved(now);
  }

  function run(from, to) {
    stop();
    if (still.matches) return (show(to), moved(now));
    let begun = performance.now();
    show(from);
    play.textContent = "Pause";
    timer = setInterval(() => {
      if (!board.isConnected) return clearInterval(timer);
      const time = from + (performance.now() - begun) / STAGE;
      show(Math.min(to, time));
      if (time >= to) stop();
    }, FRAME);
  }

  play.addEventListener("click", () => (timer ? stop() : run(now >= stages.length ? 0 : now, stages.length)));
  slider.addEventListener("input", () => {
    if (timer) stop();
    show(slider.value / NOTCHES);
    moved(now);
  });
  const start = at === null ? (still.matches ? stages.length : 0) : at;
  show(start);
  if (at === null && !still.matches) requestAnimationFrame(() => run(0, stages.length));
  const controls = html("div", { class: "flow-controls" }, play, slider);
  return html("div", { class: "flow" }, html("div", { class: "stage-marks" }, ...marks), controls, says, board);
}

function rowOf(answer, key, row, mostK, most) {
  const k = vector(answer.k[row], mostK, `key of ${key}`).element;
  const value = vector(answer.v[row], most, `value of ${key}`).element;
  const share = vector(answer.v[row].map((one) => one * answer.weights[row]), most, `weight × value of ${key}`).element;
  const score = html("span", { class: "flow-score" });
  const bar = html("span", { class: "bar-of" });
  const percent = html("span", { class: "number" });
  const weight = html("span", { class: "flow-weight", title: `weight of ${key}: ${answer.weights[row]}` }, bar, percent);
  const of = (name, part) => html("span", { class: `flow-cell of-${name}` }, part);
  const cells = [of("key", k), of("score", score), of("weight", weight), of("value", value), of("share", share)];
  const element = html("div", { class: "flow-row" }, html("span", { class: "flow-word", title: key }, key), ...cells);
  return { element, key: k, value, share, score, weight: bar, percent };
}

// A vector as a strip of cells; the title of a cell has its number.
function vector(values, largest, label) {
  const most = largest || Math.max(1e-9, ...values.map(Math.abs));
  const cells = values.map((_, i) => svg("rect", { x: i, y: 0, width: 1, height: 1 }, svg("title", {})));
  const strip = svg("svg", { viewBox: `0 0 ${values.length} 1`, preserveAspectRatio: "none", class: "vector", role: "img", "aria-label": label }, ...cells);
  const set = (numbers) => {
    numbers.forEach((one, i) => {
      cells[i].setAttribute("class", one < 0 ? "below" : "above");
      cells[i].setAttribute("fill-opacity", Math.min(1, Math.abs(one) / most).toFixed(3));
      cells[i].dataset.value = one;
      cells[i].firstChild.textContent = `${label}, component ${i + 1}: ${one.toPrecision(4)}`;
    });
  };
  set(values);
  return { element: strip, set };
}

const labelled = (name, { element }) => html("span", { class: "flow-labelled" }, html("span", { class: "quiet" }, name), element);
