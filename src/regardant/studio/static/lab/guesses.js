// A question before each bench, because readers learn more after a guess. `right` is the index of the true answer.

import { html } from "../shell.js";

const GUESSES = {
  worked: {
    ask: "A query that is mostly “animal” looks at “the cat sat on the mat”. How much of the weight does “cat” get?",
    options: ["Nearly all of it", "About half", "Less than a quarter"],
    right: 2,
    because: "“cat” has the best score, but six scores this close together give a flat softmax. Lower the temperature and watch it sharpen.",
  },
  retrieval: {
    ask: "One key fits the query better than all the others. What does attention return?",
    options: ["The value of the best key", "A mixture of all values", "Nothing, unless a key fits exactly"],
    right: 1,
    because: "The best key counts most, and every other one a little. That makes the lookup smooth, so that it can be learned.",
  },
  shuffle: {
    ask: "Keys and values are shuffled together, in the same order. What happens to the output?",
    options: ["Nothing", "It is shuffled too", "It changes altogether"],
    right: 0,
    because: "Each value keeps its own weight, and a sum does not depend on the order of its parts. Attention knows no order unless positions tell it.",
  },
  saturation: {
    ask: "Keys have 512 random numbers, and scores are not divided by anything. How much weight does the best of 32 keys get?",
    options: ["About a tenth", "About half", "Nearly all"],
    right: 2,
    because: "Sums of 512 products vary by ±23, so the best score is far above the others. Divided by √512 they vary by ±1.",
  },
  positions: {
    ask: "Two sinusoidal codes are five positions apart. Does their similarity depend on where in the text they stand?",
    options: ["Yes, it fades towards the end", "No, on their distance alone", "It depends on the words"],
    right: 1,
    because: "A shift rotates each pair of sine and cosine by an angle that does not depend on where the shift begins.",
  },
  rates: {
    ask: "When is the learning rate of the Transformer's schedule highest?",
    options: ["At the first update", "At the end of the warm-up", "At the last update"],
    right: 1,
    because: "It rises while gradients are large and Adam's averages are empty, and falls with the inverse square root of the updates afterwards.",
  },
  costs: {
    ask: "A text becomes twice as long. What do the scores of full attention cost?",
    options: ["Twice as much", "Four times as much", "The same"],
    right: 1,
    because: "Every token meets every other: length times length.",
  },
  examples: {
    ask: "Four keys have the same score, whatever it is. What weights does softmax give them?",
    options: ["1 each", "A quarter each", "It depends on the score"],
    right: 1,
    because: "Softmax depends only on differences of scores, and its weights sum to 1.",
  },
};

// The question of a bench; `show` is called when it is answered or skipped.
export function guessOf(id, show) {
  const { ask, options, right, because } = GUESSES[id];
  const feedback = html("p", { class: "answer", "aria-live": "polite", hidden: "" });
  const buttons = options.map((option, i) => {
    const button = html("button", { type: "button", class: "option" }, option);
    button.addEventListener("click", () => {
      buttons.forEach((one, j) => {
        one.disabled = true;
        one.classList.toggle("is-right", j === right);
        one.classList.toggle("is-wrong", j === i && i !== right);
      });
      feedback.replaceChildren(html("b", {}, i === right ? "Right. " : `Not quite: ${options[right][0].toLowerCase()}${options[right].slice(1)}. `), because);
      feedback.hidden = false;
      skip.hidden = true;
      show();
    });
    return button;
  });
  const skip = html("button", { type: "button", class: "save" }, "Show without a guess");
  skip.addEventListener("click", () => {
    element.remove();
    show();
  });
  const element = html("section", { class: "guess", "aria-label": "Guess first" }, html("h3", {}, "Guess first"), html("p", {}, ask), html("div", { class: "bar" }, ...buttons), feedback, skip);
  return element;
}
