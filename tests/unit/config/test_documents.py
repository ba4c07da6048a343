import math
from pathlib import Path
from typing import Annotated, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from regardant.config import Config, dump, load, read_yaml
from regardant.config.documents import parse
from regardant.errors import ConfigError


class Left(Config):
    kind: Literal["left"] = "left"
    text: str = ""
    rate: float | None = None


class Right(Config):
    kind: Literal["right"] = "right"
    counts: tuple[int, ...] = ()


class Both(Config):
    side: Annotated[Left | Right, Field(discriminator="kind")] = Left()
    folder: Path = Path("runs")
    by_name: dict[str, float] = Field({})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1E5", 1e5),
        ("-.5", -0.5),
        ("3.", 3.0),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("010", 10),
        ("0x1F", 31),
        ("0o17", 15),
        ("-7", -7),
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("2020-01-01", "2020-01-01"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("[1, 2.5, no]", [1, 2.5, "no"]),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object):
    assert parse(text) == value
    assert type(parse(text)) is type(value)


texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(["no", "1e-4", "0o7", "null", "", " ", "1"])
floats = st.floats(allow_nan=False)
configs = st.builds(
    Both,
    side=st.builds(Left, text=texts, rate=st.none() | floats)
    | st.builds(Right, counts=st.lists(st.integers()).map(tuple)),
    by_name=st.dictionaries(texts, floats, max_size=3),
)


@given(configs)
def test_what_is_dumped_loads_back_equal(config: Both):
    assert load(Both, parse(dump(config))) == config


@given(texts)
def test_other_yaml_readers_find_the_same_strings(text: str):
    assert yaml.safe_load(dump(Left(text=text)))["text"] == text


def test_a_dump_holds_every_field_in_order():
    assert dump(Both()) == "side:\n  kind: left\n  text: ''\n  rate: null\nfolder: runs\nby_name: {}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: [1, 2\nc: 3\n", "line 3, column 2: not YAML: expected ',' or ']', but got ':'"),
        (b"a: 1\n\tb: 2\n", "line 2, column 1: not YAML: found character '\\t' that cannot start any token"),
        (b"a: {b: 1, b: 2}\n", "line 1, column 11: not YAML: key b given twice"),
        (b"a: !!python/object:os.system x\n", "line 1, column 4: not YAML: could not determine a constructor"),
        (b"a: !!int x\n", ": not YAML: a tag (!!) does not fit its value (invalid literal for int()"),
        (b"a: !!bool x\n", ": not YAML: a tag (!!) does not fit its value ('x')"),
        (b"a: !!timestamp x\n", ": not YAML: a tag (!!) does not fit its value"),
        (b"a: " + b"[" * 3000, "column 53: not YAML: more than 50 levels of lists or mappings"),
        (b"a: " + b"{a: " * 3000, "not YAML: more than 50 levels of lists or mappings"),
        (b"a: " + b"x" * (1 << 20), ": not YAML: more than 1,048,576 characters, which no recipe has"),
        (b"? [1]\n: 2\n", "line 1, column 3: not YAML: found unhashable key"),
        (b"- 1\n- 2\n", ": holds list; must be a mapping, as in 'seed: 1'"),
        (b"# nothing\n", ": holds NoneType; must be a mapping"),
        (b"a: \xff\n", ": not UTF-8 text"),
        (b"a: \x00\n", ": not YAML: unacceptable character"),
    ],
)
def test_a_bad_file_is_refused_in_one_line(tmp_path: Path, content: bytes, message: str):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_yaml(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused_in_one_line(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"none\.yaml: No such file or directory; give the path of a YAML file$"):
        read_yaml(tmp_path / "none.yaml")


def test_a_file_is_read(tmp_path: Path):
    path = tmp_path / "good.yaml"
    path.write_text("language: no\nnames: {é: 1e-4}\n", encoding="utf-8")
    assert read_yaml(path) == {"language": "no", "names": {"é": 1e-4}}
