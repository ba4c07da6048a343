// A soft dictionary: misspelt words still find their key.

import { choice, group, html, slider, textField } from "./controls.js";
import * as field from "./fields.js";
import { FUZZY } from "./measures.js";
import { matchingRatio, pairsCosine } from "./similarity.js";
import { softRetrieval } from "./soft.js";

const SIMILARITIES = { "longest common stretches": matchingRatio, "pairs of letters": pairsCosine };
const MEANINGS = {
  cat: "a small domesticated carnivorous mammal",
  dog: "a domesticated carnivorous mammal",
  bird: "an animal with feathers",
};
const MOST_ENTRIES = 12;
const MOST_LETTERS = 40; // of a word: a common substring is searched at every pair of positions

const fields = {
  looked: field.text("catt", 40),
  entries: field.text(FUZZY.keys.map((key) => `${key}: ${MEANINGS[key]}`).join("\n"), 2000),
  alike: field.oneOf(Object.keys(SIMILARITIES)),
  wordTemperature: field.number(0.3, 0, 2),
};

// Lines of "key: value".
function entriesOf(written) {
  const lines = written
    .split("\n")
    .filter((line) => line.trim())
    .slice(0, MOST_ENTRIES);
  return lines.map((line) => {
    const [key, ...rest] = line.split(":");
    return { key: key.trim().slice(0, MOST_LETTERS), value: rest.join(":").trim() };
  });
}

function open(state, remember) {
  const shown = softRetrieval("Keys: similarity and weight");

  function draw() {
    const entries = entriesOf(state.entries);
    const items = entries.map(({ key, value }) => ({ name: key, key, value }));
    if (!items.length) return;
    shown.draw(
      items,
      entries.map(({ key }) => SIMILARITIES[state.alike](state.looked.slice(0, MOST_LETTERS), key)),
      state.wordTemperature,
    );
  }

  const set = (name) => (value) => {
    state[name] = value;
    remember();
    draw();
  };
  const word = textField("word", state.looked, 1, set("looked"));
  const examples = choice("Words of the lecture", FUZZY.queries, state.looked, (query) => {
    word.querySelector("input").value = query;
    set("looked")(query);
  });
  const controls = html(
    "div",
    {},
    group("Query", word, examples),
    group("Dictionary", textField("key: value, one per line", state.entries, 6, set("entries"))),
    group("Similarity", choice("Similarity", Object.keys(SIMILARITIES), state.alike, set("alike"))),
    slider("temperature", state.wordTemperature, fields.wordTemperature, set("wordTemperature")).element,
  );
  draw();
  return html("div", { class: "work" }, controls, shown.element);
}

export const dictionary = { fields, open };
