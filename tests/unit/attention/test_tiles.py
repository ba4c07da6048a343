import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.tiles import LARGEST_BLOCK, PartialSoftmax, additive_mask_of, attend, attend_tiles, near_tiles


def pairs_of(tiles, length):
    """How often each pair is in a tile, and each query."""
    met, asked = torch.zeros(length, length), torch.zeros(length)
    for rows, columns in tiles:
        met[rows, columns] += 1
        asked[rows] += 1
    return met, asked


def softmax(q, k, v, hidden=None):
    scores = 0.3 * q @ k.mT
    return torch.softmax(scores if hidden is None else scores + hidden, -1) @ v


def nothing(rows, columns):
    return torch.zeros(1, dtype=torch.float64)


@pytest.mark.parametrize("cut", [1, 7, 19])
def test_parts_over_some_keys_merge_into_the_softmax_over_all(draw, cut):
    q, k, v = draw(20)
    first, second = (
        attend(q, k[:, :, at], v[:, :, at], torch.zeros(1).double(), 0.3) for at in (slice(cut), slice(cut, None))
    )
    assert_close(first.merge(second).mixed, softmax(q, k, v))
    assert_close(second.merge(first).mixed, softmax(q, k, v))


def test_a_part_that_sees_nothing_leaves_the_other_as_it_was(draw):
    q, k, v = draw(5)
    seen = attend(q, k, v, torch.zeros(1).double(), 0.3)
    unseen = attend(q, k, v, torch.full((5, 5), -torch.inf).double(), 0.3)
    assert (unseen.mixed == 0).all() and (unseen.total == 0).all()
    for merged in (seen.merge(unseen), unseen.merge(seen)):
        assert all(torch.equal(one, other) for one, other in zip(merged, seen, strict=True))
    nobody = unseen.merge(unseen)
    assert (nobody.mixed == 0).all() and (nobody.total == 0).all()


def test_merging_bears_scores_that_are_far_apart(draw):
    q, k, v = draw(4)
    low, high = (attend(q, k, v, torch.full((4, 4), at).double(), 0.3) for at in (-1e5, 1e3))
    assert_close(low.merge(high).mixed, high.mixed)
    assert_close(low.merge(low).mixed, low.mixed)


@pytest.mark.parametrize(
    ("length", "before", "after", "start"),
    [(1, 0, 0, 0), (200, 0, 0, 0), (200, 5, 0, 0), (300, 70, 70, 0), (300, 200, 3, 130), (64, 500, 500, 10)],
)
def test_near_tiles_ask_each_query_once_and_hold_each_near_pair(length, before, after, start):
    met, asked = pairs_of(near_tiles(length, before=before, after=after, start=start), length)
    at = torch.arange(length)
    away = at[:, None] - at[None, :]
    assert (asked[:start] == 0).all() and (asked[start:] == 1).all()
    assert (met[start:][((away <= before) & (-away <= after))[start:]] == 1).all()


def test_near_tiles_hold_not_much_else():
    length, reach = 1000, 60
    met, _ = pairs_of(near_tiles(length, before=reach, after=0), length)
    assert met.sum() <= length * (reach + LARGEST_BLOCK)


def test_tiles_give_the_values_and_gradients_of_one_softmax(draw):
    q, k, v = (x.requires_grad_() for x in draw(300))
    view = View(causal=True)
    at = torch.arange(300)
    added = additive_mask_of(view, at, at, torch.float64)
    tiles = near_tiles(300, before=300, after=0)
    assert len(tiles) > 2
    whole = softmax(q, k, v, torch.full((300, 300), -torch.inf).double().triu(1))
    tiled = attend_tiles(q, k, v, tiles, added, 0.3).mixed
    assert_close(tiled, whole)
    of_mixed = torch.linspace(-1, 1, whole.numel()).double().view_as(whole)
    assert_close(torch.autograd.grad(tiled, (q, k, v), of_mixed), torch.autograd.grad(whole, (q, k, v), of_mixed))


def test_the_total_has_its_gradient_too(draw):
    q, k, v = (x[:, :, :5].requires_grad_() for x in draw(9))
    tiles = [(slice(0, 2), slice(0, 5)), (slice(2, 5), slice(1, 4))]
    low = torch.full((1, 1, 5, 5), -3.0).double()

    def merged(q, k, v):
        part = attend_tiles(q, k, v, tiles, nothing, 0.3)
        return part.merge(attend(q, k, v, low, 0.3)).mixed

    assert torch.autograd.gradcheck(merged, (q, k, v), fast_mode=True)


def test_slices_with_steps_are_tiles_as_well(draw):
    q, k, v = (x.requires_grad_() for x in draw(10))
    tiles = [(slice(first, 10, 2), slice(first, 10, 2)) for first in (0, 1)]
    at = torch.arange(10)
    hidden = torch.zeros(10, 10).double().masked_fill((at[:, None] - at) % 2 == 1, -torch.inf)
    mixed, wanted = attend_tiles(q, k, v, tiles, nothing, 0.3).mixed, softmax(q, k, v, hidden)
    assert_close(mixed, wanted)
    assert_close(*(torch.autograd.grad(x.square().sum(), (q, k, v)) for x in (mixed, wanted)))


def test_what_is_added_learns_across_tiles(draw):
    q, k, v = draw(150)
    table = torch.linspace(-1, 1, 2 * 299).double().view(2, 299).requires_grad_()
    at = torch.arange(150)
    view = View(bias=lambda queries, keys: table[:, keys[None, :] - queries[:, None] + 149])
    tiles = near_tiles(150, before=150, after=150)
    assert len(tiles) > 1
    tiled = attend_tiles(q, k, v, tiles, additive_mask_of(view, at, at, torch.float64), 0.3).mixed
    whole = softmax(q, k, v, view.bias(at, at))
    assert_close(tiled, whole)
    of_mixed = torch.linspace(-1, 1, whole.numel()).double().view_as(whole)
    assert_close(torch.autograd.grad(tiled, table, of_mixed), torch.autograd.grad(whole, table, of_mixed))


def test_between_forward_and_backward_nothing_of_a_tile_is_kept(draw):
    q, k, v = (x.requires_grad_() for x in draw(400, batch=1, num_heads=1))
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.shape) or x, lambda x: x):
        attend_tiles(q, k, v, near_tiles(400, before=100, after=100), nothing, 0.3)
    assert kept
    assert all(shape[2:] in {(400, 8), (400, 1)} for shape in kept)


def test_scores_of_a_thousand_overflow_nothing(draw):
    q, k, v = (x.float().requires_grad_() for x in draw(200))
    part = attend_tiles(q * 100, k * 100, v, near_tiles(200, before=200, after=200), nothing_float, 1.0)
    assert part.mixed.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(part.mixed.sum(), (q, k, v)))


def nothing_float(rows, columns):
    return torch.zeros(1)


def test_a_part_is_what_it_says():
    q = k = torch.zeros(1, 1, 2, 3)
    v = torch.tensor([[[[1.0], [3.0]]]])
    part = attend(q, k, v, torch.tensor([[0.0, 0.0], [-torch.inf, 2.0]]), 1.0)
    assert isinstance(part, PartialSoftmax)
    assert part.mixed.flatten().tolist() == [2.0, 3.0]
    assert part.total.flatten().tolist() == [2.0, 1.0]
    assert part.top.flatten().tolist() == [0.0, 2.0]
