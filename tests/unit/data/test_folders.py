"""Labelled files in folders and archives: their labels, their splits, and what is refused."""

import os
import zipfile
from itertools import chain
from pathlib import Path

import pytest

from regardant.data.folders import FoldersConfig
from regardant.data.item_files import content_key, read_item_file
from regardant.errors import ConfigError, DataError
from regardant.tasks import load_recipe


@pytest.fixture
def by_folder(tmp_path):
    """cat and dog with ten files each, and files that are no items."""
    for label in ("cat", "dog"):
        for number in range(10):
            written(tmp_path / "train" / label / f"{number}.txt", f"{label} {number}")
        written(tmp_path / "test" / label / "0.txt", f"{label} test")
    written(tmp_path / "README", "no item")
    written(tmp_path / "train" / "cat" / ".hidden", "no item")
    return tmp_path


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def archive(path, names):
    with zipfile.ZipFile(path, "w") as opened:
        for name in names:
            opened.writestr(name, f"content of {name}")
    return path


def contents(items):
    return sorted((read_item_file(file, "a file").decode(), label) for file, label in items)


def test_a_folder_is_a_label_and_a_part_is_validated_on(by_folder):
    sets = FoldersConfig(source=str(by_folder / "train")).read(1)
    assert {name: len(items) for name, items in sets.items()} == {"train": 18, "validation": 2}
    together = contents(sets["train"] + sets["validation"])
    assert together == sorted((f"{label} {number}", label) for label in ("cat", "dog") for number in range(10))
    assert FoldersConfig(source=str(by_folder / "train")).read(1) == sets
    assert FoldersConfig(source=str(by_folder / "train")).read(2) != sets


@pytest.mark.parametrize("packed", [False, True])
def test_files_of_one_content_stay_in_one_split(tmp_path, packed):
    names = [f"{label}/{number}.txt" for label in ("cat", "dog") for number in range(40)]
    for number, name in enumerate(names):
        written(tmp_path / "a" / name, f"content {number % 10}")
    source = tmp_path / "a"
    if packed:
        source = tmp_path / "a.zip"
        with zipfile.ZipFile(source, "w") as opened:
            for name in names:
                opened.write(tmp_path / "a" / name, name)
    for seed in range(5):
        sets = FoldersConfig(source=str(source), validation_share=0.3).read(seed)
        train, validation = ({text for text, _ in contents(sets[name])} for name in ("train", "validation"))
        assert (len(train), len(validation)) == (7, 3) and not train & validation


def test_files_of_one_content_alone_are_one_line(tmp_path):
    for number in range(20):
        written(tmp_path / "cat" / f"{number}.txt", "the same")
    with pytest.raises(DataError, match="20 items are too few to split, or all equal: give more"):
        FoldersConfig(source=str(tmp_path)).read(1)


def test_a_file_that_cannot_be_read_is_split_off_as_others_are(by_folder):
    broken = by_folder / "train" / "cat" / "broken.txt"
    broken.symlink_to(by_folder / "missing")
    assert content_key(broken) == str(broken)


def test_patterns_choose_the_files_to_test_and_to_validate_on(by_folder):
    data = FoldersConfig(source=".", root=str(by_folder), test="test/.*", validation=r"train/.*/[0-2]\.txt")
    sets = data.read(1)
    assert contents(sets["test"]) == [("cat test", "cat"), ("dog test", "dog")]
    assert {name: len(items) for name, items in sets.items()} == {"train": 14, "validation": 6, "test": 2}
    assert all(file.name in ("0.txt", "1.txt", "2.txt") for file, _ in sets["validation"])


def chosen(source):
    """Return the sizes of the splits by folder, the labels and the lines that are logged."""
    lines = []
    sets = FoldersConfig(source=str(source)).chosen(lines.append).read(1)
    labels = {label for _, label in chain.from_iterable(sets.values())}
    return {name: len(items) for name, items in sets.items()}, labels, [line.partition(": ")[2] for line in lines]


@pytest.mark.parametrize("inside", ["", "images/"])
def test_a_file_beside_the_folders_of_labels_changes_no_split(by_folder, inside):
    strays = [written(by_folder / name, "a,b") for name in ("train/labels.csv", "test/1.txt", "other/a.txt")]
    if inside:
        strays.pop().unlink()
        files = sorted(path for path in by_folder.rglob("*.*") if path.is_file())
        source = archive(by_folder / "a.zip", [inside + path.relative_to(by_folder).as_posix() for path in files])
    else:
        source = by_folder
    sizes, labels, lines = chosen(source)
    other = set() if inside else {"other"}
    assert (sizes, labels) == ({"train": 18 + len(other), "validation": 2, "test": 2}, {"cat", "dog"} | other)
    assert lines == [
        f"files directly in a folder of a split have no label and are left out: 2, such as {inside}test/1.txt",
        "splits by folder, test, train",
    ]


def test_files_without_a_label_in_test_are_no_class(tmp_path):
    """As in competitions, whose test labels are not published."""
    for number in range(10):
        written(tmp_path / "train" / ("cat", "dog")[number % 2] / f"{number}.txt", str(number))
        written(tmp_path / "test" / f"{number}.txt", "a")
    sizes, labels, lines = chosen(tmp_path)
    assert (sizes, labels) == ({"train": 9, "validation": 1}, {"cat", "dog"})
    assert lines[0].endswith("have no label and are left out: 10, such as test/0.txt")
    assert len(FoldersConfig(source="nowhere").given(tmp_path)) == 10


def test_folders_of_splits_beside_other_folders_of_labels_are_logged(by_folder):
    for name in ("more", "extra"):
        written(by_folder / name / "cat" / "a.txt", "a")
    sizes, _, lines = chosen(by_folder)
    assert sizes == {"train": 22, "validation": 2}
    assert lines == [
        "no splits by folder (test, train), because extra, more beside them also have folders of labels: move these "
        "out, or set data.test and data.validation"
    ]


@pytest.mark.parametrize("inside", ["", "recordings/deep/"])
@pytest.mark.parametrize("packed", [True, False])
def test_labels_are_parts_of_names(tmp_path, inside, packed):
    names = [f"{inside}{digit}_{speaker}_{index}.wav" for digit in "07" for speaker in "ab" for index in range(4)]
    others = ["notes.txt", "__MACOSX/0_a_0.wav", ".0_a_0.wav"]
    if packed:
        source = archive(tmp_path / "a.zip", [*names, *others])
    else:
        source = tmp_path / "files"
        for name in [*names, *others]:
            written(source / name, f"content of {name}")
    sets = FoldersConfig(source=str(source), label=r"(\d)_.*", test=r".*_[01]\.wav").read(1)
    assert len(sets["test"]) == 8 and len(sets["train"] + sets["validation"]) == 8
    for file, label in chain.from_iterable(sets.values()):
        assert file.name.startswith(label) and label in "07"
        assert read_item_file(file, "a file").decode() == f"content of {inside}{file.name}"


def test_files_of_a_command_line_are_labelled_as_those_of_the_recipe(tmp_path, by_folder):
    found = FoldersConfig(source="nowhere", root="${NOT_SET}", label=r"(\d)_.*", test=".*").given(
        archive(tmp_path / "a.zip", ["1_a.wav", "2_a.wav"])
    )
    assert [label for _, label in found] == ["1", "2"]
    assert len(FoldersConfig(source="nowhere").given(by_folder / "test")) == 2


def test_files_to_test_on_are_given_alone_where_there_are_any(by_folder):
    data = FoldersConfig(source="nowhere", test="test/.*", validation=r"train/.*/0\.txt")
    tests = [("cat test", "cat"), ("dog test", "dog")]
    assert contents(data.given(by_folder)) == tests
    assert len(data.given(by_folder / "train")) == 20  # none of these is below test
    assert contents(FoldersConfig(source=str(by_folder)).chosen(lambda line: None).given(by_folder)) == tests


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": "(a"}, r"data\.label: .*is not a regular expression: missing \)"),
        ({"label": "a"}, r"data\.label: .*needs one pair of parentheses, around the label"),
        ({"label": "(a)(b)"}, r"data\.label: .*needs one pair of parentheses"),
        ({"test": "*"}, r"data\.test: .*is not a regular expression: nothing to repeat"),
    ],
)
def test_patterns_that_are_none_are_refused(fields, message):
    data = {"kind": "folders", "source": "a", **fields}
    with pytest.raises(ConfigError, match=message):
        load_recipe({"task": "classification", "data": data, "training": {"max_updates": 1}})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source": "nowhere"}, r"there is no folder or archive .*nowhere; "),
        ({"source": "README"}, r"README is neither a folder nor a \.zip archive \(File is not a zip file\): give one$"),
        ({"source": "empty"}, r"empty has 0 files, none in a folder, whose name is the label: correct data\.source"),
        ({"label": r"(\d+)_.*"}, r"has 23 files \(the first is README\), none that matches \(\\d\+\)_\.\*: correct"),
        ({"test": "tset/.*"}, r"^data\.test: no labelled file of \. matches tset/\.\*: correct the pattern$"),
        ({"validation": "valid/.*"}, r"^data\.validation: no labelled file of \. matches valid/\.\*: correct"),
        ({"test": ".*"}, r"leaves no files to train on: correct data\.validation or data\.test$"),
    ],
)
def test_a_source_that_cannot_be_right_is_one_line(by_folder, fields, message):
    (by_folder / "empty").mkdir()
    with pytest.raises(DataError, match=message) as refusal:
        FoldersConfig(**{"source": ".", "root": str(by_folder), **fields}).read(1)
    assert "\n" not in str(refusal.value)


def test_a_label_that_is_not_utf8_is_one_line(by_folder):
    folder = os.fsencode(by_folder / "train") + b"/caf\xe9"
    os.mkdir(folder)
    with open(folder + b"/1.txt", "w") as file:
        file.write("a")
    with pytest.raises(DataError, match=r"^train/caf\ufffd/1\.txt: the label is not UTF-8: rename the"):
        FoldersConfig(source=str(by_folder)).read(1)


def test_a_damaged_archive_is_one_line_with_the_name_of_the_file(tmp_path):
    path = archive(tmp_path / "a.zip", ["cat/a.txt"])
    raw = bytearray(path.read_bytes())
    at = raw.index(b"content of")
    raw[at : at + 7] = b"CONTENT"
    path.write_bytes(raw)
    ((file, _),) = FoldersConfig(source=str(path)).given(path)
    with pytest.raises(DataError, match=r"a\.zip/cat/a\.txt cannot be read \(Bad CRC-32 .*\): give a file, or"):
        read_item_file(file, "a file")
