"""Files that the pages of a site load over the network: none are allowed."""

import re
from html.parser import HTMLParser
from pathlib import Path

LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
}
"""Elements that load a file, with the attribute that names it."""
STYLE = re.compile(r"""(?:@import\s*(?:url\()?|url\()\s*["']?((?:https?:)?//[^"')\s]+)""")


def remote(site: Path) -> list[str]:
    """Return a line for each address that a page or a style sheet of the site loads."""
    found = []
    for page in sorted(site.rglob("*.html")):
        parser = _Loads()
        parser.feed(page.read_text(encoding="utf-8"))
        found += [f"{page.relative_to(site)}: {address}" for address in parser.addresses]
    for sheet in sorted(site.rglob("*.css")):
        found += [f"{sheet.relative_to(site)}: {address}" for address in STYLE.findall(sheet.read_text("utf-8"))]
    return found


class _Loads(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_data(self, data: str) -> None:
        if self.lasttag == "style":
            self.addresses += STYLE.findall(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "link" and given.get("rel") in ("canonical", "prev", "next"):
            return  # named, not loaded
        address = given.get(LOADED.get(tag, ""), "")
        if re.match(r"(https?:)?//", address):
            self.addresses.append(address)
        self.addresses += STYLE.findall(given.get("style", ""))
