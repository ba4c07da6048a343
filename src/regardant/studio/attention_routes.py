"""One item, the answer of a run, all attention on the way, and the views that the run's task has beside it."""

from typing import Any

from fastapi import APIRouter

from regardant.data.words import words
from regardant.pictures.page import packed, record
from regardant.studio.items import ItemFiles
from regardant.studio.open_runs import Asked, OpenRuns
from regardant.tasks.base import Trained
from regardant.tasks.inspection import Inspection


class AskedView(Asked):
    """A view of an item."""

    view: str


def routes(runs: OpenRuns, files: ItemFiles) -> APIRouter:
    """`/api/look`, `/api/view` and `/api/vocabulary`."""
    router = APIRouter(prefix="/api")

    @router.post("/look")
    def look(asked: Asked) -> dict[str, Any]:
        with runs.trained(asked.run, asked.off) as trained:
            return look_at(trained, asked, files.shown_name(asked.text))

    @router.post("/view")
    def view(asked: AskedView) -> dict[str, Any]:
        return runs.view(asked.view, asked)

    @router.get("/vocabulary")
    def vocabulary(run: str) -> dict[str, list[str]]:
        with runs.trained(run) as trained:
            return {"words": sorted(trained.known_words())}

    return router


def look_at(trained: Trained, asked: Asked, title: str | None = None) -> dict[str, Any]:
    """Return the answer with its details, all weights under a title, and the names of the run's views."""
    found = trained.look(asked.text, **asked.options)
    return {
        **found.details,
        "item": found.item,
        "answer": found.answer,
        "note": found.note,
        "shares": found.shares,
        "pictures": _pictures(found, title or found.title or found.item),
        "views": list(trained.views),
        "unseen": unseen_words(trained, asked.text),
    }


def unseen_words(trained: Trained, text: str) -> list[str]:
    """Return the words of a text that training never had, each once. Empty where those of training are not known."""
    known = trained.known_words()
    named = dict.fromkeys(word.text for word in words(text) if word.text.isalnum())
    return [word for word in named if known and word.lower() not in known]


def _pictures(found: Inspection, title: str) -> dict[str, Any] | None:
    """Return the record of `view.js` and the places of each kind's layers. None for a model without attention."""
    if not found.pictures:
        return None
    drawn = record(found.pictures)
    return {
        **drawn,
        "title": title,
        "note": str(drawn["note"]).removeprefix(found.note).strip(),  # the page shows the answer above
        "weights": [[packed(layer) for layer in picture.weights] for picture in found.pictures],
        "places": list(found.layers.values()),
    }
