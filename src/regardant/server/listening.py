"""A socket bound to an address, and a server that reports when it is ready."""

import errno
import gc
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from regardant.errors import RunError


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket bound to an address. Connections are refused until a server listens. Port 0: any free one.

    Raises RunError for an address that cannot be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # UnicodeError: a name with an empty or a long part, as a..b
        reason = error.strerror if isinstance(error, OSError) else "not a host name"
        raise _foreign(host, reason) from error
    with socket.socket(family, kind, protocol) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            opened.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise _foreign(host, error.strerror) from error
            raise RunError(f"port {port} cannot be used ({error.strerror}): give another --port") from error
        yield opened


def _foreign(host: str, reason: str | None) -> RunError:
    return RunError(f"the host {host!r} is no address of this machine ({reason}): give another --host")


SWITCH_SECONDS = 0.0005
"""Switch interval of the interpreter: seconds for which a model's thread keeps the GIL when the event loop needs it.
Python's default is ten times as long, at each step of a response, and a page takes many steps."""


class AnnouncingServer(uvicorn.Server):
    """uvicorn server that calls `started` once it accepts requests and handles Ctrl-C."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self.started_up = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.freeze()  # a garbage collection over all imported objects would pause every response
        await super().startup(sockets=sockets)
        self.started_up()
