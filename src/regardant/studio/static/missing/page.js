// The page for an unknown address.

import { empty, html, shell } from "../shell.js";

const main = shell();
const home = html("a", { href: "/", class: "go" }, "Go to the first page");
main.append(html("h1", {}, "No such page"), empty(`The studio has no page at ${location.pathname}.`, home));
