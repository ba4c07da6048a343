"""Protection of a server on a loopback address: it answers requests that name this machine and come from no other site.

A page elsewhere can make a browser ask 127.0.0.1, and by rebinding its own name even read the answer: but then the
Host header has that name. There is no CORS header, so nobody else's script reads an answer either.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

NAMES = {"localhost", "127.0.0.1", "::1"}


def is_ours(host: str, scope: Scope) -> bool:
    """Return whether a Host header names this machine and the port that was asked."""
    try:
        asked = urlsplit(f"//{host}")
        port = asked.port or (443 if scope.get("scheme") == "https" else 80)
    except ValueError:
        return False
    server = scope.get("server")
    return asked.username is None and asked.hostname in NAMES and (server is None or server[1] in (None, port))


def is_of_another_site(scope: Scope) -> bool:
    """Return whether a browser sends a request that may change something for a page of another site."""
    site = Headers(scope=scope).get("sec-fetch-site", "same-origin")
    return scope["method"] not in ("GET", "HEAD") and site != "same-origin"
