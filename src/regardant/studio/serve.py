"""The studio on a port of this machine."""

from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from regardant.server.listening import AnnouncingServer, bound
from regardant.studio.app import make_app

LOOPBACK = "127.0.0.1"


def serve(folders: Sequence[Path], port: int, log: Callable[[str], None]) -> None:
    """Serve the studio until Ctrl-C. Port 0 takes a free one. Raises RunError for a port that cannot be used."""
    with bound(LOOPBACK, port) as opened:
        app = make_app(folders)
        config = uvicorn.Config(
            app, log_level="error", lifespan="off", timeout_graceful_shutdown=1, proxy_headers=False
        )
        line = f"the studio is at http://{LOOPBACK}:{opened.getsockname()[1]}/  (Ctrl-C stops it)"
        AnnouncingServer(config, lambda: log(line)).run(sockets=[opened])
