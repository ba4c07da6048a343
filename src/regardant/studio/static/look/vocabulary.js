// The words of a run's training text, to choose from.

import { ask, complain, html } from "../shell.js";

const SHOWN = 400;

// `add` is called with the clicked word.
export function vocabulary(add) {
  const filter = html("input", { type: "text", placeholder: "begins with …", "aria-label": "Words that begin with" });
  const list = html("p", { class: "words", tabindex: 0, role: "group", "aria-label": "Words, scrolls" });
  const summary = html("summary", {}, "Known words");
  const element = html("details", { class: "vocabulary", hidden: "" }, summary, filter, list);
  let words = [];

  function show() {
    const begun = filter.value.trim().toLowerCase();
    const found = words.filter((word) => word.toLowerCase().startsWith(begun));
    const buttons = found.slice(0, SHOWN).map((word) => {
      const button = html("button", { type: "button", class: "word" }, word);
      button.addEventListener("click", () => add(word));
      return button;
    });
    const rest = found.length > SHOWN ? [html("span", { class: "quiet" }, `and ${(found.length - SHOWN).toLocaleString("en")} more`)] : [];
    list.replaceChildren(...buttons.flatMap((one) => [one, " "]), ...rest);
  }

  async function follow(run) {
    element.hidden = true;
    element.open = false;
    words = [];
    try {
      words = (await ask("/api/vocabulary", { query: { run } })).words;
    } catch (error) {
      complain(error.message);
    }
    element.hidden = !words.length;
    summary.textContent = `Known words (${words.length.toLocaleString("en")})`;
  }

  filter.addEventListener("input", show);
  element.addEventListener("toggle", () => element.open && show());
  return { element, follow };
}
