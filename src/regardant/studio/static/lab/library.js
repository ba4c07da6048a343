// Books by their catalogue cards, with the lecture's similarities or those of the reader's own query.

import { choice, group, html, slider, textField } from "./controls.js";
import * as field from "./fields.js";
import { LIBRARY } from "./measures.js";
import { softRetrieval } from "./soft.js";

const BOOKS = [
  { name: "Book 1", title: "Deep Learning", year: 2016, author: "Goodfellow" },
  { name: "Book 2", title: "Neural Networks", year: 2020, author: "Smith" },
  { name: "Book 3", title: "Transformers", year: 2017, author: "Vaswani" },
];
const ITEMS = BOOKS.map(({ name, title, year, author }) => ({
  name,
  key: `${title}, ${year}, ${author}`,
  value: `the book “${title}” itself`,
}));
const SOURCES = ["the lecture's similarities", "my query"];

const fields = {
  books: field.numbers([LIBRARY], 0, 1),
  booksBy: field.oneOf(SOURCES),
  topic: field.text("neural networks", 200),
  after: field.number(2017, 1990, 2030, { step: 1 }),
  bookTemperature: field.number(1, 0, 3),
};

// Half for the topic words in the title, half for the year: an older book loses a fifth per year.
function similarity({ title, year }, topic, after) {
  const asked = topic.toLowerCase().match(/\p{L}+/gu) ?? [];
  const words = title.toLowerCase().split(" ");
  const found = asked.filter((word) => words.includes(word)).length;
  const late = year > after ? 1 : Math.max(0, 1 - (after + 1 - year) / 5);
  return 0.5 * (asked.length ? found / asked.length : 0) + 0.5 * late;
}

function open(state, remember) {
  const shown = softRetrieval("Books: similarity and weight");
  const ofLecture = BOOKS.map(({ name }, i) =>
    slider(name, state.books[0][i], fields.books, (number) => set({ books: [state.books[0].with(i, number)] })),
  );
  const lecture = group("Similarity of each card", ...ofLecture.map(({ element }) => element));
  const own = group(
    "My query",
    textField("books about", state.topic, 1, (topic) => set({ topic })),
    slider("written after", state.after, fields.after, (after) => set({ after })).element,
  );

  function draw() {
    const isOwn = state.booksBy === SOURCES[1];
    [lecture.hidden, own.hidden] = [isOwn, !isOwn];
    const found = isOwn ? BOOKS.map((book) => similarity(book, state.topic, state.after)) : state.books[0];
    shown.draw(ITEMS, found, state.bookTemperature);
  }

  function set(change) {
    Object.assign(state, change);
    remember();
    draw();
  }

  const source = choice("Similarities", SOURCES, state.booksBy, (booksBy) => set({ booksBy }));
  const temperature = slider("temperature", state.bookTemperature, fields.bookTemperature, (bookTemperature) =>
    set({ bookTemperature }),
  );
  draw();
  return html("div", { class: "work" }, html("div", {}, source, lecture, own, temperature.element), shown.element);
}

export const library = { fields, open };
