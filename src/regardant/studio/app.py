"""The studio as a web application: pages and their modules from `static/`, numbers under `/api/`.

Pages are served to this machine only and load nothing from elsewhere (`guard`). A user's text is sent as JSON and
inserted as text nodes.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from regardant.errors import OutOfMemory, RegardantError, one_line
from regardant.server.answers import CLIENT_LEFT, as_refusal
from regardant.server.body_limit import BodyLimit
from regardant.server.service import ClientLeft
from regardant.studio import attention_routes, curves, items, lab, steps, timeline, verdicts
from regardant.studio.catalogue import Catalogue, UnknownRun
from regardant.studio.guard import Guard
from regardant.studio.open_runs import OpenRuns

MOST_PROBLEMS = 5
"""Largest number of problems of a request that are listed."""

WORDS = {
    ("string_too_long",): "at most {max_length} characters",
    ("too_long",): "at most {max_length} entries",
    ("less_than_equal",): "at most {le}",
    ("less_than",): "below {lt}",
    ("greater_than_equal",): "at least {ge}",
    ("greater_than",): "above {gt}",
    ("missing",): "missing",
    ("string_type",): "a text is needed",
    ("bool_type", "bool_parsing"): "true or false is needed",
    ("int_type", "int_parsing", "int_from_float", "float_type", "float_parsing"): "a number is needed",
}
"""Messages for a field by pydantic's error types, with placeholders for the bounds of the field."""

STATIC = Path(str(files("regardant.studio") / "static"))
PICTURES = Path(str(files("regardant.pictures") / "assets"))
PAGES = {"/": "home", "/runs": "runs", "/look": "look", "/steps": "steps", "/lab": "lab"}
"""Folders of `static/` that hold the pages' index.html, by address."""

LARGEST_BODY = 17 * 2**20
"""Largest body of a request in bytes: a little more than the largest file of an item (`studio.items`)."""


def make_app(folders: Sequence[Path]) -> FastAPI:
    """Return the studio's application over run folders, and over folders that hold runs."""
    app = FastAPI(title="Regardant studio", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(BodyLimit, most=LARGEST_BODY, answer=_too_large)
    app.add_middleware(Guard)  # outside the limit: it refuses first, and every response gets its headers
    for kind in (RegardantError, MemoryError, RuntimeError):
        app.add_exception_handler(kind, _problem)
    app.add_exception_handler(ClientLeft, lambda request, error: JSONResponse(None, CLIENT_LEFT))
    app.add_exception_handler(RequestValidationError, _misunderstood)
    app.add_exception_handler(HTTPException, _refused)
    catalogue = Catalogue(folders)
    runs = OpenRuns(catalogue)
    app.include_router(timeline.routes(catalogue))
    app.include_router(curves.routes(catalogue))
    app.include_router(verdicts.routes(catalogue))
    files = items.ItemFiles()
    app.include_router(items.routes(runs, files))
    app.include_router(attention_routes.routes(runs, files))
    app.include_router(steps.routes(runs))
    app.include_router(lab.router)
    for address, page in PAGES.items():
        app.get(address)(_page(page))
    app.get("/static/plotly.min.js")(_plotly)
    app.mount("/static/pictures", StaticFiles(directory=PICTURES))
    app.mount("/static", StaticFiles(directory=STATIC))
    return app


def _page(name: str) -> Callable[[], FileResponse]:
    def page() -> FileResponse:
        return FileResponse(STATIC / name / "index.html")

    return page


def _plotly() -> FileResponse:
    """Return plotly.js from the installed wheel."""
    return FileResponse(str(files("plotly") / "package_data" / "plotly.min.js"), media_type="text/javascript")


def _too_large(line: str, status: int) -> JSONResponse:
    """Return the refusal of a body that is too large, in the form that pages read."""
    return JSONResponse({"detail": line}, status_code=status)


def _problem(request: Request, error: Exception) -> JSONResponse:
    """Return an error of the package, or memory that ran out, as one line. Raises the error itself if it is a fault."""
    if isinstance(error, UnknownRun | OutOfMemory):  # the latter has advice of its own
        return JSONResponse({"detail": one_line(error)}, status_code=404 if isinstance(error, UnknownRun) else 503)
    refusal = as_refusal(error)
    return JSONResponse({"detail": str(refusal)}, status_code=refusal.status)


def _misunderstood(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = [problem_message(one) for one in error.errors()[:MOST_PROBLEMS]]
    return JSONResponse({"detail": "; ".join(problems)}, status_code=422)


def problem_message(problem: Mapping[str, Any]) -> str:
    """Return a field's problem in the studio's words, never in pydantic's."""
    field = ".".join(map(str, problem["loc"][1:])) or "the request"
    bounds = problem.get("ctx", {})
    if problem["type"] == "value_error":
        return str(bounds["error"])
    for names, words in WORDS.items():
        if problem["type"] in names:
            return f"{field}: {words.format(**bounds)}"
    return f"{field}: the value is invalid"


async def _refused(request: Request, error: Exception) -> Response:
    """Return an HTTP error as one line. A browser that requests an unknown page gets the page that lists all pages."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
        return FileResponse(STATIC / "missing" / "index.html", status_code=404)
    line = str(error.detail)
    if error.status_code in (404, 405):
        line = f"the studio has no {request.method} {request.url.path}"
    elif error.status_code == 400:
        line = "the body is no JSON object: send one"
    return JSONResponse({"detail": line}, status_code=error.status_code)
