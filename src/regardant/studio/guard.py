"""Access for browsers on this machine only, under a host name of this machine (`server.hosts`)."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regardant.server.hosts import is_of_another_site, is_ours

POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data: blob:",  # maps drawn on a canvas, and pictures that are saved
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Content security policy of every response: a page loads and runs only files that the studio serves."""

STYLED_BY_SCRIPT = {"/runs"}
"""Pages whose library, plotly, inserts its own style elements."""


class Guard:
    """Middleware that refuses requests under other host names and from other sites, and adds security headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if not is_ours(Headers(scope=scope).get("host", ""), scope):
            refusal = PlainTextResponse("the studio answers only to localhost, 127.0.0.1 and [::1]", status_code=400)
            await refusal(scope, receive, send)
            return
        if is_of_another_site(scope):
            await PlainTextResponse("requests from other sites are refused", status_code=403)(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = MutableHeaders(scope=message)
                styles = "; style-src 'self' 'unsafe-inline'" if scope["path"] in STYLED_BY_SCRIPT else ""
                added["content-security-policy"] = POLICY + styles
                added["x-content-type-options"] = "nosniff"
                added["referrer-policy"] = "no-referrer"
                added["cache-control"] = "no-cache"
            await send(message)

        await self.app(scope, receive, send_guarded)
