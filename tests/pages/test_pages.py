"""Every command of README and docs runs, page by page and in order, as a reader would type it.

A page has a folder of its own. Its commands are found by `commands.py` and made short by `shortened.py`, which also
lists those that are not run; `files.py` and `runs.py` make what a command names and the page has not made before.
"""

import contextlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.pages.commands import PAGES, ROOT, commands, given_files
from tests.pages.files import DATA, FILES
from tests.pages.runs import RUNS, TRAINED, Maker, named
from tests.pages.shell import run, served, variables
from tests.pages.shortened import (
    COVERAGE,
    NOT_RUN,
    NOT_RUN_THERE,
    OPTIONS,
    SETTINGS,
    begins,
    is_run,
    shortened,
)

ALL = [command for page in PAGES for command in commands(page)]
RUN = [command for command in ALL if is_run(command)]
OF_EACH = Counter(command.page for command in RUN)
PAGES_RUN = sorted(OF_EACH, key=OF_EACH.__getitem__, reverse=True)
"""Pages with commands that are run, the longest first."""

ASKED = {"serve": "/health", "studio": "/"}
"""What every server answers, by the verb that starts it."""

pytestmark = pytest.mark.xdist_group("pages")  # one process has the threads below


@pytest.fixture(scope="module")
def walks(request, made_once, tmp_path_factory) -> Iterator[dict[str, Future[list[str]]]]:
    """Walks through the pages of the chosen tests, two at a time."""

    def fill(folder: Path) -> None:
        for name, write in DATA.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write(folder / name)

    maker = Maker(made_once, variables(made_once("pages-data", fill)))
    chosen = [item.callspec.params["page"] for item in request.session.items if "walks" in item.fixturenames]
    pool = ThreadPoolExecutor(2)
    yield {page: pool.submit(walk, page, tmp_path_factory.mktemp("page"), maker) for page in chosen}
    pool.shutdown(cancel_futures=True)


def walk(page: str, folder: Path, maker: Maker) -> list[str]:
    """Run the commands of a page; return what took how long. Raises AssertionError if one fails.

    They follow each other in one folder, but for the commands of the list of what lectures describe: each stands alone.
    """
    files = dict(given_files(page))
    times, address, alone = [], "http://127.0.0.1:8000", page == COVERAGE
    with contextlib.ExitStack() as servers:
        for command in RUN:
            if command.page != page:
                continue
            begun = time.monotonic()
            here = begin(folder / f"command-{len(times)}" if alone else folder, files)
            maker.make(here, " ".join([command.text, *(files[name] for name in files if name in command.text)]))
            text = shortened(command.text).replace(":8000", f":{address.rpartition(':')[2]}")
            if verb := next((verb for verb in ASKED if begins(text, verb)), ""):
                address = servers.enter_context(served(command, text, here, maker.variables))
                if address.startswith("http:"):
                    assert urlopen(address + ASKED[verb], timeout=60).status == 200, command
            else:
                run(command, text, here, maker.variables)
            times.append(f"{time.monotonic() - begun:6.1f} s  {command}")
    return times


def begin(folder: Path, files: Mapping[str, str]) -> Path:
    """Write what a reader has at first: the environment and the files that the page shows."""
    if not (folder / ".venv").exists():
        folder.mkdir(exist_ok=True)
        (folder / ".venv").symlink_to(sys.prefix)
        for name, content in files.items():
            (folder / name).write_text(content, encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES_RUN)
def test_every_command_of_a_page_runs(page, walks):
    print("\n".join(walks[page].result()))


def test_there_are_commands_to_run():
    assert len(RUN) > 180 and {"README.md", "docs/using.md", "docs/serving.md"} <= set(PAGES_RUN)


def test_every_command_that_is_not_run_stands_on_a_page():
    assert set(NOT_RUN) - {command.text for command in ALL} == set()
    there = [command.text for command in ALL if command.page == COVERAGE]
    assert [one for one in NOT_RUN_THERE if not any(re.fullmatch(one, text) for text in there)] == []


def test_every_shortening_is_of_a_command_that_is_run():
    texts = [*(command.text for command in RUN), *TRAINED.values()]
    assert [start for start in [*SETTINGS, *OPTIONS] if not any(begins(text, start) for text in texts)] == []


def test_every_file_and_run_is_named_by_a_command():
    texts = [*(command.text for command in ALL), *TRAINED.values()]
    texts += [content for page in PAGES for _, content in given_files(page)]
    assert [name for name in [*FILES, *RUNS] if not any(named(text, name) for text in texts)] == []


def test_every_target_that_is_not_run_is_in_the_makefile():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {text.split()[1] for text in NOT_RUN if text.startswith("make ")} <= targets


def test_no_target_is_run():
    """Folders of pages have no Makefile."""
    assert [command for command in RUN if command.text.startswith("make ")] == []


def test_blocks_of_bash_stand_in_tutorials():
    assert [page for page, text in PAGES.items() if "```bash" in text and "/tutorials/" not in page] == []
