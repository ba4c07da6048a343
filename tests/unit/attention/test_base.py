import dataclasses
from typing import ClassVar

import pytest
import torch
from jaxtyping import TypeCheckError
from torch.testing import assert_close

from regardant.attention import EVERYTHING, Attention, AttentionConfig, View
from regardant.attention.base import AppendedKeys, expand_heads, masked_softmax, softmax_dtype

Q, K = torch.zeros(2, 4, 3, 8), torch.zeros(2, 4, 5, 8)
REAL = torch.tensor([[True, True, True, True, True], [True, True, False, False, False]])


class Even(Attention):
    """All keys alike: what a mechanism is that writes `weights` alone."""

    def weigh(self, q, k, view):
        return masked_softmax(torch.zeros(*q.shape[:3], k.shape[2]), q, k, view)


def rows(view, q=Q, k=K):
    return view.allowed(q, k)[0, 0].int().tolist()


def test_a_view_tells_what_it_asks_for():
    assert View().asks() == View(causal=False).asks() == frozenset()
    assert View(causal=True, keys=REAL).asks() == {"causal", "keys"}
    at = torch.arange(3)
    asked = View(pairs=torch.ones(1, 1, 3, 3).bool(), bias=lambda q, k: q, query_positions=at, key_positions=at).asks()
    assert asked == {"pairs", "bias", "query_positions", "key_positions"}


def test_everything_hides_and_adds_nothing():
    assert EVERYTHING.allowed(Q, K) is EVERYTHING.additive(Q, K) is EVERYTHING.blind(Q, K) is None


def test_queries_stand_where_the_last_keys_do():
    assert [at.tolist() for at in View().positions(Q, K)] == [[2, 3, 4], [0, 1, 2, 3, 4]]
    assert rows(View(causal=True)) == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_queries_stand_where_the_last_keys_do_wherever_that_is():
    view = View(causal=True, key_positions=torch.tensor([7, 8, 9, 10, 11]))
    assert [at.tolist() for at in view.positions(Q, K)] == [[9, 10, 11], [7, 8, 9, 10, 11]]
    assert rows(view) == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_more_queries_than_keys_that_stand_somewhere_have_to_say_where_they_stand():
    view = View(causal=True, key_positions=torch.tensor([7, 8, 9]))
    with pytest.raises(ValueError, match=r"^5 queries stand nowhere among 3 keys: give query_positions$"):
        view.positions(K, Q)


def test_positions_that_are_given_decide_what_is_past():
    view = View(
        causal=True, query_positions=torch.tensor([1, 0, 9]), key_positions=torch.tensor([2, 1, 0, 4, 3]), keys=REAL
    )
    assert rows(view) == [[0, 1, 1, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]]


def test_the_last_query_alone_is_not_masked_at_all():
    assert View(causal=True).allowed(Q[:, :, :1], K) is None


@pytest.mark.parametrize(
    "view",
    [
        View(causal=True, query_positions=torch.tensor([1])),
        View(causal=True, query_positions=torch.tensor([1]), key_positions=torch.arange(5)),
        View(causal=True, key_positions=torch.tensor([5, 6, 3, 4, 3])),
    ],
)
def test_one_query_in_the_middle_is_masked(view):
    assert 0 < sum(rows(view, Q[:, :, :1])[0]) < 5


def test_masks_are_met_together():
    pairs = torch.ones(1, 1, 3, 5).bool()
    pairs[..., 0] = False
    allowed = View(causal=True, keys=REAL, pairs=pairs).allowed(Q, K)
    assert allowed[0, 0].int().tolist() == [[0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 1, 1, 1, 1]]
    assert allowed[1, 0].int().tolist() == [[0, 1, 0, 0, 0]] * 3


def test_queries_that_see_nothing_are_blind():
    nobody = View(keys=torch.tensor([[True] * 5, [False] * 5])).blind(Q, K)
    assert nobody.flatten().tolist() == [False, True]
    assert View(keys=REAL).blind(Q, K) is None


def test_mask_and_bias_are_one_sum_in_the_precision_of_the_softmax():
    bias = torch.randn(4, 3, 5)
    view = View(keys=REAL, bias=lambda queries, keys: bias)
    for dtype, wanted in ((torch.bfloat16, torch.float32), (torch.float32,) * 2, (torch.float64,) * 2):
        added = view.additive(Q.to(dtype), K.to(dtype))
        assert added.dtype == wanted
        assert_close(added[0], bias.to(wanted))
        assert added[1, :, :, 2:].eq(-torch.inf).all()


def test_the_bias_is_asked_for_the_positions_of_the_block():
    asked = []

    def bias(queries, keys):
        asked.append((queries.tolist(), keys.tolist()))
        return torch.zeros(4, 3, 5)

    View(bias=bias).additive(Q, K)
    assert asked == [([2, 3, 4], [0, 1, 2, 3, 4])]


def test_masks_are_made_once_for_all_layers_and_anew_for_other_lengths():
    view = View(causal=True)
    assert view.allowed(Q, K) is view.allowed(Q.clone(), K.clone())
    assert view.allowed(Q[:, :, :2], K).shape[2] == 2
    assert view.allowed(Q, K[:, :, :4]).shape[3] == 4


def test_a_view_changed_in_one_field_keeps_no_old_mask():
    view = View(causal=True)
    view.allowed(Q, K)
    assert dataclasses.replace(view, causal=False).allowed(Q, K) is None


def test_what_was_made_without_gradients_does_not_reach_the_pass_that_trains():
    bias = torch.zeros(4, 3, 5, requires_grad=True)
    view = View(bias=lambda queries, keys: 2 * bias)
    with torch.no_grad():
        assert not view.additive(Q, K).requires_grad
    assert view.additive(Q, K).requires_grad


def test_scores_are_normalised_in_float32_at_least():
    dtypes = {torch.bfloat16: torch.float32, torch.float16: torch.float32, torch.float32: torch.float32}
    for dtype, wanted in (dtypes | {torch.float64: torch.float64}).items():
        assert softmax_dtype(torch.zeros(1, dtype=dtype)) == wanted


def test_key_heads_are_repeated_for_their_group():
    k = torch.randn(2, 2, 5, 8)
    assert torch.equal(expand_heads(k, 4), k[:, [0, 0, 1, 1]])
    assert expand_heads(k, 2) is k


def test_a_mechanism_needs_no_more_than_weights():
    v = torch.randn(2, 2, 5, 6)
    attention = Even()
    assert_close(attention(Q, K[:, :2], v), v.mean(2, keepdim=True)[:, [0, 0, 1, 1]].expand(-1, -1, 3, -1))
    assert attention(Q.bfloat16(), K[:, :2].bfloat16(), v.bfloat16()).dtype == torch.bfloat16
    assert attention.redraw() is None


def test_a_mechanism_without_weights_says_so():
    with pytest.raises(NotImplementedError):
        Attention().weights(Q, K)
    with pytest.raises(NotImplementedError):
        AttentionConfig.build(None, num_heads=1, head_size=1)


def test_what_is_refused_is_named_with_what_is_honoured():
    class Narrow(Even):
        honours = frozenset({"keys", "causal"})

    message = r"^Narrow cannot honour view\.bias, view\.pairs; it honours causal, keys: choose another mechanism$"
    with pytest.raises(ValueError, match=message):
        Narrow()(Q, K, K, View(keys=REAL, pairs=torch.ones(1, 1, 3, 5).bool(), bias=lambda q, k: torch.zeros(4, 3, 5)))


def test_a_reason_is_given_where_there_is_one():
    class Narrow(Even):
        honours = frozenset({"keys"})
        why_not: ClassVar = {"causal": "it reads backwards"}

    with pytest.raises(ValueError, match=r"it honours keys: choose another mechanism \(it reads backwards\)$"):
        Narrow()(Q, K, K, View(causal=True, bias=lambda q, k: torch.zeros(4, 3, 5)))
    with pytest.raises(ValueError, match=r"it honours keys: choose another mechanism$"):
        Narrow()(Q, K, K, View(bias=lambda q, k: torch.zeros(4, 3, 5)))


def test_appended_keys_come_back_in_order():
    k, v = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 5, 6)
    state = AppendedKeys(capacity=7)
    for at in (slice(0, 2), slice(2, 3), slice(3, 5)):
        state = state.append(k[:, :, at], v[:, :, at])
    assert state.length == 5 and state.keys.shape[2] == 7
    assert torch.equal(state.keys[:, :, :5], k) and torch.equal(state.values[:, :, :5], v)


@pytest.mark.parametrize("rows", [[1, 0, 1], [2], [0, 0, 1, 1, 2, 2]])
def test_appended_keys_are_reordered_by_row(rows):
    k = torch.randn(3, 4, 5, 8)
    state = AppendedKeys(capacity=6).append(k, -k).reorder(torch.tensor(rows))
    assert torch.equal(state.keys[:, :, :5], k[rows]) and torch.equal(state.values[:, :, :5], -k[rows])
    later = state.append(torch.ones(len(rows), 4, 1, 8), torch.ones(len(rows), 4, 1, 8))
    assert later.length == 6 and later.keys[:, :, 5].eq(1).all()


def test_shapes_are_checked_while_testing():
    with pytest.raises(TypeCheckError):
        expand_heads(torch.zeros(2, 5, 8), 4)
