import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy
from torch.testing import assert_close

from regardant.inspection import Attended, measure_heads

NUM_LAYERS, NUM_HEADS = 2, 3
SHAPES = [(5, 5), (3, 3), (7, 7)]
CROSS_SHAPES = [(4, 6), (6, 3), (1, 5)]
PER_HEAD = ["entropy", "entropy_share", "distance", "previous", "own", "next", "first", "last", "coverage", "idle"]
OFFSETS = {"previous": -1, "own": 0, "next": 1}


def sentences(shapes=SHAPES, *, causal=False, seed=0):
    """Attention of random heads, sharp and flat; the last key is idle."""
    torch.manual_seed(seed)
    found = []
    for queries, keys in shapes:
        scores = 3 * torch.randn(NUM_LAYERS, NUM_HEADS, queries, keys)
        if causal:
            scores = scores.masked_fill(torch.ones(queries, keys).triu(1).bool(), -math.inf)
        idle = torch.zeros(keys, dtype=torch.bool)
        idle[-1] = True
        found.append(Attended(scores.softmax(-1), idle))
    return found


def by_loops(given, layer, head, *, causal):
    """The same numbers, one query after the other."""
    rows, coverage, idle = [], [], []
    for weights, says_little, _ in given:
        matrix = weights[layer, head].double().numpy()
        taken, mixed = np.zeros(matrix.shape[1]), []
        for i, row in enumerate(matrix):
            visible = i + 1 if causal else len(row)
            if visible < 2:
                continue
            taken += row
            mixed.append(row)
            rows.append(
                {
                    "entropy": entropy(row),
                    "entropy_share": entropy(row) / math.log(visible),
                    "distance": sum(w * abs(i - j) for j, w in enumerate(row)),
                    **{name: row[i + n] for name, n in OFFSETS.items() if 0 <= i + n < len(row)},
                    "first": row[0],
                    "last": row[-1],
                }
            )
        coverage.append(np.mean([min(1.0, t) for t in taken]))
        means = np.mean(mixed, 0)
        idle.append(max(means[j] for j in range(len(taken)) if j == 0 or says_little[j]))
    found = {name: np.mean([row[name] for row in rows if name in row]) for name in PER_HEAD[:8]}
    return found | {"coverage": np.mean(coverage), "idle": np.mean(idle)}


@pytest.mark.parametrize(
    ("shapes", "causal"),
    [pytest.param(SHAPES, False, id="own"), pytest.param(SHAPES, True, id="causal"), pytest.param(CROSS_SHAPES, False)],
)
def test_every_number_is_what_loops_over_the_queries_say(shapes, causal):
    given = sentences(shapes, causal=causal)
    found = measure_heads(given, causal=causal)
    assert found.sentences == 3
    for layer in range(NUM_LAYERS):
        for head in range(NUM_HEADS):
            expected = by_loops(given, layer, head, causal=causal)
            assert {name: float(getattr(found, name)[layer, head]) for name in PER_HEAD} == pytest.approx(expected)


def test_the_distance_of_two_heads_is_scipy_s():
    given = sentences()
    found = measure_heads(given)
    flat = [one.weights.flatten(0, 1).double().numpy() for one in given]
    for one in range(NUM_LAYERS * NUM_HEADS):
        for other in range(NUM_LAYERS * NUM_HEADS):
            rows = [jensenshannon(p, q, base=2) for w in flat for p, q in zip(w[one], w[other], strict=True)]
            assert float(found.distances[one, other]) == pytest.approx(np.mean(rows), abs=1e-6)


def test_the_nearest_head_is_the_twin():
    given = [Attended(torch.cat([one.weights, one.weights.flip(1)]), one.idle) for one in sentences()]
    flat = torch.arange(4 * NUM_HEADS).view(4, NUM_HEADS)
    twins = torch.cat([flat[2:].flip(1), flat[:2].flip(1)]).flatten()
    assert measure_heads(given).nearest.tolist() == twins.tolist()


def test_a_head_without_weights_is_like_no_other():
    weights = torch.full((1, 3, 4, 4), 1 / 4)
    weights[0, 1] = 0
    found = measure_heads([Attended(weights, torch.zeros(4, dtype=torch.bool))])
    assert found.nearest.tolist() == [2, 1, 0]


def test_uniform_attention_has_the_entropy_of_the_number_of_keys():
    found = measure_heads([Attended(torch.full((1, 1, 8, 8), 1 / 8), torch.zeros(8, dtype=torch.bool))])
    assert float(found.entropy) == pytest.approx(math.log(8))
    assert float(found.entropy_share) == pytest.approx(1)
    assert float(found.coverage) == pytest.approx(1)


def test_uniform_causal_attention_is_uniform_over_what_may_be_seen():
    weights = torch.ones(6, 6).tril() / torch.arange(1, 7)[:, None]
    found = measure_heads([Attended(weights[None, None], torch.zeros(6, dtype=torch.bool))], causal=True)
    assert float(found.entropy_share) == pytest.approx(1)


def test_attention_over_visible_keys_alone_is_uniform_over_these_head_by_head():
    ring = sum(torch.eye(30).roll(offset, 1) for offset in (-1, 0, 1)) > 0  # each node and its two neighbours
    mask = torch.stack([ring, torch.ones(30, 30, dtype=torch.bool)])[None]
    weights, nothing = mask / mask.sum(-1, keepdim=True), torch.zeros(30, dtype=torch.bool)
    found = measure_heads([Attended(weights, nothing, mask)])
    assert_close(found.entropy_share, torch.ones(1, 2, dtype=torch.float64), rtol=1e-5, atol=0)
    unmasked = measure_heads([Attended(weights, nothing)])
    assert float(unmasked.entropy_share[0, 0]) == pytest.approx(math.log(3) / math.log(30))


def test_queries_with_a_single_visible_key_are_left_out_and_a_mask_of_all_heads_will_do():
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    mask[2] = torch.eye(5, dtype=torch.bool)[2]
    weights = (mask / mask.sum(-1, keepdim=True))[None, None]
    found = measure_heads([Attended(weights, torch.zeros(5, dtype=torch.bool), mask)])
    assert float(found.own) == pytest.approx((1 / 2 + 1 / 4 + 1 / 5) / 3)
    assert float(found.entropy) == pytest.approx(math.log(2 * 4 * 5) / 3)
    assert float(found.entropy_share) == pytest.approx(1)


@pytest.mark.parametrize(("name", "offset"), OFFSETS.items())
def test_a_head_that_looks_at_a_neighbour_is_known_by_it(name, offset):
    weights = torch.eye(6).roll(offset, 1)[None, None]  # the query at one end, without a neighbour, looks at the other
    found = measure_heads([Attended(weights, torch.zeros(6, dtype=torch.bool))])
    shares = {one: float(getattr(found, one)) for one in OFFSETS}
    assert shares.pop(name) == pytest.approx(1)
    assert max(shares.values()) == 0
    assert float(found.entropy) == 0


def test_permuting_heads_permutes_what_is_measured():
    order = [2, 0, 1]
    plain = measure_heads(sentences())
    permuted = measure_heads(Attended(one.weights[:, order], one.idle) for one in sentences())
    for name in PER_HEAD:
        assert_close(getattr(permuted, name), getattr(plain, name)[:, order])
    flat = torch.arange(NUM_LAYERS * NUM_HEADS).view(NUM_LAYERS, -1)[:, order].flatten()
    assert_close(permuted.distances, plain.distances[flat][:, flat])


def test_rows_are_taken_as_distributions():
    given = sentences()
    scaled = [Attended(7 * w, idle) for w, idle, _ in given]
    negative = [Attended(torch.where(w < 0.1, -w, w), idle) for w, idle, _ in given]
    cut = [Attended(torch.where(w < 0.1, 0, w), idle) for w, idle, _ in given]
    assert_close(measure_heads(scaled).distances, measure_heads(given).distances)
    assert_close(measure_heads(negative).entropy, measure_heads(cut).entropy)


def test_rows_without_weight_are_left_out():
    (one, *_) = given = sentences()
    silent = one.weights.clone()
    silent[0, 0, :2], silent[1, 1] = 0, 0
    found, plain = measure_heads([Attended(silent, one.idle)]), measure_heads(given[:1])
    assert float(found.first[0, 0]) == pytest.approx(float(one.weights[0, 0, 2:, 0].mean()))
    assert found.entropy[1, 1].isnan() and found.distances[4].isnan().all()
    assert_close(found.entropy[0, 1:], plain.entropy[0, 1:])
    json = found.as_dict()
    assert json["sentences"] == 1 and math.isnan(json["entropy"][1][1])


def test_a_head_is_idle_that_looks_at_one_idle_token_whatever_is_read():
    keys = torch.zeros(3, 6, 6)
    keys[0, :, 5] = 1  # at the end of the sentence
    keys[1, :, 2] = 1  # at a word
    keys[2, :, 0] = 1  # at the first token
    idle = torch.tensor([False] * 5 + [True])
    found = measure_heads([Attended(keys[None], idle)])
    assert found.no_op.tolist() == [[True, False, True]]
    assert measure_heads([Attended(keys[None], ~idle)]).no_op.tolist() == [[False, True, True]]


def test_without_a_sentence_there_is_nothing_to_measure():
    with pytest.raises(ValueError, match="no sentence to measure heads over: give one"):
        measure_heads([])
