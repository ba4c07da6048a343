"""Random recipes, files and metrics end in a configuration, in records, or in a line; never in a traceback.

What broke once is kept in `corpus/` by the reader that it is for, and is read first. Add a file for each new find.
"""

import contextlib
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regardant.config import read_yaml
from regardant.config.documents import parse
from regardant.data.labelled_graphs import read_graphs
from regardant.data.tables import is_table_file, read_columns
from regardant.data.text_files import read_lines, read_text
from regardant.errors import DataError, RegardantError
from regardant.tasks import load_recipe
from regardant.training.events import parse_events, read_events

CORPUS = Path(__file__).parent / "corpus"
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

WORDS = st.sampled_from(
    [
        "task",
        "translation",
        "classification",
        "model",
        "kind",
        "preset",
        "training",
        "data",
        "d_model",
        "encoder",
        "tiny",
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS
DOCUMENTS = st.dictionaries(
    WORDS | st.text(max_size=4),
    st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4)),
    max_size=5,
)


def kept(name):
    found = sorted((CORPUS / name).iterdir())
    assert found
    return pytest.mark.parametrize("path", found, ids=lambda path: path.name)


def ends_well(read, *arguments):
    """Read, and accept a line that refuses it."""
    try:
        read(*arguments)
    except RegardantError as error:
        assert str(error) and "Traceback" not in str(error)


def read_all(path):
    columns = list(read_columns(path, ["text", "label"])) if is_table_file(path) else []
    return columns, list(read_lines(path)), list(read_text(path))


@kept("recipes")
def test_a_recipe_that_broke_once_is_a_line(path):
    with pytest.raises(RegardantError):
        load_recipe(read_yaml(path), origin=path.name)


@kept("lines")
def test_a_file_that_broke_once_is_read_or_is_a_line(path):
    ends_well(read_all, path)


@kept("graphs")
def test_graphs_that_broke_once_are_a_line(path):
    with pytest.raises(DataError, match=path.name):
        list(read_graphs(path))


@kept("events")
def test_metrics_that_broke_once_are_skipped(path):
    assert read_events(path) == []


@QUICK
@given(document=DOCUMENTS)
def test_any_document_is_a_recipe_or_a_line(document):
    ends_well(load_recipe, document)


@QUICK
@given(value=st.text(st.characters(codec="utf-8"), max_size=30), key=WORDS, other=WORDS)
def test_any_override_is_a_recipe_or_a_line(value, key, other):
    ends_well(load_recipe, {"task": "translation"}, [f"{key}.{other}={value}", f"{key}={value}", value])


@QUICK
@given(text=st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")))
def test_any_text_is_a_value_or_a_yaml_error(text):
    with contextlib.suppress(yaml.YAMLError):
        parse(text)


@QUICK
@given(content=st.binary(max_size=200), suffix=st.sampled_from([".txt", ".tsv", ".csv", ".jsonl", ".gz", ".parquet"]))
def test_any_bytes_are_lines_or_a_line(tmp_path, content, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    ends_well(read_all, path)


@QUICK
@given(
    event=st.dictionaries(
        st.sampled_from(["event", "update", "time", "loss", "progress"]),
        SCALARS | st.sampled_from(["train", "validation"]) | st.lists(st.integers(), max_size=2),
    )
)
def test_any_line_of_metrics_is_an_event_or_nothing(event):
    for one in parse_events([json.dumps(event).encode()]):
        assert isinstance(one["update"], int) and abs(one["time"]) < 2**63
