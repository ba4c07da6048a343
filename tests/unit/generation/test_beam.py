import itertools

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from regardant.data.vocabulary import EOS
from regardant.errors import RunError
from regardant.generation.beam import BeamSearch
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate

from .conftest import search_alone

SOURCES = [[5, 6, EOS], [7, EOS, 0], [6, 6, EOS]]


def search(model, config, limits, sources=SOURCES, prefixes=None):
    return search_alone(BeamSearch, model, sources, limits, prefixes or [[] for _ in sources], config)


def real(source):
    return [token for token in source if token]


def every_target(model, source, limit, length_penalty):
    """All the targets that end by the limit as (score, tokens), best first."""
    text = range(5, 5 + model.text_tokens)
    targets = []
    for length in range(limit):
        for tokens in itertools.product(text, repeat=length):
            written = [*tokens, EOS]
            total = sum(model.after(source, written[:i])[token] for i, token in enumerate(written))
            targets.append((total / len(written) ** length_penalty, list(tokens)))
    return sorted(targets, reverse=True)


def plain_beam_search(model, source, limit, config):
    """The same search for one sentence in plain Python, without any early stop but W endings and nothing better."""
    live, ended = [(0.0, [])], []
    for length in range(1, limit + 1):
        candidates = [
            (total + log_probability, [*written, token])
            for total, written in live
            for token, log_probability in enumerate(model.after(source, written))
            if token == EOS or token >= 5
        ]
        candidates.sort(reverse=True)
        for total, written in candidates[: config.beam_size]:
            if written[-1] == EOS:
                ended.append((total / length**config.length_penalty, written[:-1], True))
        live = [(total, written) for total, written in candidates if written[-1] != EOS][: config.beam_size]
        if len(ended) >= config.beam_size:
            worst_kept = sorted((score for score, *_ in ended), reverse=True)[config.nbest - 1]
            if not live or live[0][0] / length**config.length_penalty <= worst_kept:
                break
    cut = [(total / limit**config.length_penalty, written, False) for total, written in live]
    return (sorted(ended, reverse=True) + cut)[: config.nbest]


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 2.0])
def test_a_beam_as_wide_as_the_space_finds_the_best_of_all_targets(table_model, length_penalty):
    model = table_model(seed=1)
    config = GenerationConfig(beam_size=130, nbest=40, length_penalty=length_penalty)
    found = search(model, config, [4, 4, 4])
    for source, hypotheses in zip(SOURCES, found, strict=True):
        expected = every_target(model, real(source), 4, length_penalty)
        assert [hypothesis.tokens for hypothesis in hypotheses] == [tokens for _, tokens in expected]
        assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx([score for score, _ in expected])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    beam_size=st.integers(1, 4),
    nbest=st.integers(1, 4),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    limits=st.lists(st.integers(1, 7), min_size=3, max_size=3),
)
@example(seed=4185, beam_size=3, nbest=1, length_penalty=2.0, limits=[7, 2, 6])  # a longer one wins at last
def test_a_batch_gives_what_plain_beam_search_gives(table_model, seed, beam_size, nbest, length_penalty, limits):
    model = table_model(seed)
    config = GenerationConfig(beam_size=beam_size, nbest=min(nbest, beam_size), length_penalty=length_penalty)
    for source, limit, hypotheses in zip(SOURCES, limits, search(model, config, limits), strict=True):
        expected = plain_beam_search(model, real(source), limit, config)
        assert [(one.tokens, one.finished) for one in hypotheses] == [tuple(rest) for _, *rest in expected]
        assert [one.score for one in hypotheses] == pytest.approx([score for score, *_ in expected], abs=1e-5)


def test_a_better_hypothesis_is_found_after_the_likeliest_has_ended(table_model):
    model = table_model(seed=0)
    likely, unlikely = torch.tensor(0.95).log(), torch.tensor(1e-9).log()
    model.table[:] = unlikely
    model.table[:, EOS] = likely
    first = model.bucket([5, EOS])
    model.table[first, EOS], model.table[first, 5] = torch.tensor([0.5, 0.45]).log()
    (hypotheses,) = search(model, GenerationConfig(beam_size=2, nbest=2), [6], [[5, EOS]])
    assert [hypothesis.tokens for hypothesis in hypotheses] == [[5], []]


def test_hypotheses_are_distinct_and_best_first(table_model):
    for hypotheses in search(table_model(seed=2), GenerationConfig(beam_size=6, nbest=6), [8, 8, 8]):
        ended = [one for one in hypotheses if one.finished]
        assert len(hypotheses) == 6
        assert len({tuple(one.tokens) for one in hypotheses}) == 6
        assert hypotheses[: len(ended)] == sorted(ended, key=lambda one: -one.score)


def test_done_sentences_leave_the_batch(table_model):
    model = table_model(seed=3)
    search(model, GenerationConfig(beam_size=2), [2, 9, 5])
    model.table[:, EOS] = -100.0  # from here on nothing ends before its limit
    model.fed.clear()
    search(model, GenerationConfig(beam_size=2), [2, 9, 5])
    assert model.fed == [(3, 1), (3, 2)] + [(2, 2)] * 3 + [(1, 2)] * 4


def test_the_search_stops_once_no_live_hypothesis_can_win(table_model):
    model = table_model(seed=4)
    model.table[:] = -20.0
    model.table[:, EOS] = 0.0  # so every other token costs 20
    (hypotheses,) = search(model, GenerationConfig(beam_size=2), [3], [[5, EOS]], prefixes=[[6]])
    assert hypotheses[0].tokens == [6]
    assert hypotheses[0].score == pytest.approx(-20 / 2, abs=1e-5)
    assert model.fed == [(1, 1), (1, 2)]  # the live one is at -40, which the limit can only make -40 / 3


def test_at_the_limit_a_hypothesis_is_not_finished(table_model):
    model = table_model(seed=5)
    model.table[:, EOS] = -100.0
    for (hypothesis,) in search(model, GenerationConfig(beam_size=3), [4, 4, 4]):
        assert len(hypothesis.tokens) == 4
        assert not hypothesis.finished
        assert hypothesis.score == pytest.approx(hypothesis.log_probability / 4)


def test_a_hypothesis_that_ended_comes_before_one_cut_at_the_limit(table_model):
    model = table_model(seed=6)
    model.table[:] = 0.0
    model.table[:, EOS] = -1.0
    hypotheses = search(model, GenerationConfig(beam_size=4, nbest=4), [1, 1, 1])[0]
    assert [(one.finished, len(one.tokens)) for one in hypotheses] == [(True, 0)] + [(False, 1)] * 3
    assert hypotheses[0].score < hypotheses[1].score


def test_fewer_than_nbest_come_back_where_there_are_no_more(table_model):
    model = table_model(seed=7)
    model.table[:, 5:] = -torch.inf
    hypotheses = generate(model, torch.tensor(SOURCES), GenerationConfig(beam_size=4, nbest=3))
    assert [[one.tokens for one in each] for each in hypotheses] == [[[]], [[]], [[]]]


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_a_model_without_a_possible_target_is_an_error(table_model, beam_size, value):
    model = table_model(seed=8)
    model.table[:, 1 if value == -torch.inf else 0] = 0.0
    model.table[:, 2:] = value
    with pytest.raises(RunError, match="NaN or probability zero"):
        generate(model, torch.tensor(SOURCES), GenerationConfig(beam_size=beam_size))
