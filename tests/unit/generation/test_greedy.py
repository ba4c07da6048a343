import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant.data.vocabulary import EOS
from regardant.generation.beam import BeamSearch
from regardant.generation.config import GenerationConfig
from regardant.generation.greedy import GreedySearch

from .conftest import search_alone

SOURCES = [[5, 6, EOS], [7, EOS, 0], [6, 6, EOS], [5, 7, EOS]]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    limits=st.lists(st.integers(3, 9), min_size=4, max_size=4),
    size=st.integers(0, 3),
    prefixes=st.lists(st.lists(st.integers(5, 7), max_size=3), min_size=4, max_size=4),
)
def test_greedy_search_is_beam_search_with_one_beam(table_model, seed, limits, size, prefixes):
    model = table_model(seed)
    config = GenerationConfig(beam_size=1, no_repeat_ngram_size=size)
    beam, greedy = (search_alone(kind, model, SOURCES, limits, prefixes, config) for kind in (BeamSearch, GreedySearch))
    assert greedy == beam


def test_every_token_is_the_likeliest(table_model):
    model = table_model(seed=1)
    found = search_alone(GreedySearch, model, SOURCES, [9] * 4, [[]] * 4, GenerationConfig(beam_size=1))
    for source, (hypothesis,) in zip(SOURCES, found, strict=True):
        written = [*hypothesis.tokens, EOS] if hypothesis.finished else hypothesis.tokens
        for length, token in enumerate(written):
            after = model.after([token for token in source if token], written[:length])
            assert after[token] == max(after[EOS], *after[5:])


def test_done_sentences_leave_the_batch(table_model):
    model = table_model(seed=2)
    model.table[:, EOS] = -100.0
    config = GenerationConfig(beam_size=1, length_penalty=0.0)
    found = [best for (best,) in search_alone(GreedySearch, model, SOURCES, [2, 4, 1, 4], [[]] * 4, config)]
    assert model.fed == [(4, 1), (3, 1), (2, 1), (2, 1)]
    assert [len(hypothesis.tokens) for hypothesis in found] == [2, 4, 1, 4]
    assert not any(hypothesis.finished for hypothesis in found)
    assert found[0].score == pytest.approx(found[0].log_probability)
