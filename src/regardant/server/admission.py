"""Admission of requests: API key, names of this machine on a loopback address, rate limit, draining."""

import hmac
import os
from dataclasses import dataclass
from pathlib import Path

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from regardant.errors import ConfigError
from regardant.server.answers import refused
from regardant.server.hosts import is_of_another_site, is_ours
from regardant.server.limits import RETRY_SECONDS, Refusal
from regardant.server.service import Service

WORK = "/v1/"
"""Prefix of the paths that need a model."""

WITHOUT_KEY = frozenset({"/health", "/ready"})
"""Paths that need no key, for the probes of a supervisor."""

KEY_VARIABLE = "REGARDANT_API_KEY"
LEAST_KEY = 16
"""Minimum number of characters of a key."""

DRAIN_SECONDS = 5
"""Seconds after which a client may retry while the server drains: another server may have started by then."""


@dataclass(frozen=True)
class Access:
    """Requirements on a client."""

    key: bytes | None
    """API key. None: no key is needed."""
    is_loopback: bool
    """True if the server listens on a loopback address; requests must then name this machine."""


def read_key(file: Path | None, *, is_loopback: bool) -> bytes | None:
    """Return the API key in a file, or in the environment if no file is given. None: there is none.

    Raises ConfigError for an unreadable file, an invalid key, and a missing key if other machines can reach the server.
    """
    if file is not None:
        try:
            given, origin = file.read_text(encoding="utf-8").strip(), str(file)
        except (OSError, ValueError) as error:
            raise ConfigError(f"--api-key-file {file} cannot be read ({error}): give a file with the key") from error
    else:
        given, origin = os.environ.get(KEY_VARIABLE, "").strip(), KEY_VARIABLE
        if not given:
            if is_loopback:
                return None
            raise ConfigError(
                f"other machines can reach this --host, so an API key is needed: set {KEY_VARIABLE}, give "
                "--api-key-file FILE, or leave --host out"
            )
    if len(given) < LEAST_KEY or not (given.isascii() and given.isprintable() and " " not in given):
        raise ConfigError(
            f"the API key in {origin} has {len(given)} characters: give at least {LEAST_KEY}, printable ASCII without "
            "spaces, such as `openssl rand -hex 32` writes"
        )
    return given.encode()


class Admission:
    """Middleware that refuses unauthorised or too frequent requests, and new work while the server drains. Counts the
    work in progress."""

    def __init__(self, app: ASGIApp, service: Service, access: Access) -> None:
        self.app, self.service, self.access = app, service, access
        self.rates = MovingWindowRateLimiter(MemoryStorage())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if (refusal := self._refusal(scope)) is not None:
            await refused(refusal)(scope, receive, send)
            return
        if not scope["path"].startswith(WORK):
            await self.app(scope, receive, send)
            return
        self.service.active += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.service.active -= 1

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = Headers(scope=scope)
        if self.access.is_loopback and not is_ours(headers.get("host", ""), scope):
            return Refusal("the Host header is not of this server: use localhost or its address, with its port", 400)
        if self.access.is_loopback and is_of_another_site(scope):
            return Refusal("requests from pages of other sites are refused: open the address of this server", 403)
        if scope["path"] not in WITHOUT_KEY and not self._is_slow_enough(scope):
            return Refusal(
                f"more than {self.service.limits.max_rate} requests in a second came from one address: send fewer",
                429,
                RETRY_SECONDS,
            )
        if self.access.key is not None and scope["path"] not in WITHOUT_KEY:
            kind, _, given = headers.get("authorization", "").partition(" ")
            is_right = hmac.compare_digest(given.strip().encode("latin-1", "replace"), self.access.key)
            if kind.lower() != "bearer" or not is_right:
                return Refusal("the API key is missing or wrong: send the header `Authorization: Bearer KEY`", 401)
        if self.service.is_draining and scope["path"].startswith(WORK):
            return Refusal("the server is shutting down: use another one, or try again later", 503, DRAIN_SECONDS)
        return None

    def _is_slow_enough(self, scope: Scope) -> bool:
        """Count a request. Return whether its address is within the rate limit."""
        most, (address, *_) = self.service.limits.max_rate, scope.get("client") or ("",)
        return most is None or self.rates.hit(RateLimitItemPerSecond(most), address)
