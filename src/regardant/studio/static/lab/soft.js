// Retrieval in three ways: plain similarities, the best answer, and attention's mixture. Shared by all analogies.

import { barChart } from "./charts.js";
import { dataTable, html, numberTable, plate } from "./controls.js";
import { bestOf, entropy, softmax, sum } from "./mathematics.js";

// items: [{name, key, value}]. Returns the element and `draw(items, similarities, temperature)`.
export function softRetrieval(label) {
  const numbers = html("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Table, scrolls" });
  const picture = plate();
  const answer = html("p", { class: "answer", "aria-live": "polite" });

  function draw(items, similarities, temperature) {
    const weights = softmax(similarities, temperature);
    const total = sum(similarities);
    const best = bestOf(weights);
    const rows = items.map(({ name, key, value }, i) => [
      name,
      key,
      value,
      similarities[i].toFixed(4),
      total ? (similarities[i] / total).toFixed(4) : "",
      i === best ? "✓" : "",
      weights[i].toFixed(4),
    ]);
    const head = [
      "",
      "key: what is matched",
      "value: what is returned",
      "similarity",
      "divided by their sum",
      "hard",
      "attention",
    ];
    const caption = `Similarities sum to ${total.toFixed(2)}${Math.abs(total - 1) < 1e-9 ? "" : ": they are not weights"}; attention's weights sum to 1.`;
    numbers.replaceChildren(dataTable(caption, head, rows, "wrapped"));
    const bars = items.map(({ name }, i) => [name, similarities[i], weights[i]]);
    picture.show(label, barChart({ label, rows: bars, series: ["similarity", "weight"], most: 1 }), () =>
      numberTable(label, ["", "similarity", "weight"], bars),
    );
    answer.textContent = describe(items, weights, best);
    return weights;
  }
  return { element: html("div", { class: "lab" }, answer, numbers, picture.element), draw };
}

function describe(items, weights, best) {
  const spread = Math.exp(entropy(weights));
  return `A hard lookup returns ${items[best].name} alone. Attention returns ${(100 * weights[best]).toFixed(1)}% of it and some of all others, as widely spread as equal weights on ${spread.toFixed(2)} of ${items.length}.`;
}
