// Attention as retrieval: five analogies, one shown at a time.

import { choice, html } from "./controls.js";
import { dictionary } from "./dictionary.js";
import { library } from "./library.js";
import { movies } from "./movies.js";
import { ownLines } from "./own_lines.js";
import { students } from "./students.js";
import * as field from "./fields.js";

const VIEWS = {
  Library: library,
  Students: students,
  "Your own lines": ownLines,
  Movies: movies,
  Dictionary: dictionary,
};
const ofViews = Object.assign({}, ...Object.values(VIEWS).map((view) => view.fields));

function open(state, remember) {
  const stage = html("div", { class: "lab" });
  const show = () => stage.replaceChildren(VIEWS[state.view].open(state, remember));
  const views = choice("Analogy", Object.keys(VIEWS), state.view, (view) => {
    state.view = view;
    remember();
    show();
  });
  show();
  return html("div", { class: "lab" }, views, stage);
}

export const bench = {
  about:
    "A query says what is looked for, a key what can be matched, a value what is returned. A hard lookup returns the value of the best key; attention returns a mixture of all values, each weighted by how well its key matches.",
  claims: ["N-10", "N-11", "N-16", "N-18"],
  fields: { view: field.oneOf(Object.keys(VIEWS)), ...ofViews },
  open,
};
