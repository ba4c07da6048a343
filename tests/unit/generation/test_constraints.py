import torch
from hypothesis import given
from hypothesis import strategies as st

from regardant.generation.constraints import Constraints, block_repeated_ngrams

CPU = torch.device("cpu")


def allowed(log_probabilities):
    return [set(row.isfinite().nonzero().squeeze(1).tolist()) for row in log_probabilities.flatten(0, 1)]


def test_a_forced_token_alone_is_allowed_and_keeps_its_log_probability():
    scores = torch.arange(14.0).reshape(2, 1, 7)
    log_probabilities = scores.clone()
    Constraints.of([[5, 6], [3]], 0, [9, 9], CPU).apply(log_probabilities, torch.tensor([[[5]], [[3]]]))
    assert allowed(log_probabilities) == [{6}, set(range(1, 7))]
    assert log_probabilities[0, 0, 6] == scores[0, 0, 6]


def test_a_forced_token_passes_though_it_repeats():
    log_probabilities = torch.zeros(1, 1, 7)
    Constraints.of([[5, 5]], 1, [9], CPU).apply(log_probabilities, torch.tensor([[[5]]]))
    assert allowed(log_probabilities) == [{5}]


def test_kept_sentences_keep_their_own_prefixes():
    constraints = Constraints.of([[5], [6], []], 0, [9, 9, 9], CPU)
    constraints.keep(torch.tensor([2, 1]))
    log_probabilities = torch.zeros(2, 1, 7)
    constraints.apply(log_probabilities, torch.zeros(2, 1, 0, dtype=torch.int64))
    assert allowed(log_probabilities) == [set(range(1, 7)), {6}]


@given(
    written=st.integers(0, 9).flatmap(
        lambda length: st.lists(st.lists(st.integers(5, 7), min_size=length, max_size=length), min_size=2, max_size=2)
    ),
    size=st.integers(1, 4),
)
def test_exactly_the_tokens_that_would_repeat_an_ngram_are_blocked(written, size):
    log_probabilities = torch.zeros(1, 2, 8)
    block_repeated_ngrams(log_probabilities, torch.tensor([written], dtype=torch.int64), size)
    for row, text in zip(log_probabilities[0], written, strict=True):
        for token in range(5, 8):
            longer = [*text, token]
            ngrams = [tuple(longer[i : i + size]) for i in range(len(longer) - size + 1)]
            repeats = ngrams[-1:] != [] and ngrams[-1] in ngrams[:-1]
            assert row[token].isneginf() == repeats
