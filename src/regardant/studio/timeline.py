"""Papers whose models the recipes train, in the order of years."""

import re
from typing import Any

from fastapi import APIRouter

from regardant import config
from regardant.studio.catalogue import Catalogue

PAPER = re.compile(r"^paper +(?P<authors>.+) (?P<year>\d{4}), (?P<link>https://\S+)", re.MULTILINE)
COMMAND = re.compile(r"^command +(?P<command>.+?)(?: && .*)?$", re.MULTILINE)
"""Pattern of the first command in a recipe's header, which trains."""


def routes(catalogue: Catalogue) -> APIRouter:
    """Return `/api/timeline`."""
    router = APIRouter(prefix="/api")

    @router.get("/timeline")
    def timeline() -> list[dict[str, Any]]:
        return papers(list(catalogue.runs()))

    return router


def papers(runs: list[str]) -> list[dict[str, Any]]:
    """Return the papers with their contribution, the command, and the run in a folder of the recipe's name, if any."""
    found = []
    for name in config.recipes():
        header = config.header(name)
        paper, command = PAPER.search(header), COMMAND.search(header)
        if paper is not None and command is not None:
            what = config.purpose(name).partition(": ")[2].removesuffix(".")
            run = next((run for run in runs if f"/{run}".endswith(f"/{name}")), None)
            found.append({**paper.groupdict(), **command.groupdict(), "recipe": name, "what": what, "run": run})
    return sorted(found, key=lambda one: (one["year"], one["recipe"]))
