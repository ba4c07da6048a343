import json
from itertools import pairwise
from random import Random

import pytest

from benchmarks.shared_batches import bucketed, spread, training_flops, write


@pytest.fixture
def lengths():
    random = Random(0)
    sources = [random.randint(2, 40) for _ in range(500)]
    return sources, [max(2, length + random.randint(-4, 4)) for length in sources]


def test_every_sentence_is_in_exactly_one_batch(lengths):
    batches = bucketed(*lengths, 512)
    assert sorted(index for batch in batches for index in batch) == list(range(500))


def test_targets_are_within_the_budget_with_their_padding_and_no_batch_could_take_one_more(lengths):
    targets = lengths[1]
    batches = bucketed(*lengths, 512)
    sizes = [len(batch) * max(targets[index] for index in batch) for batch in batches]
    assert max(sizes) <= 512
    for batch, after in pairwise(batches):
        assert (len(batch) + 1) * targets[after[0]] > 512


def test_batches_go_from_short_to_long(lengths):
    order = [(lengths[1][index], lengths[0][index]) for batch in bucketed(*lengths, 512) for index in batch]
    assert order == sorted(order)


def test_a_sentence_longer_than_the_budget_is_alone():
    assert bucketed([1, 9, 1], [1, 9, 1], 4) == [[0, 2], [1]]


def test_batches_are_taken_evenly_and_from_neither_end():
    assert spread(range(113), 6) == [9, 28, 47, 65, 84, 103]
    assert spread(range(3), 3) == [0, 1, 2]


def test_flops_are_those_of_every_product_counted_by_hand():
    shape = {"d_model": 2, "d_ff": 3, "num_layers": 1, "vocab_size": 5}
    linear = 3 * (4 * 4 + 2 * 6) + 7 * (4 * 4 + 2 * 4 + 2 * 6) + 3 * 2 * 4  # encoder, decoder, keys and values
    attention = 2 * 3 * 3 * 2 + 7 * 7 * 2 + 2 * 7 * 3 * 2
    assert training_flops(shape, [(3, 7)]) == 6 * (linear + attention + 7 * 2 * 5)
    assert training_flops(shape, [(3, 7)] * 4) == 4 * training_flops(shape, [(3, 7)])


def test_what_is_written_is_what_peers_read(tmp_path):
    from training_loop import read

    write(tmp_path / "new" / "batches.json", {"d_model": 2}, [([[5, 2]], [[1, 6, 2]])])
    shape, ((source, target),) = read(tmp_path / "new" / "batches.json")
    assert shape == {"d_model": 2}
    assert (source.tolist(), target.tolist()) == ([[5, 2]], [[1, 6, 2]])
    assert json.loads((tmp_path / "new" / "batches.json").read_text())["batches"] == [[[[5, 2]], [[1, 6, 2]]]]
