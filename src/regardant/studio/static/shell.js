// Parts of every page: links to the others, theme, one line for an error, requests to the server.

import { html, svg } from "./pictures/drawing.js";
import { saveDrawing } from "./pictures/save.js";

export { html, svg };

const PAGES = { "/runs": "Runs", "/look": "Look inside", "/steps": "Step through", "/lab": "Lab" };
const THEMES = ["auto", "light", "dark"];
const THEME = "regardant-theme";

const alarm = html("p", { class: "alarm", role: "alert", hidden: "" });

// Builds the head of the page; returns its <main>.
export function shell() {
  const links = Object.entries(PAGES).map(([address, name]) => {
    const here = location.pathname === address ? { "aria-current": "page" } : {};
    return html("a", { href: address, ...here }, name);
  });
  const brand = html("a", { href: "/", class: "brand" }, "Regardant");
  const bar = html("header", { class: "shell" }, brand, html("nav", { "aria-label": "Pages" }, ...links), themeButton());
  const main = html("main");
  document.body.replaceChildren(bar, alarm, main);
  return main;
}

// Shows an error in one line; without a line, hides it.
export function complain(line = "") {
  alarm.textContent = line;
  alarm.hidden = !line;
}

export const NO_ANSWER = "the studio does not answer: is `regardant studio` still running?";

// JSON from the server: GET with a query, or POST with a body or a file. Throws an Error with the server's message.
export async function ask(address, { query, body, file, signal } = {}) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== null && value !== undefined);
  const path = given.length ? `${address}?${new URLSearchParams(given)}` : address;
  const posted = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const sent = file ? { method: "POST", body: file } : body === undefined ? {} : posted;
  let answer;
  try {
    answer = await fetch(path, { signal, ...sent });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error(NO_ANSWER, { cause: error });
  }
  const answered = await answer.json().catch(() => ({ detail: `the studio answered ${answer.status}` }));
  if (!answer.ok) throw new Error(answered.detail);
  return answered;
}

// A command for the terminal, with a button that copies it.
export function command(line) {
  const button = html("button", { type: "button", class: "copy", "aria-label": `Copy: ${line}` }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(line);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select the line to copy it";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return html("div", { class: "command" }, html("code", {}, line), button);
}

// The content of a page with nothing to show: a line, and the command that changes this.
export function empty(line, ...parts) {
  return html("section", { class: "empty" }, html("p", {}, line), ...parts);
}

// "Save this picture": `picture` returns the current SVG element, `name` the file name without its extension.
export function saveButton(picture, name) {
  const button = html("button", { type: "button", class: "save" }, "Save this picture");
  button.addEventListener("click", () => picture() && saveDrawing(picture(), name()));
  return button;
}

// Auto follows the system. Maps are painted in the colours of the theme, so the page is reloaded.
function themeButton() {
  const chosen = localStorage.getItem(THEME) ?? "auto";
  if (chosen !== "auto") document.documentElement.dataset.theme = chosen;
  const button = html("button", { type: "button", class: "save", title: "Light or dark" }, `Theme: ${chosen}`);
  button.addEventListener("click", () => {
    localStorage.setItem(THEME, THEMES[(THEMES.indexOf(chosen) + 1) % THEMES.length]);
    location.reload();
  });
  return button;
}
