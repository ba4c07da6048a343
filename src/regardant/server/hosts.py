"""Protection of a server on a loopback address against DNS rebinding and cross-site requests.

A page of another site can make a browser send requests to 127.0.0.1, and read the responses by rebinding its own name;
the Host header then has that name. Without CORS headers, scripts of other origins cannot read responses otherwise.
"""

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

NAMES = {"localhost", "127.0.0.1", "::1"}


def is_ours(host: str, scope: Scope) -> bool:
    """Return whether a Host header names this machine and the port of the server.

    The names are `NAMES` and the loopback address that the connection reached, which may be another, such as 127.0.1.1.
    """
    try:
        asked = urlsplit(f"//{host}")
        port = asked.port or (443 if scope.get("scheme") == "https" else 80)
    except ValueError:
        return False
    reached, at = scope.get("server") or (None, None)
    is_named = asked.hostname in NAMES or (asked.hostname == reached and _is_loopback(reached))
    return asked.username is None and is_named and at in (None, port)


def _is_loopback(address: str | None) -> bool:
    """Return whether a text is a loopback address in digits. A name is none: DNS may give it any address."""
    try:
        return ipaddress.ip_address(address or "").is_loopback
    except ValueError:
        return False


def is_of_another_site(scope: Scope) -> bool:
    """Return whether a request that may change state (not GET or HEAD) was sent by a browser for a page of another
    origin."""
    site = Headers(scope=scope).get("sec-fetch-site", "same-origin")
    return scope["method"] not in ("GET", "HEAD") and site != "same-origin"
