"""Responses to failed requests: a JSON object whose `error` says in one line what was given, what is allowed and what
to do.
"""

import traceback
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from regardant.errors import OutOfMemory, RegardantError, one_line
from regardant.server.limits import RETRY_SECONDS, Refusal
from regardant.server.service import ClientLeft
from regardant.training.devices import ran_out_of_memory

CLIENT_LEFT = 499
"""Status of a request whose client has disconnected, as in nginx. It is logged and counted, not sent."""

NO_JSON = "the body is no JSON object: send one, as /openapi.json shows, with the header Content-Type: application/json"

LONGEST_SHOWN = 50
"""Maximum number of characters of an input value in a message."""

MOST_MISTAKES = 5
"""Maximum number of mistakes in a body that a message lists."""

STATUSES = {
    401: "API key missing or wrong",
    413: "body too large",
    422: "a request that cannot be answered",
    429: "queue full",
    503: "server shutting down, or out of memory",
    504: "request timed out",
}
"""Statuses of failed requests, for the OpenAPI description."""


def add_problems(app: FastAPI) -> None:
    """Add exception handlers to an application, so that every error is one line of JSON."""

    def http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        line = str(error.detail)
        if error.status_code in (404, 405):
            line = f"there is no {request.method} {request.url.path[:100]} here: /openapi.json lists the endpoints"
        elif error.status_code == 400:
            line = NO_JSON
        return problem(line, error.status_code)

    def misunderstood(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return problem("; ".join(map(_described, error.errors()[:MOST_MISTAKES])), 422)

    def mistake(request: Request, error: Exception) -> JSONResponse:
        return refused(as_refusal(error))

    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, misunderstood)
    app.add_exception_handler(RegardantError, mistake)
    app.add_exception_handler(MemoryError, mistake)
    app.add_exception_handler(RuntimeError, mistake)
    app.add_exception_handler(ClientLeft, lambda request, error: JSONResponse(None, CLIENT_LEFT))


def as_refusal(error: Exception) -> Refusal:
    """Return the refusal for an error of a computation. Raises the error itself if it is a fault of the server."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, OutOfMemory) or (isinstance(error, MemoryError | RuntimeError) and ran_out_of_memory(error)):
        return Refusal("memory ran out: send fewer or shorter texts, or a smaller beam_size", 503, RETRY_SECONDS)
    if isinstance(error, RegardantError):
        return Refusal(one_line(error))
    raise error


def _described(error: Mapping[str, Any]) -> str:
    """Return the description of a validation error in one line."""
    if error["type"] == "value_error":  # from `Body`, whose message is complete
        return str(error["ctx"]["error"])
    place = ".".join(map(str, error["loc"][1:]))
    if error["type"] == "json_invalid" or not place:
        return NO_JSON
    # The repr of a large list would block the event loop.
    shown = repr(error["input"]) if isinstance(error["input"], str | int | float) else ""
    given = f"given {shown}, " if 0 < len(shown) <= LONGEST_SHOWN else ""
    return f"{place}: {given}{error['msg'][:1].lower()}{error['msg'][1:]}"


def refused(refusal: Refusal) -> JSONResponse:
    """Return the response for a refusal."""
    return problem(str(refusal), refusal.status, refusal.retry_after)


def problem(line: str, status: int, retry_after: int | None = None) -> JSONResponse:
    """Return the response with a problem in one line."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    line = line.encode(errors="replace").decode()  # the message may quote a lone surrogate
    return JSONResponse({"error": line}, status, headers)


def place_of(error: BaseException) -> str:
    """Return the type of an error and its traceback, innermost line first. The message may hold a user's text and is
    left out."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at {' < '.join(f'{one.filename}:{one.lineno}' for one in reversed(frames))}"
