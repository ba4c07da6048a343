// The page: every sentence pair a section, one shown at a time, drawn when first shown.

import { html } from "./drawing.js";
import { attentionView, choice } from "./view.js";
import { readPicture } from "./weights.js";

const records = JSON.parse(document.getElementById("pictures").textContent);
const main = document.querySelector("main");
const views = [];

function show(index) {
  views.forEach((view) => (view.hidden = true));
  if (!views[index]) {
    views[index] = attentionView(readPicture(records[index]));
    main.append(views[index]);
  }
  views[index].hidden = false;
}

if (records.length > 1) {
  const names = records.map((record, i) => `${i + 1}. ${record.title}`);
  main.append(html("nav", { "aria-label": "Sentences" }, choice("Sentence", names, (_, index) => show(index))));
}
show(0);
