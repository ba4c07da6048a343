"""Limit on the size of a request body, enforced while the body is received."""

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regardant.server.answers import problem

TOO_LARGE = 413


class BodyLimit:
    """Middleware that refuses a body of more than `most` bytes: by its Content-Length, or as soon as more were read.

    Starlette's own middleware answers in plain text. `answer` builds the response from a line and a status.
    """

    def __init__(self, app: ASGIApp, most: int, answer: Callable[[str, int], Response] = problem) -> None:
        self.app, self.most, self.answer = app, most, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        line = f"the body has more than {self.most:,} bytes: send less at once"
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length) > self.most:
            await self.answer(line, TOO_LARGE)(scope, receive, send)
            return
        read = 0

        async def receive_limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.most:
                raise HTTPException(TOO_LARGE, line)  # the only error that FastAPI lets pass while it reads a body
            return message

        await self.app(scope, receive_limited, send)
