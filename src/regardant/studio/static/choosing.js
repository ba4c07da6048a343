// Controls of the pages: labelled fields, tabs, and the list of runs to inspect.

import { ask, html } from "./shell.js";

export const BETWEEN = "\n"; // separates the names of runs in the URL: a name may hold a comma

export function field(label, input) {
  return html("label", { class: "field" }, html("span", {}, label), input);
}

// `labelOf` returns the displayed label of a name.
export function select(names, chosen, choose, labelOf = (name) => name) {
  const options = names.map((name) => html("option", { value: name, ...(name === chosen ? { selected: "" } : {}) }, labelOf(name)));
  const element = html("select", {}, ...options);
  element.addEventListener("change", () => choose(element.value));
  return element;
}

export function button(name, act, attributes = {}) {
  const element = html("button", { type: "button", class: "save", ...attributes }, name);
  element.addEventListener("click", act);
  return element;
}

// The runs that have weights, by name.
export async function trainedRuns() {
  const runs = (await ask("/api/runs")).filter((run) => run.trained);
  return Object.fromEntries(runs.map((run) => [run.run, run]));
}

let tabs = 0;

// Tabs with one panel; `show` is called with the name of the chosen tab and the panel. Arrow keys change the tab.
export function tabbed(names, chosen, show) {
  const group = `tabs-${tabs++}`;
  const panel = html("div", { role: "tabpanel", id: group });
  const buttons = names.map((name) => html("button", { type: "button", role: "tab", "aria-controls": group }, name));
  let now = names.includes(chosen) ? chosen : names[0];
  const choose = (name) => {
    now = name;
    buttons.forEach((one, i) => {
      one.setAttribute("aria-selected", names[i] === name);
      one.tabIndex = names[i] === name ? 0 : -1;
    });
    panel.setAttribute("aria-label", name);
    panel.replaceChildren();
    show(name, panel);
  };
  buttons.forEach((one, i) => {
    one.addEventListener("click", () => choose(names[i]));
    one.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const offered = buttons.filter((other) => !other.hidden);
      const next = step && offered[offered.indexOf(one) + step];
      if (next) {
        next.focus();
        next.click();
      }
    });
  });
  const element = html("div", {}, html("div", { class: "tabs", role: "tablist" }, ...buttons), panel);
  // Shows a tab again: the wanted one, or the first. Only the offered names have a tab.
  const again = (offered = names, wanted = now) => {
    buttons.forEach((one, i) => {
      one.hidden = !offered.includes(names[i]);
    });
    choose(offered.includes(wanted) ? wanted : offered[0]);
  };
  const open = (name) => {
    choose(name);
    buttons[names.indexOf(name)].scrollIntoView({ block: "nearest" });
  };
  const clear = () => panel.replaceChildren();
  return { element, again, choose: open, clear };
}
