import itertools
import json
import sys
from pathlib import Path

import pytest

RIGHT = """
import torch

def attention(q, k, v):
    return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1) @ v
"""
RIGHT_WITH_A_MASK = """
import torch

def attention(q, k, v, mask=None):
    scores = q @ k.T / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, -1) @ v
"""
RIGHT_BY_HAND = """
import torch

def attention(q, k, v, mask):
    weights = (q @ k.T / q.shape[-1] ** 0.5).exp() * mask
    return weights / weights.sum(-1, keepdim=True) @ v
"""
RIGHT_IN_FLOAT32 = """
import torch

def attention(q, k, v):
    q, k, v = q.float(), k.float(), v.float()
    return torch.softmax(q @ k.T / q.shape[-1] ** 0.5, -1) @ v
"""
UNSCALED = RIGHT.replace(" / q.shape[-1] ** 0.5", "")
WRONG_AXIS = RIGHT.replace("-1) @", "0) @")
SUM_OVER_ALL = """
import torch

def attention(q, k, v):
    weights = (q @ k.T / q.shape[-1] ** 0.5).exp()
    return weights / weights.sum() @ v
"""
SUM_OVER_ALL_WITH_A_MASK = RIGHT_BY_HAND.replace("weights.sum(-1, keepdim=True)", "weights.sum()")
MASK_UPSIDE_DOWN = RIGHT_WITH_A_MASK.replace("~mask", "mask")

ALL = {"N-02", "N-03", "N-04", "N-05", "N-06", "N-07", "N-08", "N-10", "N-13", "N-14", "N-15", "N-21", "N-43", "N-60"}
NEED_A_MASK = {"N-13", "N-43"}

modules = (f"learner_{number}" for number in itertools.count())


@pytest.fixture
def write(tmp_path, monkeypatch):
    """A module of the working directory, by its text; its name comes back."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def to_module(text: str) -> str:
        name = next(modules)
        Path(f"{name}.py").write_text(text, encoding="utf-8")
        return name

    return to_module


@pytest.fixture
def check(regardant, write):
    """The checks of a function `attention`, by id, and the exit code."""

    def run(text):
        said = regardant("verify", "--mine", f"{write(text)}:attention", "--json")
        checks = {check["id"]: check for check in json.loads(said.out, parse_constant=pytest.fail)["checks"]}
        return checks, said.code

    return run


@pytest.mark.parametrize("text", [RIGHT, RIGHT_IN_FLOAT32])
def test_a_right_function_passes_and_needs_no_mask(check, text):
    checks, code = check(text)
    assert code == 0
    assert checks.keys() == ALL - NEED_A_MASK
    assert [id for id, one in checks.items() if not one["ok"]] == []
    assert all(one["difference"] == 0 for one in checks.values())


@pytest.mark.parametrize("text", [RIGHT_WITH_A_MASK, RIGHT_BY_HAND])
def test_a_function_that_takes_a_mask_is_checked_with_one(check, text):
    checks, code = check(text)
    assert code == 0
    assert checks.keys() == ALL
    assert all(one["ok"] for one in checks.values())


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        (UNSCALED, {"N-02", "N-03", "N-04", "N-05", "N-06", "N-15"}),
        (WRONG_AXIS, {"N-02", "N-03", "N-04", "N-05", "N-06", "N-07", "N-08", "N-10", "N-15", "N-60"}),
        (SUM_OVER_ALL, {"N-15"}),
        (SUM_OVER_ALL_WITH_A_MASK, {"N-13", "N-15"}),
        (MASK_UPSIDE_DOWN, {"N-13", "N-43"}),
    ],
    ids=["unscaled", "wrong axis", "sum over all", "sum over all, masked", "mask upside down"],
)
def test_a_wrong_function_fails_by_name_and_amount(check, text, failed):
    checks, code = check(text)
    assert code == 1
    assert {id for id, one in checks.items() if not one["ok"]} == failed
    assert all((one["difference"] == 0) == one["ok"] for one in checks.values())


def test_people_are_told_what_fails_by_how_much_and_what_was_left_out(regardant, write, tmp_path):
    name = write(SUM_OVER_ALL)
    said = regardant("verify", "--mine", f"{name}:attention", "--page", tmp_path / "mine.html")
    assert said.code == 1
    assert f"the values computed by {name}:attention for 11 of 12 claims agree with the true ones" in said.lines
    assert "      sums of weights, all four words: off by 0.89" in said.lines
    assert "        measured  0.131614 0.249169 0.509067 0.110150" in said.lines
    assert said.lines[-1].startswith("N-13, N-43 left out: they need a parameter `mask`")
    assert f"<h1>Claims checked with {name}:attention</h1>" in (tmp_path / "mine.html").read_text(encoding="utf-8")


def test_an_installed_function_can_be_checked_too(regardant):
    said = regardant("verify", "--mine", "torch.nn.functional:scaled_dot_product_attention")
    assert said.code == 0, said.out


def test_what_the_function_prints_or_changes_stays_out_of_the_way(regardant, write):
    name = write(
        "print('loaded')\n"
        + RIGHT.replace("    return", "    print('called')\n    mixed =")
        + "    q.zero_()\n    return mixed"
    )
    said = regardant("verify", "--mine", f"{name}:attention", "--json")
    assert said.code == 0
    assert json.loads(said.out)["checks"]
    assert "loaded\n" in said.err and "called\n" in said.err


@pytest.mark.parametrize(
    ("text", "function", "message"),
    [
        (
            "def attention(q, k, v): return q / 0 @ x\n",
            "attention",
            "raised NameError: name 'x' is not defined, given q [",
        ),
        ("def attention(q, k): return q\n", "attention", "raised TypeError: "),
        ("def attention(q, k, v): raise SystemExit(3)\n", "attention", "raised SystemExit: 3, given"),
        ("def attention(q, k, v): raise ValueError('one\\ntwo')\n", "attention", "raised ValueError: one, given"),
        (
            "def attention(q, k, v): return k\n",
            "attention",
            "returned a tensor [6, 4], given q [1, 4], k [6, 4], v [6, 6]; must be [1, 6]",
        ),
        ("def attention(q, k, v): return (q @ k.T @ v, None)\n", "attention", "returned tuple, given"),
        ("def attention(q, k, v): return None\n", "attention", "returned NoneType, given"),
        ("def attention(q, k, v): return v\n", "atention", "no function 'atention' in "),
        ("def attention(q, k, v): return v\n", "atention", "; did you mean attention?; its functions: attention"),
        ("attention = 3\n", "attention", "no function 'attention' in "),
        ("def attention(q, k, v) return v\n", "attention", "raised SyntaxError: "),
        ("import sys; sys.exit('enough')\n", "attention", "raised SystemExit: enough; give a module"),
        ("1 / 0\n", "attention", "raised ZeroDivisionError: division by zero; give a module"),
    ],
)
def test_a_function_that_cannot_be_checked_is_one_line(regardant, write, text, function, message):
    name = write(text)
    said = regardant("verify", "--mine", f"{name}:{function}")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"regardant: --mine {name}:{function}")
    assert message in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("no_such_module:attention", "raised ModuleNotFoundError: No module named 'no_such_module'; give a module"),
        ("attention.py", "write MODULE:FUNCTION, as in my_attention:attention for my_attention.py"),
        ("attention:", "write MODULE:FUNCTION"),
        (":attention", "write MODULE:FUNCTION"),
        ("", "write MODULE:FUNCTION"),
        (".relative:attention", "raised TypeError: "),
        ("torch.py:relu", "raised ModuleNotFoundError: No module named 'torch.py'"),
    ],
)
def test_a_name_that_leads_nowhere_is_one_line(regardant, write, given, message):
    said = regardant("verify", "--mine", given, "--json")
    assert (said.code, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1
