"""The search that the sample of an export ends with."""

from types import SimpleNamespace

import pytest

from regardant.interop.samples.ctranslate2_translator import Model


class Translator:
    """An engine that writes as many tokens as it may."""

    def translate_batch(self, sources, *, max_decoding_length, **options):
        written = ["a"] * (max_decoding_length - 1)
        return [SimpleNamespace(hypotheses=[written], scores=[-1.0]) for _ in sources]


def test_each_text_has_a_limit_of_its_own():
    model = object.__new__(Model)
    model.settings = {"beam_size": 1, "length_penalty": 1.0, "max_length_ratio": 2, "max_length_extra": 1}
    model.settings |= {"max_length": 50, "never": []}
    model.engine, model.known = Translator(), {"a": 0}
    model.pieces = str.split
    model.target = SimpleNamespace(decode=lambda ids: " ".join("a" for _ in ids))
    found = model.answers(["a b c d", "", "a", "e f g h"])
    assert [len(text.split()) for text in found] == [10, 0, 4, 10]


class Scorer:
    """Log-probabilities of the tokens of hypotheses, as an engine gives them, and how often it was asked."""

    def __init__(self, log_probabilities):
        self.log_probabilities, self.asked = log_probabilities, 0

    def score_batch(self, sources, targets, **options):
        self.asked += 1
        assert len(sources) == len(targets)
        return [SimpleNamespace(log_probs=self.log_probabilities[" ".join(target)]) for target in targets]


def chosen(log_probabilities, *, beam_size=2):
    """Return the hypothesis that is chosen of these, by their tokens, and how often the engine scored any."""
    model = object.__new__(Model)
    model.settings, model.engine = {"beam_size": beam_size, "length_penalty": 1.0}, Scorer(log_probabilities)
    scores = [sum(numbers) / len(numbers) for numbers in log_probabilities.values()]
    result = SimpleNamespace(hypotheses=[text.split() for text in log_probabilities], scores=scores)
    return " ".join(model.chosen(["source"], result)), model.engine.asked


SOON = {"a": [-1.0, -1.0], "b": [-1.5, -1.5]}
"""Two hypotheses that end with their second token, the better one at -1 a token."""


@pytest.mark.parametrize(
    ("later", "found", "asked"),
    [
        ({"c c c": [-2.0, -2.0, -2.0, -2.0]}, "a", 0),  # worse however long it takes
        ({"c c c": [-1.0, -1.5, -0.1, -0.1]}, "a", 1),  # better at its end, and worse when the search stops
        ({"c c c": [-0.5, -0.5, -0.5, -0.5]}, "c c c", 1),  # better all the time
        (
            {"c c c": [-0.5, -0.5, -9.0, -0.1], "d d d": [-1.0, -2.0, -0.3, -0.1]},
            "a",
            1,
        ),  # one goes on, both fall behind
    ],
)
def test_it_stops_where_nothing_that_is_still_written_is_better(later, found, asked):
    assert chosen(SOON | later) == (found, asked)


def test_one_beam_ends_with_its_only_hypothesis():
    assert chosen({"a b": [-1.0, -1.0, -1.0]}, beam_size=1) == ("a b", 0)
