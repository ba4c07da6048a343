"""Routes that run a model on one item and return its answer, all attention, and the views of the run's task."""

from typing import Any

from fastapi import APIRouter, Request

from regardant.data.words import words
from regardant.errors import RunError
from regardant.pictures.page import packed, record
from regardant.studio.items import ItemFiles
from regardant.studio.open_runs import Asked, OpenRuns
from regardant.tasks.base import Trained
from regardant.tasks.inspection import Inspection


class AskedView(Asked):
    """Request for a view of an item."""

    view: str


def routes(runs: OpenRuns, files: ItemFiles) -> APIRouter:
    """Return `/api/look`, `/api/view` and `/api/vocabulary`."""
    router = APIRouter(prefix="/api")

    @router.post("/look")
    async def look(asked: Asked, request: Request) -> dict[str, Any]:
        name = files.shown_name(asked.text)
        return await runs.answer(request, asked.run, lambda trained: look_at(trained, asked, name), asked.off)

    @router.post("/view")
    async def view(asked: AskedView, request: Request) -> dict[str, Any]:
        return await runs.answer(request, asked.run, lambda trained: view_of(trained, asked), asked.off)

    @router.get("/vocabulary")
    async def vocabulary(run: str, request: Request) -> dict[str, list[str]]:
        return {"words": await runs.answer(request, run, lambda trained: sorted(trained.known_words()))}

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


def view_of(trained: Trained, asked: AskedView) -> dict[str, Any]:
    """Return a view of an item by its name. Raises RunError where the run's task has no such view."""
    if asked.view not in trained.views:
        allowed = f": choose {', '.join(trained.views)}" if trained.views else ", and no other views"
        raise RunError(f"{asked.run} has no view {asked.view}{allowed}")
    return trained.views[asked.view](asked.text, **asked.options)


def unseen_words(trained: Trained, text: str) -> list[str]:
    """Return the words of a text that are not in the training data, each once. Empty if those are not known."""
    known = trained.known_words()
    named = dict.fromkeys(word.text for word in words(text) if word.text.isalnum())
    return [word for word in named if known and word.lower() not in known]


def _pictures(found: Inspection, title: str) -> dict[str, Any] | None:
    """Return the data that `view.js` reads, with the attentions of each picture, whose heads can be switched off: none
    for convolutions and dense layers. Return None for a model without attention."""
    if not found.pictures:
        return None
    drawn = record(found.pictures)
    return {
        **drawn,
        "title": title,
        "note": str(drawn["note"]).removeprefix(found.note).strip(),  # the page shows the answer above
        "weights": [[packed(layer) for layer in picture.weights] for picture in found.pictures],
        "places": [*([] for _ in found.mixers), *found.layers.values()],  # in the order of `found.pictures`
    }
