"""The list of runs, and the events of their training as they are written. The page polls both."""

import os
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query

from regardant.config.run_files import METRICS
from regardant.studio.catalogue import Catalogue, summary
from regardant.training.events import parse_events


def routes(catalogue: Catalogue) -> APIRouter:
    """Return `/api/runs` and `/api/events`."""
    router = APIRouter(prefix="/api")

    @router.get("/runs")
    def runs() -> list[dict[str, Any]]:
        return [summary(name, folder) for name, folder in catalogue.runs().items()]

    @router.get("/events")
    def events(run: str, after: Annotated[int, Query(ge=0, lt=2**63)] = 0, file: str = "") -> dict[str, Any]:
        return events_after(catalogue.folder(run) / METRICS, after, file)

    return router


def events_after(path: Path, after: int, file: str) -> dict[str, Any]:
    """Return the events after byte `after` of the file with the identity `file`, and the position after them.

    Training that resumes replaces the file: then all events are returned, with `anew` true.
    """
    try:
        with path.open("rb") as opened:
            now = str(os.fstat(opened.fileno()).st_ino)  # the path may name another file by now
            anew = now != file
            opened.seek(0 if anew else after)
            text = opened.read()
    except FileNotFoundError:
        return {"events": [], "after": 0, "file": "", "anew": True}
    whole = text[: text.rfind(b"\n") + 1]  # the last line may still be being written
    return {
        "events": parse_events(whole.split(b"\n")),
        "after": (0 if anew else after) + len(whole),
        "file": now,
        "anew": anew,
    }
