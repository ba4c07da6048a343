// Curves by plotly, in the page's colours. A run keeps its colour and its dashes in every chart.

import { resolved } from "../pictures/drawing.js";

// Okabe and Ito's colours, which colour-blind readers can tell apart: for light pages, and brighter for dark ones.
const COLOURS = [
  "light-dark(#0072b2, #56b4e9)",
  "light-dark(#d55e00, #e69f00)",
  "light-dark(#009e73, #33d6a6)",
  "light-dark(#cc79a7, #f0a8d0)",
  "light-dark(#b07d00, #f0e442)",
  "light-dark(#3a8fc0, #a9c8ff)",
];
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "x", "star"]; // of runs: distinct without colour
const MARKS = 12; // largest number of markers on a curve
const NOT_DRAWN = new Set(["event", "update", "time", "took", "epoch", "progress", "loss", "perplexity"]);
const CONFIG = { displayModeBar: false, responsive: true };

// The library is 4 MB: the page is painted before it has loaded.
export const library = new Promise((resolve, reject) => {
  const script = document.createElement("script");
  script.src = "/static/plotly.min.js";
  script.addEventListener("load", resolve);
  script.addEventListener("error", () => reject(new Error("The library that draws curves did not load: load the page again.")));
  document.head.append(script);
});

export const AXES = { Updates: (event) => event.update, Minutes: (event) => event.time / 60 };

// The charts of these runs: a chart is a title and, for each run, named curves. `units` are those of the runs' tasks.
export function chartsOf(followed, units) {
  const validated = new Set(followed.flatMap((one) => one.named("validation").flatMap(Object.keys)));
  const quality = [...validated].filter((name) => !NOT_DRAWN.has(name) && !name.startsWith("best_"));
  const charts = [
    {
      title: "Loss",
      unit: units.loss,
      curves: [
        ["train", "loss", "training"],
        ["validation", "loss", "validation"],
      ],
    },
    ...quality.map((name) => ({ title: titleOf(name), unit: "", curves: [["validation", name, ""]] })),
    { title: "Learning rate", unit: "", curves: [["train", "learning_rate", ""]] },
    { title: "Gradient norm", unit: "", curves: [["train", "gradient_norm", ""]] },
    { title: `${units.target.replace(/^./, (letter) => letter.toUpperCase())}s per second`, unit: "", curves: [["train", "tokens_per_second", ""]] },
  ];
  return charts;
}

function titleOf(name) {
  return name === "bleu"
    ? "BLEU of greedy translations"
    : name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());
}

export function drawChart(element, chart, followed, axis) {
  const names = shortened(followed.map(({ run }) => run));
  const traces = followed.flatMap((one, number) =>
    chart.curves.map(([event, name, called], curve) => {
      const events = one.named(event);
      const colour = resolved(COLOURS[number % COLOURS.length]);
      const dash = chart.curves.length > 1 ? (curve ? "solid" : "dot") : DASHES[number % DASHES.length];
      const few = event === "validation" && events.length < 60;
      return {
        x: events.map(AXES[axis]),
        y: events.map((entry) => entry[name] ?? null),
        name: [followed.length > 1 ? names[number] : "", called].filter(Boolean).join(", ") || one.run,
        mode: few || followed.length > 1 ? "lines+markers" : "lines",
        marker: { size: 7, symbol: SYMBOLS[number % SYMBOLS.length], maxdisplayed: MARKS },
        line: { color: colour, dash, width: curve || chart.curves.length === 1 ? 2 : 1.4 },
      };
    }),
  );
  const known = traces.filter(({ y }) => y.some((value) => value !== null));
  return Plotly.react(element, known, layoutOf(chart.title, chart.unit, axis, followed.length > 1 || known.length > 1), CONFIG);
}

// Names without the folders that all of them share.
function shortened(names) {
  const parts = names.map((name) => name.split("/"));
  let common = 0;
  while (parts.every((one) => one.length > common + 1 && one[common] === parts[0][common])) common++;
  return parts.map((one) => one.slice(common).join("/"));
}

// Entropy of every head over time, one row per head; darker is higher.
export function drawEntropy(element, events, kind, axis) {
  const layers = events.at(-1).entropy[kind];
  const heads = layers.flatMap((layer, l) => layer.map((_, h) => [l, h]));
  const colours = [
    [0, resolved("var(--paper)")],
    [1, resolved("var(--ink)")],
  ];
  const trace = {
    type: "heatmap",
    x: events.map(AXES[axis]),
    y: heads.map(([layer, head]) => `layer ${layer + 1}, head ${head + 1}`),
    z: heads.map(([layer, head]) => events.map((event) => event.entropy[kind]?.[layer]?.[head] ?? null)),
    colorscale: colours,
    zmin: 0,
    hovertemplate: "%{y}: %{z:.2f} nats<extra></extra>",
    colorbar: { title: { text: "nats" }, thickness: 12, outlinewidth: 0 },
  };
  const layout = layoutOf(`Entropy of heads: ${kind}`, "", axis, false);
  layout.yaxis = { ...layout.yaxis, autorange: "reversed", automargin: true };
  layout.height = Math.max(260, 110 + 17 * heads.length);
  return Plotly.react(element, [trace], layout, CONFIG);
}

// Takes a chart from the page. Plotly keeps what it has drawn, and a listener for the size of the window, until then.
export function removeChart(element) {
  Plotly.purge(element);
  element.parentElement.remove();
}

function layoutOf(title, unit, axis, showlegend) {
  const line = { gridcolor: resolved("var(--rule)"), zerolinecolor: resolved("var(--rule)"), automargin: true };
  return {
    title: { text: title, font: { size: 15 }, x: 0, xref: "paper", xanchor: "left" },
    height: showlegend ? 330 : 300,
    margin: { l: 50, r: 20, t: 44, b: showlegend ? 84 : 44 },
    paper_bgcolor: resolved("var(--paper)"),
    plot_bgcolor: resolved("var(--paper)"),
    font: { color: resolved("var(--text)"), family: "system-ui, sans-serif", size: 12 },
    xaxis: { ...line, title: { text: axis.toLowerCase() } },
    yaxis: { ...line, title: { text: unit } },
    showlegend,
    legend: { orientation: "h", x: 0, y: -0.27, yanchor: "top" },
    hovermode: "closest",
    uirevision: `${title} ${axis}`, // new points do not reset a zoom
  };
}

export async function saveChart(element, name) {
  const { clientWidth: width, clientHeight: height } = element;
  const link = document.createElement("a");
  link.href = await Plotly.toImage(element, { format: "svg", width, height });
  link.download = `${name.toLowerCase().replaceAll(/[^\p{L}\p{N}]+/gu, "-")}.svg`;
  link.click();
}
