import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant.data.vocabulary import EOS
from regardant.generation.beam import beam_search
from regardant.generation.config import GenerationConfig
from regardant.generation.constraints import Constraints
from regardant.generation.greedy import greedy_search

SOURCES = [[5, 6, EOS], [7, EOS, 0], [6, 6, EOS], [5, 7, EOS]]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    limits=st.lists(st.integers(3, 9), min_size=4, max_size=4),
    size=st.integers(0, 3),
    prefixes=st.lists(st.lists(st.integers(5, 7), max_size=3), min_size=4, max_size=4),
)
def test_greedy_search_is_beam_search_with_one_beam(table_model, seed, limits, size, prefixes):
    model, source = table_model(seed), torch.tensor(SOURCES)
    config = GenerationConfig(beam_size=1, no_repeat_ngram_size=size)
    beam = beam_search(model, source, limits, Constraints(prefixes, size, source.device), config)
    greedy = greedy_search(model, source, limits, Constraints(prefixes, size, source.device), 1.0)
    assert [[hypothesis] for hypothesis in greedy] == beam


def test_every_token_is_the_likeliest(table_model):
    model = table_model(seed=1)
    found = greedy_search(model, torch.tensor(SOURCES), [9] * 4, Constraints([[]] * 4, 0, torch.device("cpu")), 1.0)
    for source, hypothesis in zip(SOURCES, found, strict=True):
        written = [*hypothesis.tokens, EOS] if hypothesis.finished else hypothesis.tokens
        for length, token in enumerate(written):
            after = model.after([token for token in source if token], written[:length])
            assert after[token] == max(after[EOS], *after[5:])


def test_done_sentences_leave_the_batch(table_model):
    model = table_model(seed=2)
    model.table[:, EOS] = -100.0
    constraints = Constraints([[]] * 4, 0, torch.device("cpu"))
    found = greedy_search(model, torch.tensor(SOURCES), [2, 4, 1, 4], constraints, 0.0)
    assert model.fed == [(4, 1), (3, 1), (2, 1), (2, 1)]
    assert [len(hypothesis.tokens) for hypothesis in found] == [2, 4, 1, 4]
    assert not any(hypothesis.finished for hypothesis in found)
    assert found[0].score == pytest.approx(found[0].log_probability)
