"""Files that are complete or absent."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from regardant.errors import RunError
from regardant.files import write_atomically


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_one_path_may_be_written_by_several_at_once(tmp_path):
    """As by two evaluations of one run."""
    with ThreadPoolExecutor(4) as writers:
        list(writers.map(lambda number: write_atomically(tmp_path / "a.json", str(number) * 9), [1, 2, 3, 4] * 50))
    assert (tmp_path / "a.json").read_text() in {str(number) * 9 for number in (1, 2, 3, 4)}
    assert files_in(tmp_path) == ["a.json"]


def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "new folder" / "run.yaml"
    write_atomically(path, "café")
    assert path.read_bytes() == "café".encode()
    with pytest.raises(TypeError):
        write_atomically(path, 3)
    write_atomically(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    assert files_in(path.parent) == ["run.yaml"]


def test_a_symbolic_link_stays_and_the_file_that_it_names_is_written(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.txt").write_text("old", encoding="utf-8")
    for name in ("a.txt", "b.txt"):  # b.txt is not there yet
        link = tmp_path / name
        link.symlink_to(tmp_path / "kept" / name)
        write_atomically(link, "new")
        assert link.is_symlink() and (tmp_path / "kept" / name).read_text(encoding="utf-8") == "new"
    assert files_in(tmp_path / "kept") == ["a.txt", "b.txt"]
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(RunError, match=r"cannot write .*loop"):
        write_atomically(tmp_path / "loop", "x")


@pytest.mark.parametrize("name", ["folder", "", ".", "link"])
def test_a_folder_is_not_written_to(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with pytest.raises(RunError) as refused:
        write_atomically(Path(name), "x")
    assert str(refused.value) == f"cannot write {name or '.'}, which is a folder: give the name of a file"
    assert files_in(tmp_path) == ["folder", "link"] and files_in(tmp_path / "folder") == []


def test_a_pipe_is_written_into_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as reader:
        read = reader.submit(pipe.read_bytes)
        write_atomically(pipe, "café")
        assert read.result(timeout=10) == "café".encode()
    assert pipe.is_fifo() and files_in(tmp_path) == ["pipe"]
