"""The export of a trained translator writes what the translator writes, by the translator's own scores."""

import math
from statistics import fmean

import pytest
import torch

from regardant.data.batching import pad
from regardant.data.vocabulary import EOS, NEVER_WRITTEN
from regardant.errors import DataError, RunError
from regardant.generation.config import GenerationConfig
from regardant.generation.teacher_forcing import score_tokens
from regardant.interop.ctranslate2.export import export, exported
from regardant.interop.ctranslate2.search import CTranslate2Searcher
from regardant.interop.ctranslate2.threads import Choice, Threads

SUBWORDS = ("tokenizer.kind=bpe", "tokenizer.vocab_size=500")
MODELS = {
    "pre-norm": SUBWORDS,
    "post-norm": (*SUBWORDS, "model.norm=post", "model.positions.kind=learned"),
    "rotary and gated": (*SUBWORDS, "model.positions.kind=rotary", "model.feed_forward.kind=gated"),
}
WORDS: tuple[str, ...] = ()
"""Of the small word vocabulary two in five target words are unknown: a model that must be kept from writing so."""
STOPPED_EARLY = 1
"""Sentences for which CTranslate2 may be done, with as many hypotheses as beams, before the best one has ended."""
MOST = 47
"""Tokens the models write."""


@pytest.fixture(scope="module")
def opened(trained, tmp_path_factory):
    """A trained translator, its export's searcher and the ids of all test sentences."""
    made = {}

    def open_both(overrides=SUBWORDS):
        if overrides not in made:
            translator = trained(*overrides).translator
            folder = tmp_path_factory.mktemp("engines") / "float32"
            export(translator.model, translator.tokenizers, folder, "float32")
            engine = CTranslate2Searcher(folder, translator.tokenizers, Choice(Threads(2, 1), Threads(1, 2)), "cpu")
            made[overrides] = translator, engine
        return made[overrides]

    return open_both


def ids_of(translator, test_set):
    return translator.tokenizers.source.encode_batch(test_set.sources)


def log_probability(translator, source, hypothesis):
    """Of the hypothesis, by teacher forcing, with its EOS if it has one."""
    scores = score_tokens(translator.model, torch.tensor([[*source, EOS]]), pad([hypothesis.tokens], sos=True))[0]
    return scores[: len(hypothesis.tokens) + hypothesis.finished].sum().item()


@pytest.mark.parametrize("beam_size", [1, 5])
@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("model", MODELS)
def test_an_export_finds_the_same_tokens_and_scores(opened, test_set, model, beam_size, length_penalty):
    translator, engine = opened(MODELS[model])
    sources = ids_of(translator, test_set)
    config = GenerationConfig(beam_size=beam_size, length_penalty=length_penalty)
    ours = translator.searcher.search(sources, [[]] * len(sources), config, MOST)
    theirs = engine.search(sources, [[]] * len(sources), config, MOST)
    assert len({tuple(one.tokens) for (one,) in ours}) > 50, "a model that says one thing proves nothing"
    finished = [number for number, (one,) in enumerate(ours) if one.finished]
    assert len(finished) > 90
    alike = [number for number in finished if theirs[number][0].tokens == ours[number][0].tokens]
    for number in alike:
        assert theirs[number][0].score == pytest.approx(ours[number][0].score, abs=1e-4)
    assert len(finished) - len(alike) <= STOPPED_EARLY * (beam_size > 1)
    for number in set(finished) - set(alike):
        assert ours[number][0].score > theirs[number][0].score + 1e-4


def test_a_sentence_that_comes_alone_has_threads_of_its_own_and_the_same_translation(opened, test_set):
    translator, engine = opened()
    source, config = ids_of(translator, test_set)[0], GenerationConfig()
    (alone,) = engine.search([source], [[]], config, MOST)
    (beside_another, _) = engine.search([source, source], [[], []], config, MOST)
    assert [one.tokens for one in alone] == [one.tokens for one in beside_another]
    assert (engine.engine.num_translators, engine.engine_alone.num_translators) == (2, 1)


def test_an_export_that_is_replaced_later_does_not_change_an_open_searcher(trained, test_set, tmp_path):
    first, other = (trained(*SUBWORDS, *more).translator for more in ((), ("training.max_updates=60",)))
    exported(first.model, first.tokenizers, tmp_path / "engine", "float32")
    threads = Choice(Threads(2, 1), Threads(1, 2))
    engine = CTranslate2Searcher(tmp_path / "engine", first.tokenizers, threads, "cpu")
    exported(other.model, other.tokenizers, tmp_path / "engine", "float32")
    changed = CTranslate2Searcher(tmp_path / "engine", first.tokenizers, threads, "cpu")
    sources, config = ids_of(first, test_set)[:20], GenerationConfig()
    together = [one.tokens for (one,) in engine.search(sources, [[]] * len(sources), config, MOST)]
    alone, of_the_other = (
        [one.search([source], [[]], config, MOST)[0][0].tokens for source in sources] for one in (engine, changed)
    )
    assert alone == together != of_the_other


def test_weights_are_read_once_where_threads_are_alike(searcher, build):
    engine = searcher(build())
    assert engine.engine_alone is engine.engine


@pytest.mark.parametrize("overrides", [SUBWORDS, WORDS], ids=["subwords", "words"])
@pytest.mark.parametrize(
    "asked",
    [
        {"nbest": 5},
        {"length_penalty": 0.0, "nbest": 2},
        {"length_penalty": 2.0},
        {"no_repeat_ngram_size": 2, "nbest": 3},
        {"max_length_ratio": 0.5, "max_length_extra": 2, "nbest": 3},
        {"beam_size": 1},
        {"beam_size": 1, "no_repeat_ngram_size": 1},
        {"beam_size": 1, "max_length_ratio": 0.5, "max_length_extra": 2},
    ],
    ids=str,
)
def test_whatever_is_asked_hypotheses_obey_and_score_as_the_model_does(opened, test_set, overrides, asked):
    translator, engine = opened(overrides)
    sources = ids_of(translator, test_set)[:40]
    config = GenerationConfig(**asked)
    prefixes = [[translator.tokenizers.target.vocab_size - 1, 30] if row % 3 == 0 else [] for row in range(40)]
    found = engine.search(sources, prefixes, config, MOST)
    for source, prefix, hypotheses in zip(sources, prefixes, found, strict=True):
        limit = min(int((len(source) + 1) * config.max_length_ratio) + config.max_length_extra, MOST)
        assert 1 <= len(hypotheses) <= config.nbest
        assert len({tuple(one.tokens) for one in hypotheses}) == len(hypotheses)
        ranks = [(one.finished, one.score) for one in hypotheses]
        assert ranks == sorted(ranks, reverse=True)
        for one in hypotheses:
            length, free = len(one.tokens) + one.finished, one.tokens[len(prefix) :]
            assert one.tokens[: len(prefix)] == prefix
            assert set(free).isdisjoint({EOS, *NEVER_WRITTEN})
            assert length <= limit if one.finished else length == limit
            size = config.no_repeat_ngram_size
            ngrams = [tuple(free[at : at + size]) for at in range(len(free) - size + 1)]
            assert not size or len(set(ngrams)) == len(ngrams)
            total = log_probability(translator, source, one)
            assert one.log_probability == pytest.approx(total, abs=1e-3)
            assert one.score == pytest.approx(total / length**config.length_penalty, abs=1e-4)


@pytest.mark.parametrize("asked", [{}, {"no_repeat_ngram_size": 2}], ids=str)
@pytest.mark.parametrize("prefix", [[], [30]], ids=str)
def test_what_is_found_under_constraints_is_as_probable_as_what_ours_finds(opened, test_set, asked, prefix):
    translator, engine = opened()
    sources, config = ids_of(translator, test_set), GenerationConfig(**asked)
    means = [
        fmean(best.score for best, *_ in searcher.search(sources, [prefix] * len(sources), config, MOST))
        for searcher in (engine, translator.searcher)
    ]
    assert means[0] > means[1] - 0.01


@pytest.mark.parametrize("prefix", [[], [30, 31]], ids=str)
def test_a_sentence_gets_the_same_alone_and_among_others(opened, test_set, prefix):
    translator, engine = opened()
    sources, config = ids_of(translator, test_set)[:20], GenerationConfig(nbest=2, max_length_ratio=1)
    prefixes = [prefix if row % 2 else [] for row in range(20)]
    together = engine.search(sources, prefixes, config, MOST)
    for source, start, hypotheses in zip(sources, prefixes, together, strict=True):
        (alone,) = engine.search([source], [start], config, MOST)
        assert [one.tokens for one in alone] == [one.tokens for one in hypotheses]


def test_a_prefix_as_long_as_the_limit_is_the_whole_target(opened):
    _, engine = opened()
    config = GenerationConfig(beam_size=4, nbest=4, max_length_ratio=0, max_length_extra=2)
    ((one,),) = engine.search([[30, 31]], [[40, 41, 42]], config, MOST)
    assert (one.tokens, one.finished) == ([40, 41, 42], False)
    with pytest.raises(DataError, match="has 3 tokens, the model writes 2: shorten it"):
        engine.search([[30, 31]], [[40, 41, 42]], config, 2)


def test_nothing_asked_is_nothing_found(opened):
    assert opened()[1].search([], [], GenerationConfig(), MOST) == []


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("prefix", [[], [6]], ids=str)
def test_a_model_that_is_not_finite_is_told(build, searcher, beam_size, prefix):
    model = build()
    model.head.weight.data.fill_(math.nan)
    with pytest.raises(RunError, match="NaN or probability zero"):
        searcher(model).search([[5, 6]], [prefix], GenerationConfig(beam_size=beam_size), 20)
