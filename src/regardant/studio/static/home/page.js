import { html, shell } from "../shell.js";

const main = shell();
main.append(html("h1", {}, "Studio"));
