"""Events are read as they are written: whole lines, each once, and all of them where a file is written anew."""

import json
import os

import pytest

from regardant.studio.curves import events_after
from regardant.training.events import LAST_EVENTS, last_events, read_events


def line(update, event="train"):
    return json.dumps({"event": event, "update": update, "time": 1.0, "loss": 2.0}) + "\n"


def numbers(told):
    return [event["update"] for event in told["events"]]


def test_each_event_comes_once_and_a_half_written_one_later(tmp_path):
    path = tmp_path / "metrics.jsonl"
    whole, half = line(10) + line(20), line(30)
    path.write_text(whole + half[:9])
    first = events_after(path, 0, "")
    assert numbers(first) == [10, 20] and first["anew"]
    with path.open("a") as file:
        file.write(half[9:])
    second = events_after(path, first["after"], first["file"])
    assert numbers(second) == [30] and not second["anew"]
    assert numbers(events_after(path, second["after"], second["file"])) == []


def test_a_file_written_anew_is_read_from_its_start(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(10) + line(20) + line(30))
    first = events_after(path, 0, "")
    other = tmp_path / "other"
    other.write_text(line(10) + line(20) + line(25) + line(26))
    os.replace(other, path)
    again = events_after(path, first["after"], first["file"])
    assert numbers(again) == [10, 20, 25, 26] and again["anew"]


def test_a_run_that_has_not_begun_has_no_events(tmp_path):
    assert events_after(tmp_path / "metrics.jsonl", 7, "8")["events"] == []
    assert last_events(tmp_path / "metrics.jsonl") == {}


def test_the_last_events_are_found_in_a_long_file(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(line(number) for number in range(LAST_EVENTS // 20)) + line(7, "validation") + "{cut")
    assert last_events(path)["validation"]["update"] == 7
    assert last_events(path)["train"]["update"] == LAST_EVENTS // 20 - 1


def test_the_last_validation_is_found_however_far_it_is_from_the_end(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(line(3, "validation") + line(7, "validation") + line(8) * (9 * LAST_EVENTS // len(line(8))))
    assert last_events(path)["validation"]["update"] == 7 and last_events(path)["train"]["update"] == 8


def test_a_run_is_listed_with_what_it_has_come_to(studio, trained):
    client, name = studio
    (run,) = client.get("/api/runs").json()
    assert (run["run"], run["update"], run["progress"], run["trained"]) == (name, 300, 1.0, True)
    events = read_events(trained().folder / "metrics.jsonl")
    assert run["best"] == min(event["loss"] for event in events if event["event"] == "validation")
    assert client.get("/api/events", params={"run": name}).json()["events"] == events
    assert run["parameters"] == pytest.approx(sum(p.numel() for p in trained().translator.model.parameters()))
