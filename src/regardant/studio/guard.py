"""Who may ask: a browser on this machine that knows the studio by a name of this machine (`server.hosts`)."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regardant.server.hosts import is_of_another_site, is_ours

POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data: blob:",  # painted maps, and pictures on their way to a file
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""For every answer: what a page may load and run, which is nothing but what the studio serves."""

LARGEST_BODY = 17 * 2**20
"""Bytes of a request: a little more than the largest file of an item (`studio.items`)."""

STYLED_BY_SCRIPT = {"/runs"}
"""Pages whose library, plotly, writes style elements of its own."""


class Guard:
    """Turns away who asks by another name, and tells browsers what pages may do."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not is_ours(headers.get("host", ""), scope):
            refusal = PlainTextResponse("the studio answers to localhost and 127.0.0.1 alone", status_code=400)
            await refusal(scope, receive, send)
            return
        if is_of_another_site(scope):
            await PlainTextResponse("this page is none of the studio's", status_code=403)(scope, receive, send)
            return
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > LARGEST_BODY:
            refusal = PlainTextResponse(f"a request may have {LARGEST_BODY:,} bytes at most", status_code=413)
            await refusal(scope, receive, send)
            return

        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > LARGEST_BODY:  # of a body whose length was not given
                raise HTTPException(413, f"a request may have {LARGEST_BODY:,} bytes at most")
            return message

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = MutableHeaders(scope=message)
                styles = "; style-src 'self' 'unsafe-inline'" if scope["path"] in STYLED_BY_SCRIPT else ""
                added["content-security-policy"] = POLICY + styles
                added["x-content-type-options"] = "nosniff"
                added["referrer-policy"] = "no-referrer"
                added["cache-control"] = "no-cache"
            await send(message)

        await self.app(scope, receive_bounded, send_guarded)
