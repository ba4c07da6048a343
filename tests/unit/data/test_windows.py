from itertools import pairwise

import numpy as np
import pytest
import torch

from regardant.data.vocabulary import PAD
from regardant.data.windows import TrainingStreams, TrainingWindows, consecutive_windows, parallel_streams
from regardant.errors import DataError


def windows(length=1000, context=8, batch_tokens=40, seed=1):
    return TrainingWindows(np.arange(length, dtype=np.uint16), context=context, batch_tokens=batch_tokens, seed=seed)


def drawn(made, epoch):
    return torch.cat([made.load(planned).tokens for planned in made.plan(epoch)])


def test_a_window_is_a_piece_of_the_text_with_one_token_more_than_it_predicts():
    batch = windows().load(windows().plan(0)[0])
    assert batch.tokens.shape == (5, 9) and batch.tokens.dtype == torch.int64
    assert (batch.tokens.diff(dim=1) == 1).all()
    assert batch.count == 5 * 8


@pytest.mark.parametrize("length", [9, 10, 16, 17, 100, 1000])
def test_an_epoch_predicts_every_token_once_but_for_less_than_a_window_at_each_end(length):
    made = windows(length)
    for epoch in range(20):
        targets = drawn(made, epoch)[:, 1:].flatten().tolist()
        assert len(targets) == len(set(targets))
        assert sorted(targets) == list(range(min(targets), max(targets) + 1))
        assert min(targets) <= 8 and max(targets) >= length - 8


def test_epochs_differ_in_order_and_in_where_they_cut():
    made = windows()
    firsts = [sorted(drawn(made, epoch)[:, 0].tolist()) for epoch in range(20)]
    assert len({first[0] for first in firsts}) > 4
    assert drawn(made, 0)[:, 0].tolist() != firsts[0]


def test_a_plan_is_a_function_of_seed_and_epoch():
    same, again, other = (drawn(windows(seed=seed), 3) for seed in (1, 1, 2))
    assert torch.equal(same, again) and not torch.equal(same, other)


def test_a_batch_holds_as_many_windows_as_its_tokens_allow_and_at_least_one():
    assert {len(planned) for planned in windows().plan(0)[:-1]} == {5}
    assert {len(planned) for planned in windows(batch_tokens=3).plan(0)} == {1}


def test_the_tokens_of_an_epoch_are_counted():
    made = windows()
    assert made.targets_per_epoch == sum(made.load(planned).count for planned in made.plan(0))


@pytest.mark.parametrize("length", [7, 8])
def test_a_text_shorter_than_a_window_is_one_line(length):
    with pytest.raises(DataError, match=f"has {length} tokens, a window 9: give more text, or lower model.max_length"):
        windows(length)


@pytest.mark.parametrize("length", [2, 8, 9, 10, 17, 18, 100])
@pytest.mark.parametrize("batch_tokens", [1, 24, 1000])
def test_consecutive_windows_predict_every_token_but_the_first_once(length, batch_tokens):
    batches = list(consecutive_windows(np.arange(length), 8, batch_tokens))
    targets = [token for batch in batches for token in batch.tokens[:, 1:].flatten().tolist()]
    assert targets == list(range(1, length))
    assert all(batch.tokens[0, 0] % 8 == 0 for batch in batches)
    assert all(batch.count <= max(8, batch_tokens) for batch in batches)


# streams


def streams(length=1000, context=8, batch_tokens=40, seed=1):
    return TrainingStreams(np.arange(length, dtype=np.uint16), context=context, batch_tokens=batch_tokens, seed=seed)


def batches_of(made, epoch):
    return [made.load(planned) for planned in made.plan(epoch)]


@pytest.mark.parametrize("length", [9, 16, 17, 18, 40, 41, 42, 81, 100, 1000])
def test_each_batch_goes_on_where_the_one_before_it_ended(length):
    made = streams(length)
    for epoch in range(5):
        batches = batches_of(made, epoch)
        assert [batch.begins for batch in batches] == [True, *[False] * (len(batches) - 1)]
        for before, batch in pairwise(batches):
            assert torch.equal(batch.tokens[:, 0], before.tokens[:, -1])
        streamed = torch.cat([batch.targets for batch in batches], 1)
        assert streamed.shape[0] == min(5, (length - 1) // 8)
        assert (streamed.flatten().diff() == 1).all()  # each stream ends where the next begins


@pytest.mark.parametrize("length", [9, 41, 100, 1000])
def test_an_epoch_of_streams_leaves_out_less_than_a_batch_and_not_always_the_same(length):
    made = streams(length)
    firsts = {int(batches_of(made, epoch)[0].tokens[0, 0]) for epoch in range(50)}
    left_out = length - 1 - made.targets_per_epoch
    assert left_out < made.num_streams * 8
    assert min(left_out, 10) < len(firsts) <= left_out + 1
    assert firsts <= set(range(left_out + 1))
    assert made.targets_per_epoch == sum(batch.count for batch in batches_of(made, 3))


def test_a_plan_of_streams_is_a_function_of_seed_and_epoch():
    same, again, other = (torch.cat([b.tokens for b in batches_of(streams(seed=seed), 3)]) for seed in (1, 1, 2))
    assert torch.equal(same, again) and not torch.equal(same, other)


def test_a_rank_has_the_same_streams_in_every_batch():
    batches = batches_of(streams(), 0)
    for batch in batches:
        parts = [batch.part(rank, 2) for rank in (0, 1)]
        assert [part.streams for part in parts] == [slice(0, None, 2), slice(1, None, 2)]
        for part in parts:
            assert torch.equal(part.tokens, batch.tokens[part.streams])
            assert part.begins == batch.begins


@pytest.mark.parametrize("length", [2, 8, 9, 10, 17, 100])
@pytest.mark.parametrize("num_streams", [1, 2, 3])
def test_parallel_streams_predict_every_token_but_the_first_once(length, num_streams):
    tokens = np.arange(5, length + 5)
    batches = list(parallel_streams(tokens, num_streams, 4))
    streamed = torch.cat([batch.targets for batch in batches], 1)
    assert streamed[streamed != PAD].tolist() == list(range(6, length + 5))
    assert (streamed == PAD).sum() < num_streams
    assert all(batch.targets.shape[1] <= 4 for batch in batches)
    for before, batch in pairwise(batches):
        assert torch.equal(batch.tokens[:, 0], before.tokens[:, -1])
