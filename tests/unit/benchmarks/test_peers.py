"""Peers get the settings of PyTorch that Regardant uses, so that no speed comes of leaving one out."""

import ast

import pytest

from benchmarks.workers import PROGRAMS

TREES = {path.name: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PROGRAMS.glob("*.py"))}


def calls(tree, name):
    for one in ast.walk(tree):
        if isinstance(one, ast.Call) and getattr(one.func, "attr", getattr(one.func, "id", None)) == name:
            yield one


def test_adamw_of_peers_is_fused():
    made = [call for tree in TREES.values() for name in ("Adam", "AdamW") for call in calls(tree, name)]
    assert made
    assert all(ast.unparse(call).endswith("fused=True)") for call in made)


@pytest.mark.parametrize("program", ["marian_decoding.py", "greedy_decoding.py", "nanogpt_loss.py"])
def test_peers_decode_in_inference_mode(program):
    assert list(calls(TREES[program], "inference_mode"))
