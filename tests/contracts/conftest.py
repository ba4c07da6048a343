"""The program as a user calls it, for tests of what it answers."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regardant import cli


@pytest.fixture
def answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    """What the program, started in `tmp_path`, leaves on stdout and stderr, and that it ends with `code`."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object, stdin: bytes = b"", code: int = 0) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["regardant", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        assert stopped.value.code == code, err
        return out, err

    return call


@pytest.fixture
def told(answer: Callable[..., tuple[str, str]]) -> Callable[..., list[str]]:
    """What the program says about a wrong input: the last lines of stderr, from `regardant:` or `Error:` on."""

    def call(*arguments: object, stdin: bytes = b"") -> list[str]:
        out, err = answer(*arguments, stdin=stdin, code=2)
        assert out == "", "a wrong input gives no result"
        lines = err.splitlines()
        start = [number for number, line in enumerate(lines) if line.startswith(("regardant:", "Error:"))]
        assert len(start) == 1, err
        return lines[start[0] :]

    return call
