"""Input without an end, and streams that are closed: one line before any work, or a note and a result."""

import gzip
import io
import subprocess
import sys

import pytest

from regardant import cli
from regardant.cli import lines
from regardant.data.text_files import LONGEST_LINE, read_lines, read_text, require_file
from regardant.errors import DataError

pytestmark = pytest.mark.usefixtures("shapes_unchecked")


def test_a_line_of_a_million_characters_is_cut_with_a_note_before_the_work(answer, trained, monkeypatch):
    run, said = trained(), []
    monkeypatch.setattr("regardant.cli.answering.log", said.append)

    def translate(self, batch, **options):
        assert said == [f"line 2: has 1,000,000 characters: the first {LONGEST_LINE:,} are translated"]
        assert [len(line) for line in batch] == [7, LONGEST_LINE]
        return []

    monkeypatch.setattr("regardant.run.Run.translate", translate)
    answer("translate", run.folder, stdin=b"the cat\n" + b"the cat " * 125_000 + b"\n")
    assert len(said) == 1


def test_the_same_in_python_has_the_note(trained):
    codec = trained().translator.codec
    parts, notes = codec.parts("x" * (LONGEST_LINE + 1), 48)
    assert parts and notes[0] == f"has {LONGEST_LINE + 1:,} characters: the first {LONGEST_LINE:,} are translated"


def test_a_long_line_to_evaluate_on_is_refused(told, trained, tmp_path):
    (tmp_path / "x.en").write_text("a\n" + "b " * 500_000 + "\n", encoding="utf-8")
    (tmp_path / "x.fr").write_text("a\nb\n", encoding="utf-8")
    (line,) = told("evaluate", trained().folder, "--data", "x.en", "--data", "x.fr")
    assert "line 2 has 1,000,000 characters" in line and "split the line" in line


def test_lines_with_carriage_returns_alone_are_refused(told, trained):
    (line,) = told("translate", trained().folder, stdin=b"the cat\rthe dog\rthe cat")
    assert "stdin has carriage returns and no line feed" in line


def test_a_line_without_an_end_is_refused(monkeypatch):
    monkeypatch.setattr(lines, "MOST_BYTES", 8)
    with pytest.raises(DataError, match="stdin line 2 is longer than 8 bytes"):
        list(lines.read_lines(io.BytesIO(b"12345678"[:7] + b"\n" + b"123456789")))


@pytest.mark.parametrize("verb", ["translate", "predict"])
def test_a_closed_stdin_is_one_line(trained, monkeypatch, capsys, verb):
    monkeypatch.setattr(sys, "argv", ["regardant", verb, str(trained().folder)])
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 2
    assert capsys.readouterr().err == (
        "regardant: stdin is closed, and no text was given: give a text, or redirect a file with < FILE\n"
    )


CLOSED = {
    "stdout": (">&-", 2, "regardant: stdout is closed: redirect it to a file, or to /dev/null\n"),
    "stderr": ("2>&-", 0, ""),
    "all": ("<&- >&- 2>&-", 2, ""),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_streams_end_in_no_traceback(name):
    closing, code, said = CLOSED[name]
    found = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m regardant recipes demo {closing}"], capture_output=True, text=True
    )
    assert (found.returncode, found.stderr) == (code, said)


def test_a_file_that_was_given_is_not_proposed(tmp_path):
    (tmp_path / "a.txt").symlink_to(tmp_path / "gone")
    with pytest.raises(DataError, match=r"there is no file .*a\.txt; nothing in .* has a name like it"):
        require_file(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("path", "told"),
    [("/dev/null", "/dev/null is a device or a pipe"), ("a\0b", r"the path 'a\\x00b' contains a NUL")],
)
def test_what_is_no_file_is_one_line(path, told):
    from pathlib import Path

    with pytest.raises(DataError, match=told):
        require_file(Path(path))


def test_a_gzip_file_with_other_bytes_at_its_end_is_refused(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a b\n") + b"other")
    for reader in (read_lines, read_text):
        with pytest.raises(DataError, match=r"a\.txt\.gz cannot be read: .*; is it whole"):
            list(reader(tmp_path / "a.txt.gz"))


def test_time_is_read_from_clocks_that_nobody_sets():
    """A clock that is set back or forth changes no budget, schedule or checkpoint."""
    from tests.architecture.test_size import PACKAGE

    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "time.time(" not in text and "datetime.now(" not in text, path
