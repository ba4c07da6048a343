"""What counts as a difference, and when it is too large."""

import dataclasses
import json

import numpy as np
import pytest

from regardant.interop.parity import BOUNDS, Measured, Parity, TestTexts, compare

SAME = Parity("test", 4, "BLEU", 1e-5, 1.0, Measured(30.0, 1000, 10.0), Measured(30.05, 250, 20.0))


@pytest.mark.parametrize(
    ("changed", "stored", "told"),
    [
        ({}, "float32", []),
        ({"largest_difference": 0.01}, "float32", ["outputs differ by 0.01, allowed are 0.001"]),
        ({"largest_difference": float("nan")}, "float32", ["outputs differ by nan, allowed are 0.001"]),
        ({"largest_difference": 0.5}, "narrow", []),
        ({"identical": 0.98}, "float32", ["98.0% of the answers are identical, at least 99% must be"]),
        ({"identical": 0.5}, "narrow", []),
        ({"identical": None}, "float32", []),
        ({"export": Measured(29.8, 1, 1.0)}, "float32", ["BLEU differs by 0.20, allowed are 0.1"]),
        ({"export": Measured(29.8, 1, 1.0)}, "narrow", []),
        ({"export": Measured(30.4, 1, 1.0)}, "narrow", ["BLEU differs by 0.40, allowed are 0.3"]),
        ({"export": Measured(None, 1, 1.0)}, "float32", []),
    ],
)
def test_what_is_beyond_its_bound_is_named(changed, stored, told):
    assert list(dataclasses.replace(SAME, **changed).failures(BOUNDS[stored])) == told


def test_the_table_has_both_sides():
    assert SAME.table() == [
        "| test, 4 texts | run | export |",
        "|---|---|---|",
        "| BLEU | 30.00 | 30.05 |",
        "| size | 0.0 MB | 0.0 MB |",
        "| tokens a second | 10 | 20 |",
        "| identical answers |  | 100.00% |",
        "| largest difference of an output |  | 1e-05 |",
    ]


SAMPLE = """
import numpy as np

class Model:
    def __init__(self, folder, threads):
        self.folder = folder

    def answers(self, texts):
        return [text.upper() for text in texts]

    def scores(self, texts, references):
        return [np.array([1.0, 2.5 + (text == "b")]) for text in texts]
"""


class Own:
    """A run that answers as the sample above does, but for one text."""

    def answers(self, texts):
        return [text.upper() if text != "c" else "other" for text in texts]

    def scores(self, texts, references):
        return [np.array([1.0, 2.5]) for _ in texts]


def test_a_sample_is_asked_and_compared_text_by_text(tmp_path):
    (tmp_path / "weights").write_bytes(b"12345678")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "sample.py").write_text(SAMPLE, encoding="utf-8")
    texts = ["a", "b", "c", "d"]
    test = TestTexts("t", texts, texts, "accuracy", lambda answers, scores: 10 * len(scores), lambda texts, answers: 7)
    found = compare(test, Own(), tmp_path / "weights", tmp_path / "there", 1)
    assert (found.identical, found.largest_difference, found.run.score, found.run.bytes) == (0.75, 1.0, 40, 8)
    assert found.export.bytes == len(SAMPLE) and found.export.tokens_per_second > 0


def test_scores_of_other_shapes_differ_without_limit(tmp_path):
    (tmp_path / "weights").write_bytes(b"1")
    (tmp_path / "sample.py").write_text(SAMPLE.replace("[1.0, ", "[1.0, 1.0, "), encoding="utf-8")
    test = TestTexts("t", ["a"], ["a"], "accuracy", None, lambda texts, answers: 1)
    assert compare(test, Own(), tmp_path / "weights", tmp_path, 1).largest_difference == float("inf")


def test_one_output_that_is_no_number_fails_the_comparison(tmp_path):
    (tmp_path / "weights").write_bytes(b"1")
    (tmp_path / "sample.py").write_text(SAMPLE.replace('2.5 + (text == "b")', '2.5 if text != "b" else np.nan'))
    texts = ["a", "b", "d"]
    test = TestTexts("t", texts, texts, "accuracy", None, lambda texts, answers: 1)
    found = compare(test, Own(), tmp_path / "weights", tmp_path, 1)
    assert list(found.failures(BOUNDS["float32"])) == ["outputs differ by nan, allowed are 0.001"]
    assert found.as_dict()["largest_difference"] is None
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["identical"] == 1.0
