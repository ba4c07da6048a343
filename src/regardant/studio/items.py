"""Items for a page: examples from a run's validation set, and files uploaded by a browser."""

import hashlib
import os
import shutil
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from fastapi import APIRouter, Request

from regardant.errors import DataError, RunError
from regardant.run import Record
from regardant.server.items import require_file_name
from regardant.studio.open_runs import OpenRuns
from regardant.tasks.base import Trained

EXAMPLES = 8
"""Number of examples of a run."""

MOST_FILES = 32
"""Largest number of uploaded files kept; the oldest are removed."""

LARGEST_FILE = 16 * 2**20
"""Largest uploaded file, in bytes."""


class ItemFiles:
    """Files of items in a temporary folder, which is removed when the studio ends."""

    def __init__(self) -> None:
        self.folder = mkdtemp(prefix="regardant-studio-")
        finalize(self, shutil.rmtree, self.folder, ignore_errors=True)  # at exit too
        self.sent: deque[Path] = deque()
        self.count = 0

    def of_run(self, folder: Path) -> Path:
        """Return the folder for the examples of a run."""
        path = Path(self.folder) / "examples" / hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
        path.mkdir(parents=True, exist_ok=True)
        return path

    def keep(self, name: str, content: bytes) -> Path:
        """Write an uploaded file. Return its path, which ends in its original name."""
        self.count += 1
        path = Path(self.folder) / str(self.count) / Path(name).name
        path.parent.mkdir()
        path.write_bytes(content)
        self.sent.append(path)
        while len(self.sent) > MOST_FILES:
            self.sent.popleft().unlink(missing_ok=True)
        return path

    def shown_name(self, item: str) -> str | None:
        """Return the name, without the folder, of a file that is kept here. None for any other item."""
        return Path(item).name if item.startswith(self.folder) else None


def routes(runs: OpenRuns, files: ItemFiles) -> APIRouter:
    """Return `/api/examples` and `/api/item`."""
    router = APIRouter(prefix="/api")

    @router.get("/examples")
    async def examples(run: str, request: Request) -> list[Mapping[str, Any]]:
        def found(trained: Trained) -> list[Mapping[str, Any]]:
            try:
                return [asdict(one) for one in trained.examples(EXAMPLES, files.of_run(runs.catalogue.folder(run)))]
            except RunError:  # the run's data is gone
                return []

        return await runs.answer(request, run, found)

    @router.post("/item")
    async def item(request: Request, run: str, name: str) -> Mapping[str, str]:
        allowed = Record.read(runs.catalogue.folder(run)).config.suffixes
        if not allowed:
            raise DataError(f"{run} reads texts, not files: type a text")
        if Path(name).suffix.lower() not in allowed or "\0" in name:
            raise DataError(f"{name!r} is not a file that this run reads: choose one that ends in {', '.join(allowed)}")
        require_file_name(name, "the file")
        content = bytearray()
        async for block in request.stream():
            content += block
            if len(content) > LARGEST_FILE:
                raise DataError(f"{name} is larger than {LARGEST_FILE // 2**20} MB: give its path on this machine")
        return {"item": str(files.keep(name, bytes(content)))}

    return router
