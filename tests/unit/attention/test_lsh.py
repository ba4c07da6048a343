import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.lsh import SELF_SCORE, LSHConfig


def build(num_heads=2, head_size=8, **settings):
    torch.manual_seed(0)
    return LSHConfig(**settings).build(num_heads=num_heads, head_size=head_size).double()


def in_one_direction(length):
    """Keys of many lengths and one direction: any rotation puts them into one bucket."""
    generator = torch.Generator().manual_seed(5)
    direction = torch.randn(2, 2, 1, 8, generator=generator, dtype=torch.float64)
    return direction * (0.1 + torch.rand(2, 2, length, 1, generator=generator, dtype=torch.float64))


def exact_but_itself(q, k, v, causal):
    scores = q @ k.mT / k.shape[-1] ** 0.5 + SELF_SCORE * torch.eye(k.shape[2])
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores).bool().triu(1), -torch.inf)
    return torch.softmax(scores, -1) @ v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("num_rounds", [1, 3])
def test_in_one_bucket_it_is_exact_attention_that_sees_itself_last(draw, num_rounds, causal):
    q, _, v = draw(150)
    k = in_one_direction(150)
    attention = build(num_rounds=num_rounds, reach=150)
    assert_close(attention(q, k, v, View(causal=causal)), exact_but_itself(q, k, v, causal))


def test_a_query_sees_the_nearest_of_its_bucket():
    k = in_one_direction(9)
    met = build(num_rounds=1, reach=2).mask(k, k, View())[0, 0]
    assert met[4].nonzero().flatten().tolist() == [2, 3, 4, 5, 6]


def test_tokens_of_opposite_directions_never_meet():
    k = in_one_direction(8)
    k[:, :, ::2] *= -1
    met = build(num_rounds=4, reach=8).mask(k, k, View())
    at = torch.arange(8)
    assert torch.equal(met, ((at[:, None] - at) % 2 == 0).expand_as(met))


def test_the_nearest_are_counted_inside_the_bucket():
    k = in_one_direction(8)
    k[:, :, ::2] *= -1
    met = build(num_rounds=1, reach=1).mask(k, k, View())[0, 0]
    assert met[4].nonzero().flatten().tolist() == [2, 4, 6]


def test_who_has_nobody_else_sees_itself(draw):
    q, k, v = draw(1)
    assert_close(build()(q, k, v), v)


def test_more_rounds_see_more(draw):
    _, k, _ = draw(200)
    few, many = (build(num_rounds=rounds, num_buckets=16).mask(k, k, View()).sum() for rounds in (1, 4))
    assert many > 1.5 * few


def test_likeness_decides_who_meets(draw):
    """Of pairs that meet the cosines are larger: what hashing is for."""
    _, k, _ = draw(300)
    met = build(num_rounds=1, num_buckets=16, reach=300).mask(k, k, View())
    unit = k / k.norm(dim=-1, keepdim=True)
    cosines = unit @ unit.mT
    assert cosines[met].mean() > cosines[~met].mean() + 0.2


def most(field):
    """The largest setting of a field that is not refused."""
    (limit,) = [rule.le for rule in LSHConfig.model_fields[field].metadata if hasattr(rule, "le")]
    return limit


def test_at_the_limits_addresses_of_buckets_stay_apart(draw):
    """Addresses are 32 bits wide: if they wrapped, the fast path would let tokens see later ones of other buckets."""
    q, _, v = draw(60)
    attention = build(num_rounds=3, num_buckets=most("num_buckets"), reach=most("reach"))
    for k in (q, in_one_direction(60)):
        for view in (View(), View(causal=True), View(causal=True, keys=torch.arange(60).expand(2, -1) < 50)):
            assert_close(attention(q, k, v, view), attention.weights(q, k, view) @ v)


def test_padding_takes_nobody_s_place(draw):
    k = in_one_direction(8)
    real = torch.ones(2, 8).bool()
    real[:, 3:5] = False
    met = build(num_rounds=1, reach=1).mask(k, k, View(keys=real))[0, 0]
    assert met[2].nonzero().flatten().tolist() == [1, 2, 5]


def test_queries_before_the_first_key_see_nothing(draw):
    q, k, _ = draw(6)
    weights = build().weights(q, k[:, :, 2:])
    assert (weights[:, :, :2] == 0).all()
    assert_close(weights[:, :, 2:], build().weights(q[:, :, 2:], k[:, :, 2:]))


def test_redrawn_rotations_see_others_and_a_seed_decides_which(draw):
    _, k, v = draw(200)
    attention = build()
    before = attention(k, k, v)
    after = []
    for _ in range(2):
        torch.manual_seed(7)
        attention.redraw()
        after.append(attention(k, k, v))
    assert torch.equal(*after)
    assert not torch.allclose(before, after[0])


def test_rotations_are_kept_with_the_weights():
    one, other = build(), LSHConfig().build(num_heads=2, head_size=8).double()
    assert not torch.equal(one.rotations, other.rotations)
    other.load_state_dict(one.state_dict())
    assert torch.equal(one.rotations, other.rotations)
