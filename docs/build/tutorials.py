"""Tutorials: pages of Markdown whose code is run as a notebook, with the outputs below the code."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .stage import write

TIMEOUT = 300
"""Seconds for one cell."""

HEADER = """---
jupyter:
  kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
"""Metadata with the kernel of a notebook. Without it, the language of most blocks would be that of the notebook."""

SHELL = "%%bash"
"""First line of a cell that the shell runs; in the page, a block of the language bash."""

COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class TutorialError(RuntimeError):
    """A tutorial whose code failed."""


def execute_all(pages: Sequence[Path]) -> None:
    """Run the code of staged pages, one after the other in one folder, which is empty at first.

    Raises TutorialError for code that fails.
    """
    with TemporaryDirectory(prefix="regardant-tutorials-") as folder:
        for page in pages:
            execute(page, Path(folder))


def execute(page: Path, folder: Path) -> None:
    """Run the code of a page in a folder; replace the page, and write the notebook beside it.

    Raises TutorialError for code that fails.
    """
    import jupytext  # these belong to the extra `docs`
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
    from traitlets.config import Config

    notebook = jupytext.reads(HEADER + page.read_text(encoding="utf-8"), "md")
    for cell in notebook.cells:
        if cell.source.startswith(SHELL):
            cell.source = cell.source.replace(SHELL, f"{SHELL} -e", 1)  # the first command that fails fails the cell
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    place = {"metadata": {"path": str(folder)}}
    sockets = Config({"KernelManager": {"transport": "ipc", "ip": str(folder / f".{page.stem}")}})  # no open port
    client = NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", resources=place, config=sockets)
    try:
        client.execute(env={**os.environ, "PATH": programs, "TTY_COMPATIBLE": "0"})
    except CellExecutionError as error:
        raise TutorialError(f"{page.name}: {COLOUR.sub('', str(error))}") from error
    nbformat.write(notebook, page.with_suffix(".ipynb"))
    end = f"[This page as a notebook]({page.with_suffix('.ipynb').name})"
    write(page, "\n\n".join([*(part for cell in notebook.cells for part in _cell(cell)), end]) + "\n")


def _cell(cell: Any) -> Iterator[str]:
    if cell.cell_type != "code":
        yield cell.source
        return
    first, _, rest = cell.source.partition("\n")
    yield _fenced("bash", rest) if first.startswith(SHELL) else _fenced("python", cell.source)
    printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    if printed.strip():
        yield _fenced("text", COLOUR.sub("", printed).strip("\n"))
    for output in cell.outputs:
        if output.output_type in ("display_data", "execute_result"):
            yield _shown(output.data)


def _shown(data: dict[str, str]) -> str:
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            return f"<div>{data[kind].strip()}</div>"
    return _fenced("text", data["text/plain"])


def _fenced(language: str, text: str) -> str:
    return f"````{language}\n{text}\n````"
