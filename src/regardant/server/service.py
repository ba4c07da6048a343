"""The runs of a server with their workers, and the requests that wait for them."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.requests import Request

from regardant.data.item_files import shown_name
from regardant.errors import ConfigError, RegardantError, one_line
from regardant.run import Run, load
from regardant.server.limits import Limits, Refusal
from regardant.server.log_lines import log_line
from regardant.server.metrics import Metrics
from regardant.server.worker import Compute, ModelCall, Worker, take_threads


class ClientLeft(Exception):
    """A request whose client has disconnected, so that nobody waits for the response."""


class Service:
    """The runs that are served, by name: the last part of their paths."""

    def __init__(
        self,
        folders: Sequence[Path],
        limits: Limits,
        log: Callable[[str], None],
        engine: str = "torch",
        *,
        logs_bodies: bool = False,
    ) -> None:
        """Open all runs. `engine` is the engine of translations. Raises RunError for an unusable run, ConfigError for
        two runs of one name."""
        named: dict[str, Path] = {}
        for folder in folders:
            name = shown_name(Path(os.path.abspath(folder)).name)  # a symbolic link keeps its own name
            if name in named:
                raise ConfigError(f"{named[name]} and {folder} are both named {name}: rename one of the folders")
            named[name] = folder
        self.limits, self.log, self.engine, self.metrics = limits, log, engine, Metrics()
        self.logs_bodies = logs_bodies
        """True if the bodies of requests, which hold texts of users, are logged."""
        self.active = 0
        """Number of requests in progress under `/v1/`."""
        self.is_draining = False
        """True if new work is refused because the server is about to end."""
        self._reloading = Lock()
        opened = {name: _opened(folder, engine, log) for name, folder in named.items()}
        self.workers = {name: Worker(name, run, limits, self.metrics) for name, run in opened.items()}
        for name, worker in self.workers.items():
            self.metrics.watch_queue(name, lambda worker=worker: worker.rows_waiting)  # type: ignore[misc]
        self.metrics.watch_active(lambda: self.active)

    @property
    def alive(self) -> list[str]:
        """Names of the runs whose worker has not ended."""
        return [name for name, worker in self.workers.items() if worker.is_alive]

    def worker(self, name: str | None, verb: str | None = None) -> Worker[Run]:
        """Return the worker of a run; if none is named, of the only run.

        Raises Refusal for an unknown run, for no name among several runs, and for a run whose task lacks the verb.
        """
        known = ", ".join(self.workers)
        if name is None and len(self.workers) > 1:
            raise Refusal(f"no run was given: name one of {known} as `run`")
        chosen = name if name is not None else next(iter(self.workers))
        if chosen not in self.workers:
            raise Refusal(f"there is no run {chosen!r} here: name one of {known}", status=404)
        worker = self.workers[chosen]
        if verb is not None and verb not in worker.run.config.verbs:
            raise Refusal(
                f"{chosen} is a run of {worker.run.config.task}, which has no {verb}: it has "
                f"{', '.join((*worker.run.config.verbs, 'predict'))}"
            )
        return worker

    def reload(self) -> None:
        """Reload every run, while its old model answers. A run that cannot be opened stays as it was."""
        with self._reloading:
            for name, worker in self.workers.items():
                take_threads(worker.num_threads)
                try:
                    worker.run = _opened(worker.run.folder, self.engine, self.log)
                except (RegardantError, OSError, RuntimeError, MemoryError) as error:
                    outcome, why = "failed", {"error": one_line(error)}
                else:
                    outcome, why = "done", {}
                self.metrics.reloads.labels(name, outcome).inc()
                self.log(log_line("reload", run=name, outcome=outcome, **why))

    def close(self) -> None:
        """End all workers."""
        for worker in self.workers.values():
            worker.close()


class Asking:
    """A request that waits for a worker, until its timeout or until its client disconnects."""

    def __init__(self, worker: Worker[Any], request: Request) -> None:
        self.limits, self.worker, self.request = worker.limits, worker, request
        self.until = time.monotonic() + worker.limits.timeout

    async def answer(self, call: ModelCall, *, is_begun: bool = False) -> list[Any]:
        """Return the results of a call.

        Raises Refusal if the queue is full or the request times out, ClientLeft if the client disconnects, and any
        error of the computation.
        """
        answer: asyncio.Future[Any] = asyncio.wrap_future(self.worker.submit(call, is_begun=is_begun))
        left: asyncio.Future[Any] = asyncio.ensure_future(self._leave())
        try:
            seconds = max(0.0, self.until - time.monotonic())
            done, _ = await asyncio.wait({answer, left}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if answer in done:
                return answer.result()
        finally:
            left.cancel()
            answer.cancel()  # drops the call if it still waits; nothing happens to one that is done
        if left in done:
            raise ClientLeft
        raise Refusal(
            f"the answer took more than {self.limits.timeout:g} s, the timeout of a request: send less, or try again "
            "later",
            status=504,
        )

    async def answer_rows(self, kind: str, compute: Compute, rows: list[str]) -> list[Any]:
        """Return the results of all rows. A language model computes them singly, interleaved with other requests."""
        if "generate" not in self.worker.run.config.verbs:
            return await self.answer(ModelCall(compute, rows, max(map(len, rows)), kind))
        found: list[Any] = []
        for row in rows:
            found += await self.answer(ModelCall(compute, [row]), is_begun=bool(found))
        return found

    async def _leave(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass


def _opened(folder: Path, engine: str, log: Callable[[str], None]) -> Run:
    """Return a run whose model and engine are loaded now instead of on first use."""
    run = load(folder)
    _ = run.trained
    if "translate" in run.config.verbs:
        run.translation.on(engine)
        if engine == "auto":
            choice = run.translation.choose_engine()
            log(log_line("engine", run=folder.name, engine=choice.engine, reason=choice.reason))
    return run
