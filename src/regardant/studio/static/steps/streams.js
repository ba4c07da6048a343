// Vectors at each layer: the norms of the vectors at every place, and the numbers of one place, element by element.

import { choice } from "../pictures/view.js";
import { field, select } from "../choosing.js";
import { ask, complain, html, saveButton, svg } from "../shell.js";
import { natural } from "../state.js";
import { working } from "../working.js";
import { readablePlace } from "./places.js";
import { short, strips } from "./strips.js";
import { readable } from "./tokens.js";

const WIDEST = 256; // largest number of components drawn of a vector
const ABOUT =
  "The norm of each element's vector at every place, from the embedding (top) to the last layer (bottom). A sublayer adds to the vector, a normalisation rescales it. Click a place to see all its numbers.";
const [BINS, WIDTH, HEIGHT, FOOT] = [32, 420, 130, 22];

export function streams(page, panel) {
  const { state, keep, question } = page;
  const stage = panel.appendChild(html("div"));

  async function load(change = {}) {
    keep(change);
    complain();
    try {
      const body = { ...question(), place: state.place || null };
      const answer = await working(stage, `${state.run} reads the item`, (signal) => ask("/api/streams", { body, signal }));
      if (answer === null) return;
      answer.tokens = readable(answer.tokens);
      answer.sides.forEach((side) => (side.tokens = readable(side.tokens)));
      draw(answer);
    } catch (error) {
      complain(error.message);
    }
  }

  function draw(answer, change = {}) {
    keep(change);
    const names = Object.keys(answer.vectors);
    const quantity = names.includes(state.quantity) ? state.quantity : names[0];
    const token = Math.min(natural(state.token), answer.tokens.length - 1);
    const overviews = answer.sides.map((side) => overview(side, answer.place, (place) => load({ place })));
    const places = answer.sides.flatMap((side) => side.places.map(({ place }) => place));
    const words = answer.tokens.map((word, i) => `${i + 1}: ${word}`);
    const vectors = answer.vectors[quantity];
    const shown = vectors.map((values, i) => ({ name: answer.tokens[i], values: values.slice(0, WIDEST), marked: i === token }));
    const label = `${readablePlace(answer.place)}: ${quantity.replaceAll("_", " ")}`;
    const picture = strips(shown, label, { robust: true, choose: (row) => draw(answer, { token: String(row) }), chosen: token });
    const size = vectors[0].length;
    const wide = size > WIDEST ? `the first ${WIDEST} of its ${size} numbers` : `its ${size} numbers`;
    const about = `One row per element, one cell for each of ${wide}. Click an element to see a histogram of its numbers.`;
    const counted = names
      .filter((name) => name === quantity || "before" in answer.vectors)
      .map((name) => histogram(answer.vectors[name][token], `${name}: ${answer.tokens[token]}`));
    stage.replaceChildren(
      html("p", { class: "quiet" }, ABOUT),
      ...overviews.map(figure),
      html(
        "div",
        { class: "asking" },
        field("Place", select(places, answer.place, (place) => load({ place }), readablePlace)),
        field("Element", select(words, words[token], (word) => draw(answer, { token: String(words.indexOf(word)) }))),
        html("div", { class: "field" }, html("span", {}, "Quantity"), choice("Quantity", names.map((name) => name.replaceAll("_", " ")), quantity.replaceAll("_", " "), (_, i) => draw(answer, { quantity: names[i] }))),
      ),
      html("p", { class: "quiet" }, about),
      figure(picture),
      html("div", { class: "matrices" }, ...counted.map(figure)),
    );
  }

  return load();
}

function overview(side, chosen, choose) {
  const rows = side.places.map(({ place, lengths }) => ({
    name: nameOf(place),
    values: lengths,
    marked: place === chosen,
  }));
  const at = side.places.findIndex(({ place }) => place === chosen);
  return strips(rows, `${side.name}: norm of vectors`, {
    columns: side.tokens,
    robust: true,
    choose: (row) => choose(side.places[row].place),
    chosen: at < 0 ? null : at,
  });
}

// The name of a place without its stack, which is in the title of the drawing.
const nameOf = (place) => readablePlace(place).replace(/^(Encoder|Decoder), /, "");

// A histogram of the numbers of a vector.
function histogram(values, label) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const span = most - least || 1;
  const counts = Array(BINS).fill(0);
  for (const value of values) counts[Math.min(BINS - 1, Math.floor(((value - least) / span) * BINS))] += 1;
  const tallest = Math.max(...counts);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length);
  const wide = WIDTH / BINS;
  const bars = counts.map((count, i) => {
    const height = (count / tallest) * (HEIGHT - 2 * FOOT);
    const from = least + (i * span) / BINS;
    const title = svg("title", {}, `${short(from)} to ${short(from + span / BINS)}: ${count}`);
    return svg("rect", { x: i * wide, y: HEIGHT - FOOT - height, width: wide - 1, height, class: "bar-own" }, title);
  });
  const foot = (x, anchor, text) =>
    svg("text", { x, y: HEIGHT - FOOT / 2, "text-anchor": anchor, class: "row-word small" }, text);
  const caption = `${label} · mean ${short(mean)}, deviation ${short(deviation)}`;
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, role: "img", "aria-label": caption },
    svg("text", { x: 0, y: FOOT / 2, class: "row-word" }, caption),
    ...bars,
    foot(0, "start", short(least)),
    foot(WIDTH, "end", short(most)),
  );
}

function figure(drawing) {
  const name = drawing.getAttribute("aria-label");
  return html(
    "section",
    { class: "step" },
    html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" }, drawing),
    saveButton(
      () => drawing,
      () => name,
    ),
  );
}
