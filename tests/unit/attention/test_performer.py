import math

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.performer import PerformerConfig, orthogonal_directions


def build(num_features, head_size=8, num_heads=2):
    return PerformerConfig(num_features=num_features).build(num_heads=num_heads, head_size=head_size).double()


def slope(xs, ys):
    """Of the line through the logarithms, by least squares."""
    x, y = (torch.tensor(numbers).log() for numbers in (xs, ys))
    x = x - x.mean()
    return float((x * y).sum() / (x * x).sum())


def test_the_error_falls_with_the_root_of_the_number_of_features(draw, exact):
    torch.manual_seed(0)
    q, k, v = draw(32, batch=4)
    # Short vectors: the variance of the estimate grows as exp |q + k|^2, and a mean of a few heavy tails has no slope.
    q, k = q / 2, k / 2
    wanted, counts, errors = exact(q, k, v), [32, 64, 128, 256, 512, 1024], []
    for count in counts:
        squares = []
        for _ in range(20):
            mixed = build(count)(q, k, v)
            squares.append((mixed - wanted).square().mean())
        errors.append(math.sqrt(torch.stack(squares).mean()))
    assert slope(counts, errors) == pytest.approx(-0.5, abs=0.1)


def test_many_features_come_near_the_softmax(draw, exact):
    torch.manual_seed(0)
    q, k, v = (x / 2 for x in draw(32))
    for causal in (False, True):
        view = View(causal=causal)
        wanted = exact(q, k, v, view)
        assert (build(20_000)(q, k, v, view) - wanted).norm() < 0.05 * wanted.norm()


def test_features_are_an_unbiased_estimate_of_the_exponential(draw):
    torch.manual_seed(0)
    q, k, _ = (x[:1, :1, :4] / 2 for x in draw(8))
    attention = build(100_000, num_heads=1)
    # Queries lose a factor of their own: what is left to compare are ratios along a row.
    estimate = attention.query_features(q) @ attention.key_features(k).mT
    wanted = (q @ k.mT / math.sqrt(8)).exp()
    ratios = estimate / wanted
    assert_close(ratios / ratios.mean(-1, keepdim=True), torch.ones_like(ratios), rtol=0, atol=0.03)


def test_directions_of_a_block_are_orthogonal_and_as_long_as_normal_vectors():
    torch.manual_seed(0)
    drawn = orthogonal_directions(5000, 16)
    assert drawn.shape == (5000, 16)
    units = drawn / drawn.norm(dim=1, keepdim=True)
    for start in (0, 16, 4992):
        block = units[start : start + 16]
        assert_close(block @ block.T, torch.eye(len(block)), rtol=0, atol=1e-5)
    # |w|^2 is chi-squared with 16 degrees: mean 16, variance 32. Four standard errors of 5000 draws.
    lengths = drawn.square().sum(1)
    assert abs(lengths.mean() - 16) < 4 * math.sqrt(32 / 5000)
    assert abs(drawn.mean(0)).max() < 4 / math.sqrt(5000)


def test_redrawn_directions_give_another_estimate_and_a_seed_decides_which(draw):
    q, k, v = draw(20)
    attention = build(16)
    before = attention(q, k, v)
    after = []
    for _ in range(2):
        torch.manual_seed(7)
        attention.redraw()
        after.append(attention(q, k, v))
    assert torch.equal(*after)
    assert not torch.allclose(before, after[0])


def test_heads_have_directions_of_their_own_and_they_are_kept_with_the_weights():
    attention = build(16)
    assert not torch.equal(*attention.directions)
    assert "directions" in attention.state_dict()


def test_long_queries_overflow_nothing(draw):
    q, k, v = (x.float() for x in draw(20, head_size=64))
    assert PerformerConfig().build(num_heads=2, head_size=64)(30 * q, k, v).isfinite().all()


def of_length(x, length):
    return x / x.norm(dim=-1, keepdim=True) * length


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("head_size", [8, 64])
def test_keys_below_the_limit_weigh_and_learn(draw, head_size, causal):
    torch.manual_seed(0)
    q, k, v = (x.float() for x in draw(20, head_size=head_size))
    k = of_length(k, 13 * head_size**0.25).requires_grad_()
    attention = PerformerConfig().build(num_heads=2, head_size=head_size)
    assert_close(attention.weights(q, k, View(causal=causal)).sum(-1), torch.ones(2, 2, 20))
    (to_k,) = torch.autograd.grad(attention(q, k, v, View(causal=causal)).square().sum(), k)
    assert to_k.isfinite().all() and to_k.any()


def test_keys_past_the_limit_weigh_nothing_and_overflow_nothing(draw):
    torch.manual_seed(0)
    q, k, v = (x.float() for x in draw(20, head_size=64))
    attention = PerformerConfig().build(num_heads=2, head_size=64)
    assert not attention(q, of_length(k, 25 * 64**0.25), v).any()


def test_redrawing_gives_every_head_new_directions_that_are_orthogonal():
    torch.manual_seed(0)
    attention = build(20, head_size=8, num_heads=3)
    before = attention.directions.clone()
    attention.redraw()
    for head, old in zip(attention.directions, before, strict=True):
        assert not (head == old).any()
        units = head / head.norm(dim=1, keepdim=True)
        for block in units.split(8):
            assert_close(block @ block.T, torch.eye(len(block)).double(), rtol=0, atol=1e-5)
    assert not torch.equal(attention.directions[0], attention.directions[1])
