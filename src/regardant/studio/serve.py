"""The studio on a port of this machine."""

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from regardant.errors import RunError
from regardant.studio.app import make_app

LOOPBACK = "127.0.0.1"


def serve(folders: Sequence[Path], port: int, say: Callable[[str], None]) -> None:
    """Answer until Ctrl-C. Port 0 is any that is free. Raises RunError where the port is in use or no run is there."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    with listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((LOOPBACK, port))
            listening.listen()
        except OSError as error:
            raise RunError(f"port {port} is not to be had ({error.strerror}): give another --port") from error
        app = make_app(folders)
        config = uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1)
        told = f"the studio is at http://{LOOPBACK}:{listening.getsockname()[1]}/  (Ctrl-C ends it)"
        _Server(config, lambda: say(told)).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Says so once it answers, and knows Ctrl-C by then."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self.say_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.say_started()
