"""The lines of metrics.jsonl, read by doctor, resume and studio alike, whatever has happened to the file."""

import shutil

import pytest

import regardant
from regardant import run
from regardant.studio.catalogue import summary
from regardant.tasks.training_history import read_history
from regardant.training.events import named, parse_events, peak_bytes, read_events

EVENT = b'{"event": "train", "update": 10, "time": 1.5, "loss": 2.0, "progress": 0.5}'
ODD = {
    "a scalar": b"3",
    "a list": b"[1, 2]",
    "a text": b'"train"',
    "a line cut short": EVENT[:40],
    "no name": b'{"update": 10, "time": 1.5}',
    "a name that is no text": b'{"event": 3, "update": 10, "time": 1.5}',
    "no update": b'{"event": "train", "time": 1.5}',
    "no time": b'{"event": "train", "update": 10}',
    "an update that is no number": EVENT.replace(b"10", b'"10"'),
    "an update that is a fraction": EVENT.replace(b"10", b"10.5"),
    "an update that is true": EVENT.replace(b"10", b"true"),
    "a list in the place of a loss": EVENT.replace(b"2.0", b"[2.0]"),
    "a text in the place of a loss": EVENT.replace(b"2.0", b'"low"'),
    "a number without an end": EVENT.replace(b"2.0", b"9" * 400),
    "a number that Python refuses": EVENT.replace(b"2.0", b"9" * 5000),
    "bad UTF-8": EVENT.replace(b"loss", b"l\xffss"),
    "NULs": b"\0" * 100,
    "deep nesting": b"[" * 100_000,
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_line_is_skipped(name):
    assert [event["update"] for event in parse_events([EVENT, ODD[name], EVENT.replace(b"10", b"20")])] == [10, 20]


def test_numbers_that_json_does_not_have_are_null():
    (event,) = parse_events([EVENT.replace(b"2.0", b"NaN").replace(b"0.5", b"1e999")])
    assert event["loss"] is event["progress"] is None
    assert named([event], "train", "update") == [event] and not named([event], "train", "loss")


def test_every_tool_reads_a_damaged_file(tiny_run, tmp_path, configure):
    folder = tmp_path / "run"
    shutil.copytree(tiny_run, folder)
    path = folder / "metrics.jsonl"
    whole = read_events(path)
    odd, bare = b"\n".join((*ODD.values(), b"")), b'{"event": "train", "update": 1, "time": 2}\n'
    path.write_bytes(bare + odd + path.read_bytes() + odd[:20_000])
    assert regardant.load(folder).doctor().as_dict()["checked"]
    assert summary("run", folder)["update"] == 20
    assert read_history(folder, {"parameters": 1}, ["loss"]).validations
    run.train(configure("training.max_updates=30"), folder, lambda line: None)
    resumed = read_events(path)
    assert [event for event in resumed if event in whole] == whole
    assert len(path.read_bytes().splitlines()) == len(resumed)


def test_the_peak_is_that_which_is_logged_and_in_earlier_runs_the_most_between_updates():
    assert peak_bytes([{"memory_bytes": 3, "memory_peak_bytes": 5}, {"memory_bytes": 4}]) == 5
    assert peak_bytes([{"memory_bytes": 3}, {"memory_bytes": 4}]) == 4
