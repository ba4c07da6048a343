"""What an audit found at commit 23efb56: each test here fails there (`python -m tests.findings 23efb56`).

Findings by number and severity: `docs/reliability.md` has the table.
"""

import gzip
import http.client
import json
import os
import re
import shutil
import signal
import struct
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.findings.program import (
    LOOPBACK,
    SMALL,
    edited,
    family,
    listening,
    port_of,
    running,
    sets,
    told,
    until,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A translator of digits."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    done = told("train", "copy", "--out", folder, *sets(*SMALL))
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def run(trained, tmp_path):
    """A copy of it."""
    return shutil.copytree(trained, tmp_path / "run")


def has_update(folder):
    return (folder / "metrics.jsonl").is_file() and (folder / "metrics.jsonl").stat().st_size > 0


LONG = sets(*SMALL, "training.max_updates=1000000", "training.batch_tokens=256")


def test_1_processes_listen_on_loopback_alone(tmp_path):
    with running("train", "copy", "--out", tmp_path / "run", *LONG, "--set", "training.processes=2") as leader:
        until(lambda: has_update(tmp_path / "run"))
        assert listening(family(leader.pid)) <= LOOPBACK


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "nul"])
def test_2_text_that_is_no_utf8_is_refused(tmp_path, encoding):
    text = "the old cat sees the dog .\n" * 400
    content = text.replace("cat", "c\0t").encode() if encoding == "nul" else text.encode(encoding)
    (tmp_path / "a.txt").write_bytes(content)
    small = ("model.d_model=16", "model.num_heads=2", "model.num_layers=1", "training.max_updates=3")
    given = (f"data.source={tmp_path / 'a.txt'}", "training.max_minutes=null", *small)
    done = told("train", "language_modelling", "--out", tmp_path / "run", *sets(*given))
    assert done.is_one_line and ("NUL" if encoding == "nul" else "iconv") in done.err


def test_3_a_second_training_leaves_the_first_one_s_data_alone(tmp_path):
    folder = tmp_path / "run"
    with running("train", "copy", "--out", folder, *LONG) as first:
        until(lambda: (folder / "data").is_dir())
        first.send_signal(signal.SIGSTOP)
        before = sorted(path for path in folder.rglob("*") if path.suffix != ".part")
        second = told("train", "copy", "--out", folder, *LONG, seconds=60)
        assert second.is_one_line and str(first.pid) in second.err
        assert sorted(path for path in folder.rglob("*") if path.suffix != ".part") == before


def zeroed(run):
    path = run / "model.safetensors"
    save_file({name: torch.zeros_like(one) for name, one in load_file(path).items()}, path, header(path))


def halved(run):
    path = run / "model.safetensors"
    save_file({name: one.half() for name, one in load_file(path).items()}, path, header(path))


def header(path):
    (length,) = struct.unpack("<Q", path.read_bytes()[:8])
    return json.loads(path.read_bytes()[8 : 8 + length]).get("__metadata__")


def tokenizer(change):
    return lambda run: edited(run / "tokenizer.json", lambda content: change(content["source"]))


def replaced_in(name, old, new):
    def damage(run):
        text = (run / name).read_text(encoding="utf-8")
        found = re.sub(old, new, text, flags=re.MULTILINE)
        assert found != text
        (run / name).write_text(found, encoding="utf-8")

    return damage


SILENT = {
    "weights of zero": ("model.safetensors", zeroed),
    "another type": ("model.safetensors", halved),
    "another vocabulary": ("tokenizer.json", tokenizer(lambda one: swap(one["model"]["vocab"]))),
    "no normaliser": ("tokenizer.json", tokenizer(lambda one: one.update(normalizer=None))),
    "other heads": ("run.yaml", replaced_in("run.yaml", r"^( +)num_heads: 2$", r"\1num_heads: 4")),
}


def swap(vocabulary):
    """Give two words the ids of each other."""
    first, second = sorted(vocabulary, key=vocabulary.get)[-2:]
    vocabulary[first], vocabulary[second] = vocabulary[second], vocabulary[first]


@pytest.mark.parametrize("name", SILENT)
def test_4_damage_that_can_be_read_is_refused_by_the_file_s_name(run, name):
    file, damage = SILENT[name]
    damage(run)
    done = told("translate", run, "3 1 4")
    assert done.is_one_line and file in done.err


def test_5_a_long_line_is_told_before_the_work(run):
    (run.parent / "long").write_bytes(b"3 1 4 " * 170_000 + b"\n")
    began = time.monotonic()
    done = told("translate", run, stdin=(run.parent / "long").read_bytes(), seconds=60)
    assert "characters" in done.err and time.monotonic() - began < 90


def test_5_a_long_line_is_not_evaluated(run):
    for name in ("x.en", "x.fr"):
        (run.parent / name).write_bytes(b"3 1 4 " * 170_000 + b"\n")
    data = ("--data", run.parent / "x.en", "--data", run.parent / "x.fr")
    assert told("evaluate", run, *data, seconds=60).is_one_line


def asked(port, method, path, body=None, seconds=20):
    """Status and text of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)) as connection:
        connection.request(method, path, body, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@pytest.fixture
def studio(run):
    """The port of a studio over the run, and its process."""
    with running("studio", run, "--port", 0) as process:
        yield port_of(process), process, run


def look(run, **fields):
    return json.dumps({"run": str(run), "text": "3 1 4", **fields})


def test_6_a_studio_refuses_before_the_work(studio):
    port, _, run = studio
    asked(port, "POST", "/api/look", look(run))
    began = time.monotonic()
    many = [{"attention": "encoder", "head": 0}] * 100_000
    assert asked(port, "POST", "/api/look", look(run, off=many))[0] == 422
    assert "1000" in asked(port, "POST", "/api/look", look(run, off=many))[1]
    assert time.monotonic() - began < 10


def test_6_a_studio_refuses_a_large_body_unread(studio):
    port, process, _ = studio
    before = resident(process.pid)
    try:
        status, _ = asked(port, "POST", "/api/look", b"x" * 100_000_000)
    except ConnectionError:  # it stopped reading
        status = 413
    assert status == 413 and resident(process.pid) - before < 0.05


def resident(process):
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 2**20


ODD = ["3", "[1, 2]", '{"event": "train"}', '{"event": "validation", "update": NaN}', "\udcff"]


@pytest.mark.parametrize("line", ODD)
def test_7_an_odd_line_of_metrics_is_skipped(run, line):
    with (run / "metrics.jsonl").open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(line + "\n")
    done = told("doctor", run)
    assert done.code == 0 and "Traceback" not in done.err


def header_entry(run):
    path = run / "model.safetensors"
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    found = json.loads(content[8 : 8 + length])
    name = next(one for one in found if one != "__metadata__")
    found["__metadata__"]["regardant"] = json.dumps({"tied": {"x": name + "s"}})
    changed = json.dumps(found).encode()
    path.write_bytes(struct.pack("<Q", len(changed)) + changed + content[8 + length :])


def flipped(run):
    (path,) = run.glob("data/text/test.arrow")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


BROKEN = {
    "an entry of the header": ("translate", header_entry),
    "padding": ("translate", tokenizer(lambda one: one.update(padding=PADDING))),
    "truncation": ("translate", tokenizer(lambda one: one.update(truncation=TRUNCATION))),
    "an unknown kernel": ("translate", replaced_in("run.yaml", r"^  kernel: \w+$", "  kernel: fast")),
    "a huge width": ("translate", replaced_in("run.yaml", r"^( +)d_model: 16$", r"\1d_model: 40000000")),
    "many layers": ("translate", replaced_in("run.yaml", r"^( +)num_layers: 1$", r"\1num_layers: 1000000")),
    "bytes of the test text": ("evaluate", flipped),
}
PADDING = {
    "strategy": {"Fixed": 10**9},
    "direction": "Right",
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_type_id": 0,
    "pad_token": "[PAD]",
}
TRUNCATION = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 5}


@pytest.mark.parametrize("name", BROKEN)
def test_8_a_damaged_file_is_one_line(run, name):
    verb, damage = BROKEN[name]
    damage(run)
    assert told(verb, run, *(["3 1 4"] if verb == "translate" else [])).is_one_line


def test_8_a_checkpoint_with_bad_utf8_is_passed_over_or_refused(run):
    for path in run.glob("checkpoints/*.pt"):
        path.write_bytes(path.read_bytes().replace(b"data.pkl", b"data\xff\xfekl"))
    assert told("train", "copy", "--out", run, *sets(*SMALL, "training.max_updates=25")).is_one_line


DOCUMENTS = {
    "a bool that is none": "seed: !!bool x",
    "a time that is none": "seed: !!timestamp x",
    "brackets": "seed: " + "[" * 3000,
    "depth": "seed: " + "{a: " * 2000 + "1" + "}" * 2000,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_9_a_recipe_that_cannot_be_read_is_one_line_at_once(tmp_path, name):
    (tmp_path / "r.yaml").write_text(DOCUMENTS[name], encoding="utf-8")
    began = time.process_time()
    assert told("plan", tmp_path / "r.yaml", seconds=30).is_one_line
    assert time.process_time() - began < 8


@pytest.mark.parametrize("override", ["model.preset={}", "model.d_model=1000000"])
def test_9_a_setting_that_cannot_be_is_one_line(override):
    assert told("plan", "demo", *sets(override)).is_one_line


def test_9_a_nul_in_a_path_is_one_line():
    assert told("train", "language_modelling", *sets('data.source="a\\0b"')).is_one_line


OPTIONS = {
    "a long list": ("--nbest", "1" + 22 * "0"),
    "many beams": ("--beam-size", 5000),
    "a device": ("--score", "/dev/zero"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_low_options_that_cannot_be_are_refused(run, name):
    done = told("translate", run, "3 1 4", *OPTIONS[name], seconds=30)
    assert done.code == 2 and "Traceback" not in done.err and done.gigabytes < 1.5


@pytest.mark.parametrize("shell", ["<&-", ">&-"])
def test_low_closed_streams_are_one_line(run, shell):
    words = ["3 1 4"] if shell == ">&-" else []
    assert told("translate", run, *words, shell=shell).is_one_line


@pytest.mark.parametrize("after", [-1, 10**30])
def test_low_events_after_no_place_are_refused(studio, after):
    port, _, run = studio
    assert asked(port, "GET", f"/api/events?run={run}&after={after}")[0] == 422


def test_low_a_request_without_a_body_is_named(studio):
    port, _, _ = studio
    status, text = asked(port, "POST", "/api/look")
    assert status == 422 and '": Field required"' not in text and '"detail":": ' not in text


def test_low_files_with_carriage_returns_alone_are_refused(run):
    assert told("translate", run, stdin=b"3 1 4\r2 2\r7 7").is_one_line


def test_low_a_gzip_file_with_other_bytes_at_its_end_is_one_line(tmp_path):
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"the cat sees\n" * 300) + b"other")
    given = (f"data.source={tmp_path / 'a.txt.gz'}", "training.max_updates=2", "training.max_minutes=null")
    assert told("train", "language_modelling", "--out", tmp_path / "run", *sets(*given)).is_one_line


def test_low_a_preset_names_no_path_that_nobody_typed():
    done = told("plan", "language_modelling", *sets("model.preset=tiny"))
    assert done.code == 2 and "decoder_only" not in done.err


def test_low_a_follower_ends_with_a_leader_that_is_killed_before_they_meet(tmp_path):
    followers = []
    with running("train", "copy", "--out", tmp_path / "run", *LONG, "--set", "training.processes=2") as leader:
        until(lambda: followers.extend(family(leader.pid)[1:]) or followers)
    try:
        until(lambda: not any(is_alive(one) for one in followers), 20)
    finally:
        for follower in filter(is_alive, followers):
            os.kill(follower, signal.SIGKILL)


def is_alive(process):
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return False
