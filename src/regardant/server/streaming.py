"""Route `/v1/generate`: a text, streamed as server-sent events while it is generated.

https://html.spec.whatwg.org/multipage/server-sent-events.html
Each token is a separate call to the worker, so that several texts are generated in turn, and none after its client has
disconnected.
"""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from fastapi.sse import format_sse_event

from regardant.run import Run
from regardant.server.answers import as_refusal
from regardant.server.bodies import GenerateBody
from regardant.server.limits import Limits
from regardant.server.service import Asking, ClientLeft, Service
from regardant.server.worker import ModelCall

EVENTS = "text/event-stream"


def routes(service: Service) -> APIRouter:
    """Return the router of `/v1/generate`."""
    router, limits = APIRouter(prefix="/v1"), service.limits

    @router.post("/generate", response_class=StreamingResponse, responses={200: {"content": {EVENTS: {}}}})
    async def generate(body: GenerateBody, request: Request) -> StreamingResponse:
        """Continue a text. Every event has `{"text": PIECE}`; the last is named `end`, or `error` after a failure."""
        worker = service.worker(body.run, "generate")
        limits.require_text("prompt", body.prompt)
        limits.require_most("max_tokens", body.max_tokens, limits.max_tokens)
        asking = Asking(worker, request)
        begin = ModelCall(lambda run, rows: [_begin(run, body, limits)], [body.prompt])
        ((pieces, first),) = await asking.answer(begin)  # its errors have a status, as the stream has not begun
        return StreamingResponse(_events(asking, pieces, first), media_type=EVENTS)

    return router


def _begin(run: Run, body: GenerateBody, limits: Limits) -> tuple[Any, str | None]:
    """Return an iterator over the pieces of a continuation after the first, and the first, None if there is none."""
    options = body.model_dump(include={"temperature", "top_k", "top_p"})
    tokens = body.max_tokens or min(run.config.generation.max_tokens, limits.max_tokens)  # type: ignore[attr-defined]
    pieces = run.stream(body.prompt, seed=body.seed, max_tokens=tokens, **options)
    next(pieces)  # the prompt
    return pieces, next(pieces, None)


async def _events(asking: Asking, pieces: Any, first: str | None) -> AsyncIterator[bytes]:
    def compute(run: Run, rows: list[Any]) -> Sequence[Any]:
        return [next(pieces, None)]

    piece, characters = first, 0
    try:
        while piece is not None:
            characters += len(piece)
            yield _event({"text": piece})
            (piece,) = await asking.answer(ModelCall(compute, [None]), is_begun=True)
        yield _event({"characters": characters}, "end")
    except ClientLeft:
        return
    except Exception as error:  # status 200 was sent when the stream began
        yield _event({"error": str(as_refusal(error))}, "error")


def _event(content: dict[str, Any], name: str | None = None) -> bytes:
    return format_sse_event(data_str=json.dumps(content, ensure_ascii=False), event=name)
