"""Metrics and log lines of requests, without texts of users by default, and responses to faults of the server."""

import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from regardant.server.answers import place_of, problem
from regardant.server.log_lines import log_line
from regardant.server.service import Service

QUIET = frozenset({"/health", "/ready", "/metrics"})
"""Paths that are polled every few seconds and are not logged."""

METHODS = frozenset({"GET", "HEAD", "POST"})
"""HTTP methods that are logged by name. Any other one may be arbitrary text of a client."""

FAULT = 500


class Observing:
    """Middleware that counts, times and logs every request by its route."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, body = time.perf_counter(), 0, bytearray()

        async def receive_observed() -> Message:
            message = await receive()
            if self.service.logs_bodies:
                body.extend(message.get("body", b""))
            return message

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                added = MutableHeaders(scope=message)
                added["x-content-type-options"] = "nosniff"
                added["cache-control"] = "no-store"
            await send(message)

        try:
            await self.app(scope, receive_observed, send_observed)
        except Exception as error:
            self.service.log(log_line("fault", place=place_of(error)))
            if status:  # the client receives a truncated response
                raise ConnectionError("the answer ended early") from None
            await problem("internal server error, which is logged: report it", FAULT)(scope, receive, send_observed)
        finally:
            path = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - began
            self.service.metrics.requests.labels(path, str(status)).inc()
            self.service.metrics.seconds.labels(path).observe(seconds)
            if path not in QUIET:
                method = scope["method"] if scope["method"] in METHODS else "OTHER"
                fields = {"method": method, "path": path, "status": status, "milliseconds": round(seconds * 1000)}
                text = {"body": body.decode(errors="replace")} if self.service.logs_bodies else {}
                self.service.log(log_line("request", **fields, **text))
