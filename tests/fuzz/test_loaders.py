"""Changed files end in a value or in a line of the package: a few of each loader, and 10,000 in slow tests."""

from pathlib import Path

import pytest

from tests.fuzz.loaders import Loader, changed, fuzz, loaders, written_files

FEW, MANY = 40, 10_000
LOADERS = loaders()


@pytest.mark.parametrize("name", LOADERS)
def test_a_good_file_is_read(name, tmp_path):
    for number, content in enumerate(LOADERS[name].good):
        path = tmp_path / str(number) / LOADERS[name].name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        LOADERS[name].read(path)


@pytest.mark.parametrize("cases", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", LOADERS)
def test_changed_files_end_in_a_value_or_a_line(name, cases, tmp_path):
    assert fuzz(LOADERS[name], tmp_path, cases, seed=len(name)) == []


def test_what_goes_wrong_is_noticed(tmp_path):
    def read(path: Path) -> None:
        (tmp_path / "beside").write_text("a", encoding="utf-8")
        raise KeyError("x")

    wrong = fuzz(Loader("a.txt", read, [b"abc"]), tmp_path / "run", 1, seed=1)
    assert wrong[0].startswith("case 0: KeyError: 'x'") and wrong[1] == f"case 0: wrote {tmp_path / 'beside'}"


def test_reading_is_no_writing(tmp_path):
    (tmp_path / "a").write_text("a", encoding="utf-8")
    with written_files() as written:
        (tmp_path / "a").read_text(encoding="utf-8")
    assert written == []


def test_changes_differ():
    from random import Random

    random = Random(3)
    assert len({changed([b"the cat sees the dog"], random) for _ in range(200)}) > 150
