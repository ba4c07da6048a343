// The item that a run reads: a text, or a file. A file is one of the run's examples, one chosen in the browser, or a path.

import { ask, complain, html } from "./shell.js";

const [LONGEST, TEXTS] = [34, 4]; // characters of an example text, and number of texts offered
const SENTENCE = "The old judge sees the small cat."; // for runs that have no examples

// `show` is called when another item is entered or chosen, before that `chosen` if it is another example or file.
// `follow` adapts the field to a run.
export function itemField(rows, show, chosen) {
  const text = html("textarea", { rows, dir: "auto" });
  const name = html("span");
  const file = html("input", { type: "file", "aria-label": "Choose a file" });
  const examples = html("div", { class: "examples", role: "group", "aria-label": "Examples" });
  const element = html("div", { class: "field item" }, html("label", { class: "field" }, name, text), file);
  let run = null;
  let following = Promise.resolve(); // the last call of follow
  let wanted = null; // its run

  function choose(item) {
    if (item !== text.value) chosen();
    text.value = item;
    show();
  }

  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    try {
      await following; // a file may be chosen before the examples have arrived
      const query = { run: run.run, name: file.files[0].name };
      choose((await ask("/api/item", { query, file: file.files[0] })).item);
    } catch (error) {
      complain(error.message);
    }
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      show();
    }
  });

  const isFile = (item, { suffixes }) => suffixes.some((suffix) => item.toLowerCase().endsWith(suffix));

  // Offers the examples of a run. The first one replaces an item that the run cannot read.
  const follow = (next) => (following = offer(next));

  async function offer(next) {
    wanted = next;
    const offered = await ask("/api/examples", { query: { run: next.run } });
    if (wanted !== next) return; // another run was chosen during the request
    const before = run;
    run = next;
    const ofFiles = run.suffixes.length > 0;
    name.textContent = ofFiles ? `File (${run.suffixes.join(", ")})` : "Text";
    file.hidden = !ofFiles;
    file.accept = run.suffixes.join(",");
    examples.hidden = !offered.length;
    examples.replaceChildren(html("span", { class: "quiet" }, "Try:"), ...(ofFiles ? offered : offered.slice(0, TEXTS)).map(exampleOf));
    const fits = ofFiles ? isFile(text.value, run) : text.value.trim() && !(before && isFile(text.value, before));
    if (!fits) text.value = offered[0]?.item ?? (ofFiles ? "" : SENTENCE);
  }

  function exampleOf({ item, picture }, i) {
    const image = picture && html("img", { src: picture, alt: `Example ${i + 1}` });
    const letters = [...item];
    const short = letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : item;
    const button = html("button", { type: "button", class: picture ? "of-picture" : "try", title: picture ? `Example ${i + 1}` : item, dir: "auto" }, image ?? short);
    button.addEventListener("click", () => choose(item));
    return button;
  }

  // The message when there is no item.
  const missing = () => (run?.suffixes.length ? "Choose a file, or one of the examples." : "Type a text, or choose one of the examples.");

  return { element, examples, text, follow, missing };
}
