// Decoding token by token: with a given translation its tokens are read, whatever the model predicts (teacher forcing);
// without one the likeliest token is written and read next (autoregression). Played, or moved with the slider.

import { choice } from "../pictures/view.js";
import { button } from "../choosing.js";
import { working } from "../working.js";
import { ask, complain, html, saveButton, svg } from "../shell.js";
import { readable } from "./tokens.js";

const WAYS = ["By itself", "With the given translation"];
const EVERY = 900; // milliseconds per token
const [ROW, NAMES] = [26, 130];
const BARS = Math.min(420, document.documentElement.clientWidth - NAMES - 110); // pixels

export function writing(page, panel) {
  const { state, keep, question } = page;
  let answer = null;
  let playing = null;
  const slider = html("input", { type: "range", min: 0, "aria-label": "Token" });
  const stage = html("div");
  const play = button("Play", () => (playing ? stop() : start()));

  function stop() {
    clearInterval(playing);
    playing = null;
    play.textContent = "Play";
  }

  function start() {
    if (Number(slider.value) >= answer.steps.length - 1) slider.value = 0;
    show();
    play.textContent = "Pause";
    playing = setInterval(() => {
      if (!panel.isConnected || !panel.contains(slider)) return stop();
      slider.value = Number(slider.value) + 1;
      show();
      if (Number(slider.value) >= answer.steps.length - 1) stop();
    }, EVERY);
  }

  function show() {
    keep({ at: slider.value });
    const at = Number(slider.value);
    const step = answer.steps[at];
    const read = [answer.start, ...answer.steps.slice(0, at).map(({ token }) => token)];
    const words = read.flatMap((token, i) => [html("span", { class: i === at ? "token-now" : "" }, token), " "]);
    const drawing = barsOf(step, answer.forced);
    const how = answer.forced
      ? `The next token of the translation is “${step.token}”: probability ${percent(step.probability)}, the ${ordinal(step.rank)} likeliest. The model reads this token next, whatever it predicts.`
      : `“${step.token}” is the likeliest allowed token, ${percent(step.probability)}: the model writes it and reads it next.`;
    const perplexity = Math.exp(
      -answer.steps.slice(0, at + 1).reduce((sum, one) => sum + Math.log(one.probability), 0) / (at + 1),
    );
    const figure = html("div", { class: "figure", tabindex: 0, role: "group", "aria-label": "Picture, scrolls if wide" }, drawing);
    stage.replaceChildren(
      html("p", { class: "sentence", dir: "auto" }, ...answer.read.flatMap((token) => [html("span", {}, token), " "])),
      html("p", { class: "sentence", dir: "auto" }, ...words, html("mark", { class: "next" }, step.token)),
      html("p", { class: "quiet", "aria-live": "polite" }, `${how} Perplexity so far ${perplexity.toFixed(2)}.`),
      figure,
      saveButton(
        () => drawing,
        () => `next token ${at}`,
      ),
    );
  }

  async function load(way) {
    stop();
    complain();
    keep({ way });
    if (!stage.isConnected) panel.replaceChildren(stage);
    try {
      const asked = question();
      if (way === WAYS[1] && !asked.target) throw new Error("Type a translation in the field above first: the model then reads it token by token.");
      const body = { ...asked, view: "token by token", target: way === WAYS[0] ? null : asked.target };
      const found = await working(stage, `${state.run} writes`, (signal) => ask("/api/view", { body, signal }));
      if (found === null || !panel.contains(stage)) return; // another tab is open now
      answer = inWords(found);
      slider.max = answer.steps.length - 1;
      slider.value = Math.min(Number(state.at) || 0, answer.steps.length - 1);
      const ways = choice("How", WAYS, way, (name) => load(name));
      panel.replaceChildren(html("div", { class: "bar" }, ways, play, slider), stage);
      show();
    } catch (error) {
      if (!panel.contains(stage)) return;
      complain(error.message);
      panel.replaceChildren(
        html(
          "div",
          { class: "bar" },
          choice("How", WAYS, way, (name) => load(name)),
        ),
      );
    }
  }

  slider.addEventListener("input", show);
  return load(WAYS.includes(state.way) ? state.way : WAYS[0]);
}

// The steps with display names of tokens.
function inWords(answer) {
  const texts = readable(answer.steps.map(({ token }) => token));
  const plain = (token) => token.replace(/^▁(?=.)/, "");
  const steps = answer.steps.map((step, i) => ({ ...step, token: texts[i], raw: step.token, likeliest: step.likeliest.map(([token, share]) => [plain(token), share, token]) }));
  return { ...answer, steps, read: readable(answer.read) };
}

function barsOf(step, forced) {
  const rows = [...step.likeliest];
  const among = rows.some(([, , token]) => token === step.raw);
  if (!among) rows.push([step.token, step.probability, step.raw]);
  const height = rows.length * ROW + 6;
  const bars = rows.map(([token, share, raw], i) => {
    const y = i * ROW + 3;
    const own = raw === step.raw;
    const letters = [...token];
    const name = letters.length > 18 ? `${letters.slice(0, 17).join("")}…` : token;
    return svg(
      "g",
      {},
      svg("text", { x: NAMES - 10, y: y + ROW / 2, "text-anchor": "end", class: `row-word${own ? " chosen" : ""}` }, name),
      svg("rect", {
        x: NAMES,
        y: y + 4,
        width: Math.max(1, share * BARS),
        height: ROW - 8,
        class: own ? (forced ? "bar-given" : "bar-own") : "bar-other",
      }),
      svg("text", { x: NAMES + Math.max(1, share * BARS) + 8, y: y + ROW / 2, class: "row-word" }, percent(share)),
    );
  });
  return svg(
    "svg",
    {
      viewBox: `0 0 ${NAMES + BARS + 80} ${height}`,
      width: NAMES + BARS + 80,
      height,
      role: "img",
      "aria-label": "Likeliest next tokens",
    },
    ...bars,
  );
}

function percent(share) {
  return share >= 0.0995 ? `${Math.round(100 * share)}%` : `${(100 * share).toPrecision(2)}%`;
}

function ordinal(number) {
  const ending = number % 100 > 10 && number % 100 < 14 ? "th" : ({ 1: "st", 2: "nd", 3: "rd" }[number % 10] ?? "th");
  return `${number}${ending}`;
}
