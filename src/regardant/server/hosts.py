"""Protection of a server on a loopback address against DNS rebinding and cross-site requests.

A page of another site can make a browser send requests to 127.0.0.1, and read the responses by rebinding its own name;
the Host header then has that name. Without CORS headers, scripts of other origins cannot read responses otherwise.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

NAMES = {"localhost", "127.0.0.1", "::1"}


def is_ours(host: str, scope: Scope) -> bool:
    """Return whether a Host header names this machine and the port of the server."""
    try:
        asked = urlsplit(f"//{host}")
        port = asked.port or (443 if scope.get("scheme") == "https" else 80)
    except ValueError:
        return False
    server = scope.get("server")
    return asked.username is None and asked.hostname in NAMES and (server is None or server[1] in (None, port))


def is_of_another_site(scope: Scope) -> bool:
    """Return whether a request that may change state (not GET or HEAD) was sent by a browser for a page of another
    origin."""
    site = Headers(scope=scope).get("sec-fetch-site", "same-origin")
    return scope["method"] not in ("GET", "HEAD") and site != "same-origin"
