// A catalogue of movies: keys are attributes, the query a viewer's taste, values the content that is sent.

import { group, html, numberTable, plate, slider } from "./controls.js";
import { barChart } from "./charts.js";
import * as field from "./fields.js";
import { product, scoresOf, softmax } from "./mathematics.js";
import { softRetrieval } from "./soft.js";

const ATTRIBUTES = ["action", "comedy", "romance", "space"];
const MOVIES = [
  { name: "Star Voyage", key: [0.8, 0.1, 0.2, 1], value: [0.9, 0.1, 0.4] },
  { name: "Two in Paris", key: [0, 0.5, 1, 0], value: [0.1, 0.6, 0.9] },
  { name: "The Last Chase", key: [1, 0.2, 0, 0], value: [1, 0.2, 0.2] },
  { name: "Clowns on Mars", key: [0.2, 1, 0.1, 0.8], value: [0.4, 1, 0.3] },
];
const CONTENT = ["thrill", "laughter", "tears"]; // content of the file that is sent, which may differ from the key

const fields = {
  likes: field.numbers([[0.7, 0.1, 0, 0.9]], 0, 1),
  movieTemperature: field.number(0.2, 0, 3),
};
const ITEMS = MOVIES.map(({ name, key, value }) => ({
  name,
  key: ATTRIBUTES.map((attribute, i) => `${attribute} ${key[i]}`).join(", "),
  value: CONTENT.map((content, i) => `${content} ${value[i]}`).join(", "),
}));

function open(state, remember) {
  const shown = softRetrieval("Movies: score and weight");
  const mixed = plate();

  function draw() {
    const scores = scoresOf(
      state.likes,
      MOVIES.map(({ key }) => key),
    )[0];
    const weights = shown.draw(ITEMS, scores, state.movieTemperature);
    const values = MOVIES.map(({ value }) => value);
    const [soft, hard] = [weights, softmax(scores, 0)].map((rows) => product([rows], values)[0]);
    const rows = CONTENT.map((name, i) => [name, hard[i], soft[i]]);
    const label = "What is sent: one movie, or a mixture of values";
    mixed.show(label, barChart({ label, rows, series: ["hard", "attention"], most: 1 }), () =>
      numberTable(label, ["", "hard", "attention"], rows),
    );
  }

  function set(change) {
    Object.assign(state, change);
    remember();
    draw();
  }

  const likes = ATTRIBUTES.map(
    (name, i) =>
      slider(name, state.likes[0][i], fields.likes, (number) => set({ likes: [state.likes[0].with(i, number)] }))
        .element,
  );
  const temperature = slider("temperature", state.movieTemperature, fields.movieTemperature, (movieTemperature) =>
    set({ movieTemperature }),
  );
  draw();
  return html(
    "div",
    { class: "work" },
    html("div", {}, group("Query: what you like", ...likes), temperature.element),
    html("div", {}, shown.element, mixed.element),
  );
}

export const movies = { fields, open };
