"""A limit on the bytes of a body, held while it comes in."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regardant.server.answers import problem

TOO_LARGE = 413


class BodyLimit:
    """Refuses a request whose body has more bytes, by its Content-Length, or as soon as so many were read.

    Starlette's own middleware answers in plain text.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        line = f"the body has more than {self.most:,} bytes: send several requests"
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and int(length) > self.most:
            await problem(line, TOO_LARGE)(scope, receive, send)
            return
        read = 0

        async def receive_limited() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.most:
                raise HTTPException(TOO_LARGE, line)  # the only error that FastAPI lets pass while it reads
            return message

        await self.app(scope, receive_limited, send)
