// Progress of a request to a model: a line, the elapsed seconds and a button that cancels.

import { html } from "./shell.js";

const AFTER = 250; // milliseconds before progress is shown
let runningOf = new WeakMap(); // function that cancels, by element

// Runs `work(signal)` for an element that shows its answer. A later call for the same element cancels the earlier one.
// Returns null if the work was cancelled.
export async function working(element, line, work) {
  runningOf.get(element)?.();
  const control = new AbortController();
  const began = performance.now();
  const seconds = html("span", { class: "number" });
  const cancel = html("button", { type: "button", class: "save" }, "Cancel");
  const bar = html("div", { class: "working", role: "status" }, html("span", { class: "spinner", "aria-hidden": "true" }), html("span", {}, line), seconds, cancel);
  const stop = () => {
    control.abort();
    clear();
  };
  cancel.addEventListener("click", stop);
  const timer = setInterval(() => {
    const passed = performance.now() - began;
    if (passed > AFTER && !bar.isConnected) element.before(bar);
    seconds.textContent = `${(passed / 1000).toFixed(1)} s`;
  }, 100);
  element.setAttribute("aria-busy", "true");

  function clear() {
    clearInterval(timer);
    bar.remove();
    if (runningOf.get(element) === stop) {
      runningOf.delete(element);
      element.removeAttribute("aria-busy");
    }
  }

  runningOf.set(element, stop);
  try {
    const answer = await work(control.signal);
    return control.signal.aborted ? null : answer;
  } catch (error) {
    if (error.name === "AbortError") return null;
    throw error;
  } finally {
    clear();
  }
}
