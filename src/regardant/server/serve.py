"""The server process: it listens on an address until a signal ends it.

SIGTERM and Ctrl-C drain the server: new work is refused, accepted work is answered, then the process ends. SIGHUP
reloads the runs.
"""

import asyncio
import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from regardant.errors import ConfigError
from regardant.server.admission import Access, read_key
from regardant.server.app import make_app
from regardant.server.connections import timed_protocol
from regardant.server.limits import Limits
from regardant.server.listening import AnnouncingServer, bound
from regardant.server.service import Service

KEEP_ALIVE_SECONDS = 5
"""Seconds that a connection may be idle between two requests."""

CLOSING_SECONDS = 5
"""Timeout in seconds for sending the last responses when the server ends."""


@dataclass(frozen=True)
class Address:
    """Address that a server listens on, with its API key and its certificate."""

    host: str = "127.0.0.1"
    port: int = 8000
    """TCP port. 0: any free one."""
    api_key_file: Path | None = None
    tls_cert: Path | None = None
    """Certificate chain in PEM. None: no TLS."""
    tls_key: Path | None = None
    """Private key of the certificate in PEM."""


def serve(
    folders: Sequence[Path],
    address: Address,
    limits: Limits,
    log: Callable[[str], None],
    engine: str = "torch",
    *,
    logs_bodies: bool = False,
) -> None:
    """Serve runs until a signal. `engine` is the engine of translations; `logs_bodies` logs the bodies of requests.

    Raises ConfigError for unusable settings, RunError for an unusable run, host or port.
    """
    if (address.tls_cert is None) != (address.tls_key is None):
        raise ConfigError("--tls-cert and --tls-key need each other: give both, or none of them")
    if limits.max_queue < limits.max_batch:
        raise ConfigError(
            f"--max-queue {limits.max_queue} is less than --max-batch {limits.max_batch}, so a request of that many "
            "texts would never be accepted: raise --max-queue, or lower --max-batch"
        )
    with bound(address.host, address.port) as opened:
        host, port = opened.getsockname()[:2]
        is_loopback = ipaddress.ip_address(host).is_loopback
        access = Access(read_key(address.api_key_file, is_loopback=is_loopback), is_loopback)
        service = Service(folders, limits, log, engine, logs_bodies=logs_bodies)
        config = configured(service, access, address)
        scheme = "http" if address.tls_cert is None else "https"
        at = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        line = f"{', '.join(service.workers)} served at {at}  (Ctrl-C ends it)"
        server = DrainingServer(config, service, lambda: log(line))
        signal.signal(signal.SIGTERM, lambda *_: server.stop())  # uvicorn raises it again at the end: exit status 0
        status: int | None = None  # none after an error, which is reported
        try:
            server.run(sockets=[opened])
            status = 0
        except KeyboardInterrupt:  # uvicorn raises SIGINT again too
            status = 130
            raise
        finally:
            service.close()
            if service.alive and status is not None:
                log(f"a batch of {', '.join(service.alive)} is abandoned: its clients have disconnected")
                os._exit(status)  # nothing can stop its thread, which must not compute while Python ends


class DrainingServer(AnnouncingServer):
    """A server that answers accepted work before it ends."""

    def __init__(self, config: uvicorn.Config, service: Service, started: Callable[[], None]) -> None:
        super().__init__(config, started)
        self.service = service
        self.reloads: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Start draining; the server ends when accepted work is answered."""
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)  # by default SIGHUP ends a process
        await super().startup(sockets=sockets)

    async def on_tick(self, counter: int) -> bool:
        """Return whether the server may end: after a signal, once accepted work is answered. uvicorn asks ten times a
        second."""
        if not await super().on_tick(counter):
            return False
        self.service.is_draining = True
        return self.force_exit or not self.service.active

    def _reload(self) -> None:
        task = asyncio.ensure_future(asyncio.to_thread(self.service.reload))
        self.reloads.add(task)  # the loop itself keeps no reference
        task.add_done_callback(self.reloads.discard)


def configured(service: Service, access: Access, address: Address) -> uvicorn.Config:
    """Return uvicorn's settings. Raises ConfigError for a certificate that cannot be used."""
    limits = service.limits
    config = uvicorn.Config(
        make_app(service, access),
        http=timed_protocol(limits.read_seconds),
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,  # it has whole URLs, in which users may write texts
        server_header=False,
        proxy_headers=False,  # by X-Forwarded-For, clients here would choose the address that max_rate counts
        limit_concurrency=limits.connections,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=CLOSING_SECONDS,
        ssl_certfile=address.tls_cert,
        ssl_keyfile=address.tls_key,
    )
    try:
        config.load()
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(
            f"--tls-cert {address.tls_cert} and --tls-key {address.tls_key} cannot be used "
            f"({error.strerror or error}): give a certificate chain and its private key, both in PEM"
        ) from error
    return config
