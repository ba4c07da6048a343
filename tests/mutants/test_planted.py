"""Every planted bug still fits the package. `make mutants` plants them and runs the tests that have to fail."""

import ast
import shutil
from collections import Counter

import pytest

from .planted import PACKAGE, Mutant, read_mutants, read_sources

MUTANTS = read_mutants()
SOURCES = read_sources(PACKAGE)
ROOMS = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}


def test_there_are_sixty_of_rooms_that_exist_and_no_two_are_equal():
    assert len(MUTANTS) >= 60
    assert {mutant.room for mutant in MUTANTS} <= ROOMS
    assert [change for change, count in Counter((m.old, m.new) for m in MUTANTS).items() if count > 1] == []


def test_every_bug_can_be_planted_in_its_room_and_its_test_exists():
    problems = [f"{mutant.room}: {mutant.bug} {problem}" for mutant in MUTANTS if (problem := problem_of(mutant))]
    assert not problems, "\n".join(problems)


def problem_of(mutant):
    """Return why the bug cannot be planted, or an empty text."""
    files = mutant.files(SOURCES)
    if len(files) != 1:
        return f"the text to replace occurs {len(files)} times"
    (path,) = files
    try:
        changed = ast.parse(SOURCES[path].replace(mutant.old, mutant.new))
        _ = mutant.node
    except (SyntaxError, ValueError) as error:
        return str(error)
    if path.relative_to(PACKAGE).parts[0].removesuffix(".py") != mutant.room:
        return f"{path} is in another room"
    return "" if ast.dump(changed) != ast.dump(ast.parse(SOURCES[path])) else "the change changes nothing"


def test_a_bug_is_planted_in_the_copy_only(tmp_path):
    mutant, package = MUTANTS[0], tmp_path / "regardant"
    shutil.copytree(PACKAGE, package)
    changed = mutant.plant(package)
    assert mutant.new in changed.read_text("utf-8") and mutant.files(read_sources(package)) == []
    assert len(mutant.files(read_sources(PACKAGE))) == 1
    with pytest.raises(ValueError, match="occurs 0 times"):
        mutant.plant(package)


def test_a_text_that_occurs_twice_is_refused(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n", "utf-8")
    with pytest.raises(ValueError, match="occurs 2 times"):
        Mutant("none", "", "x = 1", "x = 2", "").plant(tmp_path)


def test_a_test_that_no_file_defines_is_refused():
    with pytest.raises(ValueError, match="0 test files define test_nothing"):
        _ = Mutant("none", "", "", "", "test_nothing[one]").node
