import subprocess
import sys
from pathlib import Path

import pytest

from regardant.config import groups, header, library, purpose, recipe, recipes
from regardant.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ladder" / "recurrent").mkdir(parents=True)
    (tmp_path / "demo.yaml").write_text("# The demo.\n#\n#   regardant demo\n\n# not the header\nseed: 1\n")
    (tmp_path / "ladder" / "recurrent" / "gru.yaml").write_text("seed: 2\n")
    (tmp_path / "notes.txt").write_text("not a recipe")
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    return tmp_path


def test_recipes_are_named_by_their_place(folder: Path):
    gru = folder / "ladder" / "recurrent" / "gru.yaml"
    assert recipes() == {"demo": folder / "demo.yaml", "ladder/recurrent/gru": gru}


def test_a_recipe_is_read_by_name(folder: Path):
    assert recipe("ladder/recurrent/gru") == {"seed": 2}


def test_the_header_is_the_opening_comment_alone(folder: Path):
    assert header("demo") == "The demo.\n\n  regardant demo"
    assert header("ladder/recurrent/gru") == ""


def test_the_purpose_ends_where_the_command_begins(folder: Path):
    (folder / "x.yaml").write_text(
        "# One line\n# and another.\n# paper     P\n# command   regardant train x\n# More.\n"
    )
    assert purpose("x") == "One line and another."


def test_recipes_are_grouped_by_task_and_by_folder(folder: Path):
    (folder / "copy.yaml").write_text("task: translation\n")
    (folder / "demo.yaml").write_text("task: translation\n")
    (folder / "translation.yaml").write_text("task: translation\n")
    assert list(groups().items()) == [
        ("translation", ["translation", "copy", "demo"]),
        ("ladder/recurrent", ["ladder/recurrent/gru"]),
    ]


@pytest.mark.parametrize("read", [recipe, header])
def test_an_unknown_recipe_is_refused_with_the_nearest_name(folder: Path, read):
    with pytest.raises(
        ConfigError, match=r"^no recipe 'dmeo'; did you mean demo\? \(there are: demo, ladder/recurrent/gru\)$"
    ):
        read("dmeo")


def test_every_recipe_of_the_package_reads():
    assert all(isinstance(recipe(name), dict) for name in recipes())


def test_listing_recipes_does_not_import_torch():
    code = "import sys; from regardant.config import recipes; recipes(); print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
