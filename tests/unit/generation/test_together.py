import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant.data.vocabulary import EOS
from regardant.generation.config import GenerationConfig
from regardant.generation.joining import joined
from regardant.generation.search import Work, generate_all
from regardant.generation.together import search_together

CPU = torch.device("cpu")


class Countdown:
    """A search whose sentences are done after so many steps."""

    def __init__(self, lengths, seen):
        self.sentences, self.length, self.seen = torch.tensor(lengths), 0, seen

    @property
    def rows(self):
        return len(self.sentences)

    def step(self, found):
        self.length += 1
        self.seen.append((self.length, self.sentences.tolist()))
        for number in self.sentences.tolist():
            if number == self.length:
                found[number] = []
        self.sentences = self.sentences[self.sentences > self.length]


def rows_by_step(monkeypatch, *batches, fits=lambda batch: True):
    """Which sentences each step was for, where a sentence's number is also how many steps it takes."""

    def one_of(searches):
        whole = Countdown([], searches[0].seen)
        whole.sentences, whole.length = torch.cat([one.sentences for one in searches]), searches[0].length
        return whole

    monkeypatch.setattr("regardant.generation.together.joined", one_of)
    seen = []
    found = search_together([Countdown(batch, seen) for batch in batches], fits)
    assert set(found) == {number for batch in batches for number in batch}
    return seen


def test_what_is_left_of_batches_goes_on_together(monkeypatch):
    seen = rows_by_step(monkeypatch, [2, 3, 9], [1, 2, 7])
    assert [rows for step, rows in seen if step > 4] == [[9, 7]] * 3 + [[9]] * 2
    assert len(seen) == 4 + 4 + 5


def test_a_batch_of_which_most_is_left_does_not_wait(monkeypatch):
    seen = rows_by_step(monkeypatch, [7, 8, 9], [1, 2, 10])
    assert [rows for step, rows in seen if step == 5] == [[7, 8, 9], [10]]


def test_a_batch_of_many_rows_does_not_wait(monkeypatch):
    many = [1] * 40 + [9] * 30
    seen = rows_by_step(monkeypatch, many, [2, 10])
    assert [rows for step, rows in seen if step == 5] == [[9] * 30, [10]]


def test_what_comes_later_is_joined_where_it_meets_what_waits(monkeypatch):
    seen = rows_by_step(monkeypatch, [2, 13], [6, 7, 11, 12], [3, 15])
    assert [rows for step, rows in seen if step == 8] == [[11, 12], [13, 15]]
    assert [sorted(rows) for step, rows in seen if step == 9] == [[11, 12, 13, 15]]


def test_those_who_do_not_fit_into_a_batch_are_not_joined(monkeypatch):
    batches = [[1, 9], [2, 10], [3, 11], [3, 12]]
    seen = rows_by_step(monkeypatch, *batches, fits=lambda batch: len(batch) <= 2)
    assert max(len(rows) for _, rows in seen) == 2
    assert [rows for step, rows in seen if step == 9] == [[9, 10], [11, 12]]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), beam_size=st.sampled_from([1, 3]), size=st.integers(0, 2), data=st.data())
def test_batches_find_together_what_each_finds_alone(table_model, seed, beam_size, size, data):
    texts = st.lists(st.integers(5, 7), max_size=3)
    pairs = data.draw(st.lists(st.tuples(texts, texts), min_size=12, max_size=24))
    sources, prefixes = [[*source, EOS] for source, _ in pairs], [prefix for _, prefix in pairs]
    config = GenerationConfig(
        beam_size=beam_size, nbest=min(beam_size, 2), max_length_extra=25, no_repeat_ngram_size=size
    )
    model, alone = table_model(seed), table_model(seed)
    found = generate_all(model, sources, config, CPU, prefixes=prefixes, work=Work(batch_tokens=16 * beam_size))
    expected = [
        generate_all(alone, [source], config, CPU, prefixes=[prefix])[0]
        for source, prefix in zip(sources, prefixes, strict=True)
    ]
    assert [[one.tokens for one in several] for several in found] == [[one.tokens for one in each] for each in expected]
    for several, each in zip(found, expected, strict=True):
        assert [one.score for one in several] == pytest.approx([one.score for one in each], abs=1e-6)


def test_who_listens_gets_batch_after_batch(table_model):
    def fed(**work):
        model = table_model(seed=1)
        model.table[:, EOS] = torch.randn(len(model.table), generator=torch.Generator().manual_seed(3)) - 1
        config = GenerationConfig(beam_size=1, max_length_extra=30)
        sources = [[5, 6, EOS], [5, 5, EOS], [6, 7, EOS], [7, 7, EOS]] * 6
        generate_all(model, sources, config, CPU, work=Work(12, **work))
        return [rows for rows, _ in model.fed]

    by_batch, together = fed(in_turn=True), fed()
    begun = [later for rows, later in zip([0, *by_batch], by_batch, strict=False) if later > rows]
    assert begun == [4] * 6, "six batches, one after the other"
    assert len(together) < len(by_batch)


def test_what_waits_lets_go_of_the_memory_of_what_is_done():
    whole = torch.arange(12.0).view(6, 2)
    (left,) = joined([(whole[:2],)])
    assert torch.equal(left, whole[:2])
    assert left.untyped_storage().nbytes() < whole.untyped_storage().nbytes()


def test_rows_of_other_widths_are_padded_and_what_all_share_is_kept():
    first, second = torch.ones(1, 2, 3), torch.ones(2, 4, 3)
    whole, note, most = joined([(first, "same", 4), (second, "same", 6)])
    assert whole.shape == (3, 4, 3)
    assert whole.sum() == first.sum() + second.sum()
    assert not whole[0, 2:].any()
    assert (note, most) == ("same", 6)
