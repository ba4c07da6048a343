"""The studio on a port of this machine."""

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from regardant.errors import RunError
from regardant.studio.app import make_app

LOOPBACK = "127.0.0.1"


def serve(folders: Sequence[Path], port: int, log: Callable[[str], None]) -> None:
    """Serve the studio until Ctrl-C. Port 0 takes a free one. Raises RunError for a port that cannot be used."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, port))
            listening.listen()
        except OSError as error:
            raise RunError(f"port {port} cannot be used ({error.strerror}): give another --port") from error
        app = make_app(folders)
        config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        line = f"the studio is at http://{LOOPBACK}:{listening.getsockname()[1]}/  (Ctrl-C ends it)"
        _Server(config, lambda: log(line)).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that calls `started` once it answers and handles Ctrl-C."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self.started_up = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.started_up()
