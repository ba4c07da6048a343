import threading
import time

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant.data.batching import pad
from regardant.data.vocabulary import EOS, MASK, PAD, SOS, UNK
from regardant.errors import DataError
from regardant.generation import joining
from regardant.generation import search as searching
from regardant.generation.beam import Search
from regardant.generation.config import GenerationConfig
from regardant.generation.search import BatchSizes, ModelSearcher, batches_of_like_length, generate, length_limits
from regardant.generation.teacher_forcing import score_pairs
from regardant.layers.observed import OBSERVED, observing

CPU = torch.device("cpu")
TEXTS = st.lists(st.integers(5, 7), max_size=4)
SEARCHES = st.builds(
    lambda nbest, more, **rest: GenerationConfig(nbest=nbest, beam_size=nbest + more, max_length_extra=5, **rest),
    nbest=st.integers(1, 3),
    more=st.integers(0, 2),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    no_repeat_ngram_size=st.integers(0, 3),
    max_length_ratio=st.sampled_from([0.0, 0.5, 1.5]),
)

OF_THREE = [[5 + i % 3, 5 + i // 3 % 3, 5 + i // 9, EOS] for i in range(27)]
"""All sentences of three words."""


class Sentences:
    """The codec of sentences that are token ids already."""

    def lengths(self, rows):
        return rows + 1

    def collate(self, encoded):
        return pad(encoded)


def search(model, sources, config, work=None, prefixes=None):
    prefixes = [[] for _ in sources] if prefixes is None else prefixes
    without_eos = [source[:-1] for source in sources]
    return ModelSearcher(model, Sentences(), CPU, work=work).search(without_eos, prefixes, config, None)


def padded(texts, start=()):
    longest = max(len(text) for text in texts)
    return torch.tensor([[*start, *text, *[PAD] * (longest - len(text))] for text in texts])


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5),
    config=SEARCHES,
    batch_tokens=st.integers(1, 60),
    threads=st.integers(1, 3),
)
def test_a_sentence_gets_the_same_alone_and_in_any_batch(table_model, seed, pairs, config, batch_tokens, threads):
    model = table_model(seed)
    sources, prefixes = [[*source, EOS] for source, _ in pairs], [prefix for _, prefix in pairs]
    together = generate(model, padded(sources), config, prefixes)
    work = BatchSizes(batch_tokens, workers=threads)
    anyhow = search(model, sources, config, work, prefixes)
    alone = [
        generate(model, torch.tensor([source]), config, [prefix])[0]
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    for several in (together, anyhow):
        for one, other in zip(alone, several, strict=True):
            assert [hypothesis.tokens for hypothesis in one] == [hypothesis.tokens for hypothesis in other]
            assert [hypothesis.score for hypothesis in one] == pytest.approx(
                [hypothesis.score for hypothesis in other], abs=1e-6
            )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    texts=st.lists(TEXTS, min_size=12, max_size=40),
    config=SEARCHES.filter(lambda config: not config.no_repeat_ngram_size),
)
def test_batches_whose_ends_are_joined_stay_within_their_size_and_find_the_same(table_model, seed, texts, config):
    model = table_model(seed)
    sources = [[*source, EOS] for source in texts]
    joined = search(model, sources, config, BatchSizes(10_000, batch_sentences=4))
    assert max(sentences for sentences, _ in model.fed) <= 4
    for source, found in zip(sources, joined, strict=True):
        (alone,) = generate(model, torch.tensor([source]), config)
        assert [hypothesis.tokens for hypothesis in found] == [hypothesis.tokens for hypothesis in alone]
        assert [hypothesis.score for hypothesis in found] == pytest.approx(
            [hypothesis.score for hypothesis in alone], abs=1e-6
        )


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_batch_with_prefixes_takes_no_ends_of_a_batch_without(table_model, beam_size):
    """The batches differ in a prefix that is written anyway, so that the ends of both have as many tokens."""
    sources, config = OF_THREE[:16], GenerationConfig(beam_size=beam_size)
    for seed in range(8):
        model = table_model(seed)
        plain = generate(model, padded(sources), config)
        row = next(row for row, (best, *_) in enumerate(plain) if best.tokens)
        prefixes = [plain[row][0].tokens[:1] if number == row else [] for number in range(16)]
        forced = generate(model, padded(sources), config, prefixes)
        both = search(model, 2 * sources, config, BatchSizes(10_000, batch_sentences=16), [[]] * 16 + prefixes)
        assert [one.tokens for (one,) in both] == [one.tokens for (one,) in [*plain, *forced]]


def test_ends_of_batches_take_fewer_steps_together(table_model, monkeypatch):
    model, steps = table_model(seed=3), []
    for most_waiting in (1, joining.MOST_WAITING):
        monkeypatch.setattr(joining, "MOST_WAITING", most_waiting)
        search(model, OF_THREE, GenerationConfig(beam_size=2), BatchSizes(10_000, batch_sentences=4))
        steps.append(len(model.fed) - sum(steps))
    assert steps[1] < steps[0]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10_000), pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4), config=SEARCHES)
def test_every_hypothesis_obeys_and_scores_as_under_teacher_forcing(table_model, seed, pairs, config):
    model = table_model(seed)
    sources, prefixes = [[*source, EOS] for source, _ in pairs], [prefix for _, prefix in pairs]
    found = generate(model, padded(sources), config, prefixes)
    for source, prefix, hypotheses in zip(sources, prefixes, found, strict=True):
        assert 1 <= len(hypotheses) <= config.nbest
        assert len({(tuple(one.tokens), one.finished) for one in hypotheses}) == len(hypotheses)
        ranks = [(one.finished, one.score) for one in hypotheses]
        assert ranks == sorted(ranks, reverse=True)
        for one in hypotheses:
            written = [*one.tokens, EOS] if one.finished else one.tokens
            assert one.tokens[: len(prefix)] == prefix
            assert min(one.tokens, default=5) >= 5
            size, free = config.no_repeat_ngram_size, one.tokens[len(prefix) :]
            ngrams = [tuple(free[i : i + size]) for i in range(len(free) - size + 1)]
            assert size == 0 or len(set(ngrams)) == len(ngrams)
            total = score_pairs(model, torch.tensor([source]), torch.tensor([[SOS, *written]])).item()
            assert one.log_probability == pytest.approx(total, abs=1e-5)
            assert one.score == pytest.approx(total / len(written) ** config.length_penalty, abs=1e-5)
            limit = max(int(len(source) * config.max_length_ratio) + 5, len(prefix))
            assert len(written) <= limit
            assert one.finished or len(written) == limit


@pytest.mark.parametrize("beam_size", [1, 5])
def test_scores_are_summed_in_float32_whatever_the_model_computes_in(table_model, beam_size):
    model = table_model(seed=2)
    model.table = model.table.bfloat16()
    exact = table_model(seed=2)
    exact.table = model.table.float()
    source, config = torch.tensor([[5, 6, EOS]]), GenerationConfig(beam_size=beam_size, nbest=beam_size)
    assert generate(model, source, config) == generate(exact, source, config)


def test_the_model_runs_in_inference_mode(table_model):
    class Watched(table_model):
        def step(self, tokens, state):
            modes.add(torch.is_inference_mode_enabled())
            return super().step(tokens, state)

    modes = set()
    generate(Watched(seed=1), torch.tensor([[5, EOS]]), GenerationConfig())
    assert modes == {True}


def test_a_limit_grows_with_the_source_and_ends_with_the_model():
    config = GenerationConfig(max_length_ratio=1.5, max_length_extra=4)
    assert length_limits([3, 1], config, [[], []], None) == [8, 5]
    assert length_limits([3, 1], config, [[], []], 6) == [6, 5]


def test_a_limit_grows_to_the_prefix(table_model):
    config = GenerationConfig(beam_size=2, max_length_ratio=0, max_length_extra=2)
    ((hypothesis,),) = generate(table_model(seed=3), torch.tensor([[5, EOS]]), config, [[5, 6, 7, 5]])
    assert hypothesis.tokens == [5, 6, 7, 5]
    assert not hypothesis.finished


def test_a_prefix_longer_than_the_model_writes_is_refused(table_model):
    with pytest.raises(DataError, match="has 3 tokens, the model writes 2: shorten it"):
        generate(table_model(seed=3), torch.tensor([[5, EOS]]), GenerationConfig(), [[5, 6, 7]], max_length=2)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_special_tokens_other_than_the_end_are_never_written(table_model, beam_size):
    config = GenerationConfig(beam_size=beam_size, nbest=beam_size)
    for seed in range(10):
        (found,) = generate(table_model(seed), torch.tensor([[5, EOS]]), config)
        assert {token for one in found for token in one.tokens}.isdisjoint({PAD, SOS, UNK, MASK})


@pytest.mark.parametrize("token", [PAD, SOS, EOS, UNK, MASK])
def test_a_prefix_with_a_special_token_is_refused(table_model, token):
    with pytest.raises(DataError, match="leave out those of special tokens"):
        generate(table_model(seed=3), torch.tensor([[5, EOS]]), GenerationConfig(), [[5, token]])


@given(lengths=st.lists(st.integers(1, 30), max_size=20), batch_tokens=st.integers(1, 100))
def test_batches_hold_every_sentence_once_and_no_more_tokens_than_asked(lengths, batch_tokens):
    batches = batches_of_like_length(lengths, batch_tokens)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= batch_tokens


def test_a_batch_holds_no_more_beams_than_asked(table_model):
    model = table_model(seed=4)
    search(model, [[5, EOS]] * 7, GenerationConfig(beam_size=3), BatchSizes(batch_tokens=12))
    assert max(sentences for sentences, _ in model.fed) == 2


def test_few_sentences_are_shared_out_among_workers(table_model):
    model = table_model(seed=4)
    search(model, [[5, EOS]] * 6, GenerationConfig(beam_size=2), BatchSizes(workers=2))
    assert max(sentences for sentences, _ in model.fed) == 3


def test_no_sources_give_no_targets(table_model):
    assert search(table_model(seed=5), [], GenerationConfig()) == []


class Threads(torch.nn.Module):
    """A model whose steps report the thread that runs them."""

    def __init__(self, model):
        super().__init__()
        self.inner, self.model, self.seen = torch.nn.Identity(), model, []

    def encode(self, source):
        return self.model.encode(source)

    def start(self, memory, beam_size, max_length):
        return self.model.start(memory, beam_size, max_length)

    def step(self, tokens, state):
        self.seen.append(threading.get_ident())
        time.sleep(0.005)
        return self.model.step(tokens, state)


def test_an_observed_model_decodes_batches_of_full_size_in_this_thread(table_model, monkeypatch):
    model = Threads(table_model(seed=4))
    sources, config, work = [[5, EOS]] * 16, GenerationConfig(beam_size=2), BatchSizes(batch_tokens=32, workers=4)
    sizes = []
    begin = searching.begin
    monkeypatch.setattr(
        searching, "begin", lambda model, source, *rest: (sizes.append(len(source)), begin(model, source, *rest))[1]
    )
    with observing(model.inner):
        search(model, sources, config, work)
        assert set(model.seen) == {threading.get_ident()} and sizes == [8, 8]
    model.seen.clear()
    search(model, sources, config, work)
    assert len(set(model.seen)) == 4
    assert not OBSERVED


def test_batches_of_an_observed_model_are_not_joined(table_model, monkeypatch):
    model = Threads(table_model(seed=3))
    joined = []
    monkeypatch.setattr(Search, "takes", lambda self, other: joined.append(other))
    with observing(model.inner):
        search(model, OF_THREE, GenerationConfig(beam_size=2), BatchSizes(10_000, batch_sentences=4))
    assert not joined


@pytest.mark.parametrize(("sentences", "workers"), [(1, 4), (3, 1)])
def test_a_single_batch_or_worker_is_left_to_the_threads_of_torch(table_model, sentences, workers):
    model = Threads(table_model(seed=4))
    search(model, [[5, EOS]] * sentences, GenerationConfig(beam_size=2), BatchSizes(workers=workers))
    assert set(model.seen) == {threading.get_ident()}


class CountsThreads(Threads):
    def step(self, tokens, state):
        self.seen.append(torch.get_num_threads())
        return self.model.step(tokens, state)


@pytest.mark.parametrize(("parameters", "threads"), [(1_000_000, 1), (10_000_000, 2)])
def test_a_small_step_is_computed_by_one_thread(table_model, parameters, threads):
    model = CountsThreads(table_model(seed=4))
    model.register_parameter("more", torch.nn.Parameter(torch.zeros(parameters)))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        search(model, [[5, EOS]], GenerationConfig(beam_size=5))
        assert set(model.seen) == {threads}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("batches", "length", "forks"), [(4, 30, True), (30, 4, True), (4, 4, False), (30, 2, False)])
def test_processes_are_forked_for_many_steps(batches, length, forks, table_model, monkeypatch):
    asked = []

    def share_out(work, items, workers, *, fork):
        asked.append((len(items), fork))
        return [work(iter(items))]

    monkeypatch.setattr(searching, "share_out", share_out)
    config = GenerationConfig(beam_size=1, max_length_extra=1, max_length_ratio=0)
    found = search(table_model(1), [[5] * length] * batches, config, BatchSizes(10**9, batch_sentences=1, workers=2))
    assert asked == [(batches, forks)] and all(found)
