"""A socket with an address, and a server that says when it answers."""

import gc
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from regardant.errors import RunError


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Hold an address while the block runs: connections are refused until a server listens. Port 0 takes a free one.

    Raises RunError for an address that cannot be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # UnicodeError: of a name with an empty or a long part, as a..b
        reason = error.strerror if isinstance(error, OSError) else "no name of a host"
        raise RunError(f"the host {host!r} is no address of this machine ({reason}): give another") from error
    with socket.socket(family, kind, protocol) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(address)
        except OSError as error:
            raise RunError(f"port {port} cannot be used ({error.strerror}): give another --port") from error
        yield opened


SWITCH_SECONDS = 0.0005
"""Seconds for which a model's thread keeps the interpreter when the event loop asks for it. By default it is ten times
as long at each step of an answer, and a page waits for many steps."""


class AnnouncingServer(uvicorn.Server):
    """A server that calls `started` once it answers and handles Ctrl-C."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self.started_up = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.freeze()  # a collection that looks through all that is imported stops every answer
        await super().startup(sockets=sockets)
        self.started_up()
