"""Sections of several kinds, which anyone can add to."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import pytest

from regardant.config import Config, Variants, load
from regardant.config.plugins import import_plugins, modules_of
from regardant.config.schema import describe
from regardant.errors import ConfigError


class Shape(Variants):
    """Base."""


class Circle(Shape):
    kind: Literal["circle"] = "circle"
    radius: float = 1.0


class Square(Shape):
    kind: Literal["square"] = "square"
    side: float = 2.0


class WithDefault(Variants):
    default_kind: ClassVar[str] = "plain"


class Plain(WithDefault):
    kind: Literal["plain"] = "plain"
    size: int = 1


class Fancy(WithDefault):
    kind: Literal["fancy"] = "fancy"
    size: int = 2


class Drawing(Config):
    shape: Shape = Circle()
    """What is drawn."""
    frame: WithDefault = Plain()
    """Around it."""


def test_a_kind_selects_its_class():
    assert load(Drawing, {"shape": {"kind": "square", "side": 3}}).shape == Square(side=3)
    assert load(Drawing, {}).shape == Circle()
    assert load(Drawing, {}, ["shape.kind=square", "shape.side=4"]).shape == Square(side=4)


def test_what_names_no_kind_is_of_the_default_one_where_there_is_one():
    assert load(Drawing, {"frame": {"size": 5}}).frame == Plain(size=5)
    assert load(Drawing, {"frame": {"kind": "fancy"}}).frame == Fancy()
    with pytest.raises(ConfigError, match=r"shape.kind: missing; allowed: circle, square"):
        load(Drawing, {"shape": {"side": 3}})


def test_another_kind_drops_what_the_default_kind_was_given():
    assert load(Drawing, {"frame": {"size": 5}}, ["frame.kind=fancy"]).frame == Fancy()
    assert load(Drawing, {"frame": {"size": 5}}, ["frame.kind=plain"]).frame == Plain(size=5)
    assert load(Drawing, {"frame": {"size": 5}}, ["frame.size=7"]).frame == Plain(size=7)


def test_a_kind_that_is_not_there_gets_a_suggestion():
    with pytest.raises(
        ConfigError, match=r"shape.kind: given 'squire'; allowed: circle, square; did you mean square\?"
    ):
        load(Drawing, {"shape": {"kind": "squire"}})
    with pytest.raises(ConfigError, match=r"shape.sid: unknown key; did you mean side\? \(allowed: kind, side\)"):
        load(Drawing, {"shape": {"kind": "square", "sid": 1}})


class Ink(Variants):
    default_kind: ClassVar[str] = "black"


class Black(Ink):
    kind: Literal["black"] = "black"
    depth: int = 1


class Letter(Config):
    ink: Ink = Black()


@pytest.mark.parametrize("document", [{"ink": {"dept": 1}}, {"ink": {"kind": "black", "dept": 1}}])
def test_a_problem_in_a_section_of_one_kind_is_told_by_the_path_of_the_file(document):
    with pytest.raises(ConfigError, match=r": ink.dept: unknown key; did you mean depth\? \(allowed: kind, depth\)$"):
        load(Letter, document)
    with pytest.raises(ConfigError, match=r": ink.depth: given 'x'; must be a valid integer"):
        load(Letter, {"ink": {"depth": "x"}})


def test_what_was_written_is_read_again():
    drawing = load(Drawing, {"shape": {"kind": "square", "side": 3}})
    assert load(Drawing, drawing.model_dump(mode="json")) == drawing


def test_a_kind_that_comes_late_is_known_everywhere():
    class Triangle(Shape):
        kind: Literal["triangle"] = "triangle"

    assert load(Drawing, {"shape": {"kind": "triangle"}}).shape == Triangle()
    assert any(row.type == "circle | square | triangle" for row in describe(Drawing))


def test_two_of_one_kind_are_refused():
    with pytest.raises(TypeError, match="kind 'circle' is taken by Circle"):

        class Again(Shape):
            kind: Literal["circle"] = "circle"


def test_modules_of_a_configuration_are_those_of_its_parts_outside_the_package(monkeypatch):
    class Album(Config):
        first: Shape = Circle()
        others: Mapping[str, Shape] = {}

    monkeypatch.setattr(Album, "__module__", "regardant.album")
    monkeypatch.setattr(Circle, "__module__", "regardant.circles")
    assert modules_of(Album()) == []
    assert modules_of(Album(others={"a": Square(side=1)})) == [Square.__module__]
    assert modules_of(Album(first=Square(side=1))) == [Square.__module__]


def test_a_plugin_is_a_module_in_reach(tmp_path, monkeypatch):
    (tmp_path / "own_kinds.py").write_text("LOADED = True\n")
    (tmp_path / "broken_kinds.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    import_plugins(["own_kinds"])
    with pytest.raises(ConfigError, match="plugin nowhere_kinds cannot be imported"):
        import_plugins(["nowhere_kinds"])
    with pytest.raises(ConfigError, match=r"plugin broken_kinds cannot be imported \(ZeroDivisionError"):
        import_plugins(["broken_kinds"])
