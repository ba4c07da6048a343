"""Peers are real processes that answer in turn."""

import pytest

from benchmarks import workers
from benchmarks.workers import KEEP_FREED_MEMORY, PROGRAMS, Peer, Row, fastest, interleave, one_torch, settings
from regardant.training import devices

PROGRAM = """
import sys
sys.path.insert(0, {peers!r})
import torch
from training_loop import smoothed, train

def build(shape):
    return torch.nn.Sequential(torch.nn.Embedding(shape["vocab_size"], 4), torch.nn.Linear(4, shape["vocab_size"]))

def loss(model, source, target):
    print("anything on stdout, flash", torch.backends.cuda.flash_sdp_enabled())
    return smoothed(model(target[:, :-1]), target)

train("torch", build, loss)
"""
BATCHES = '{"shape": {"vocab_size": 9}, "batches": [[[[5, 2]], [[1, 5, 2]]], [[[5, 2]], [[1, 5, 6, 7, 2, 0]]]]}'


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder of peers of which one trains something tiny, on batches of two and of four targets."""
    (tmp_path / "tiny.py").write_text(PROGRAM.format(peers=str(workers.PROGRAMS)))
    (tmp_path / "broken.py").write_text("raise SystemExit('no such library')")
    (tmp_path / "batches.json").write_text(BATCHES)
    monkeypatch.setattr(workers, "PROGRAMS", tmp_path)
    monkeypatch.setattr(workers, "SETTLE", 0.0)
    return tmp_path


def test_passes_take_the_batches_in_turn_and_count_their_real_targets(programs):
    with Peer("tiny", [str(programs / "batches.json")], folder=programs) as peer:
        assert peer.about["parameters"] == 9 * 4 + 4 * 9 + 9
        ask = {"precision": "float32"}
        assert [peer.ask(updates=n, **ask)["tokens"] for n in (1, 1, 2, 4)] == [2, 4, 6, 12]
        rows = [Row(name, peer, {"updates": 2, "precision": name}) for name in ("float32", "bfloat16")]
        interleave(rows, 3)
        assert [len(row.readings) for row in rows] == [3, 3]
        assert all(row.tokens_per_second > 0 for row in rows)
        one_torch([peer, peer])
    assert peer.process.returncode == 0
    assert "anything on stdout" in (programs / "tiny.log").read_text()


ASK = """
import os, sys
sys.path.insert(0, {peers!r})
from serve import Driver
Driver().answer(tunables=os.environ.get("GLIBC_TUNABLES"))
"""


def test_peers_keep_freed_memory_as_regardant_does_unless_they_run_as_they_come(programs, monkeypatch):
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    (programs / "asked.py").write_text(ASK.format(peers=str(PROGRAMS)))
    with Peer("asked", folder=programs) as kept, Peer("asked", folder=programs, variables={}) as as_it_comes:
        assert kept.about == {"tunables": KEEP_FREED_MEMORY["GLIBC_TUNABLES"]}
        assert as_it_comes.about == {"tunables": None}
    given = dict(one.split("=") for one in KEEP_FREED_MEMORY["GLIBC_TUNABLES"].split(":"))
    asked = []
    monkeypatch.setattr(devices, "_set_allocator", lambda *thresholds: asked.extend(thresholds))
    devices.keep_freed_memory()
    thresholds = [int(given[f"glibc.malloc.{name}_threshold"]) for name in ("mmap", "trim")]
    assert all(theirs >= ours for theirs, ours in zip(thresholds, asked, strict=True))


def test_passes_have_all_rows_and_not_always_in_one_order():
    taken = []

    class Told(Row):
        def read(self, **changes):
            taken.append(self.name)
            return {}

    interleave([Told(name, None, {}) for name in "abcd"], 3)
    passes = ["".join(taken[start : start + 4]) for start in (0, 4, 8)]
    assert {"".join(sorted(one)) for one in passes} == {"abcd"}
    assert len(set(passes)) > 1


def test_settings_are_all_combinations_of_what_a_peer_may_choose():
    asked = {"updates": 3}
    rows = settings("peer", None, asked, {"cache": ("dynamic", "static"), "attention": ("sdpa", "matmul")})
    assert [row.name for row in rows][:2] == [
        "peer, dynamic cache and sdpa attention",
        "peer, dynamic cache and matmul attention",
    ]
    assert rows[-1].request == {"updates": 3, "cache": "static", "attention": "matmul"}
    (alone,) = settings("peer", None, asked, {})
    assert (alone.name, alone.request) == ("peer", asked)
    assert fastest([alone], {}, {}) == (alone, {})  # without a reading: it has no peer


def test_a_plain_loop_attends_as_the_driver_asks(programs):
    with Peer("tiny", [str(programs / "batches.json")], folder=programs) as peer:
        for attention in ("sdpa", "matmul"):
            peer.ask(updates=1, precision="float32", attention=attention)
    logged = (programs / "tiny.log").read_text()
    assert [line.split()[-1] for line in logged.splitlines() if "flash" in line] == ["True", "False"]


def test_a_peer_that_ends_is_told_with_what_it_said_last(programs):
    with pytest.raises(SystemExit, match=r"(?s)no such library.*broken gave no answer.*broken\.log"):
        Peer("broken", folder=programs)


def test_peers_of_different_torch_are_not_compared():
    class About:
        def __init__(self, version):
            self.name, self.about = f"on {version}", {"versions": {"torch": version}}

    with pytest.raises(SystemExit, match="different torch"):
        one_torch([About("2.13.0"), About("2.12.0")])
