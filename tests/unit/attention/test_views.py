import dataclasses

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import EVERYTHING, KERNELS, PassView, ScaledDotProductConfig, View
from regardant.attention.masks import softmax_dtype

Q, K = torch.zeros(2, 4, 3, 8), torch.zeros(2, 4, 5, 8)
REAL = torch.tensor([[True, True, True, True, True], [True, True, False, False, False]])


def rows(view, q=Q, k=K):
    return view.mask(q, k)[0, 0].int().tolist()


def test_a_view_tells_what_it_asks_for():
    assert View().asked == View(causal=False).asked == frozenset()
    assert View(causal=True, keys=REAL).asked == {"causal", "keys"}
    at = torch.arange(3)
    asked = View(pairs=torch.ones(1, 1, 3, 3).bool(), bias=lambda q, k: q, query_positions=at, key_positions=at).asked
    assert asked == {"pairs", "bias", "query_positions", "key_positions"}


def test_everything_hides_and_adds_nothing():
    assert EVERYTHING.mask(Q, K) is EVERYTHING.additive_mask(Q, K) is EVERYTHING.fully_masked(Q, K) is None


def test_queries_stand_where_the_last_keys_do():
    assert [at.tolist() for at in View().positions(Q, K)] == [[2, 3, 4], [0, 1, 2, 3, 4]]
    assert rows(View(causal=True)) == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_queries_stand_where_the_last_keys_do_wherever_that_is():
    view = View(causal=True, key_positions=torch.tensor([7, 8, 9, 10, 11]))
    assert [at.tolist() for at in view.positions(Q, K)] == [[9, 10, 11], [7, 8, 9, 10, 11]]
    assert rows(view) == [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_more_queries_than_keys_that_stand_somewhere_have_to_say_where_they_stand():
    view = View(causal=True, key_positions=torch.tensor([7, 8, 9]))
    with pytest.raises(ValueError, match=r"^5 queries have no default positions among 3 keys: give query_positions$"):
        view.positions(K, Q)


def test_positions_that_are_given_decide_what_is_past():
    view = View(
        causal=True, query_positions=torch.tensor([1, 0, 9]), key_positions=torch.tensor([2, 1, 0, 4, 3]), keys=REAL
    )
    assert rows(view) == [[0, 1, 1, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1]]


def test_the_last_query_alone_is_not_masked_at_all():
    assert View(causal=True).mask(Q[:, :, :1], K) is None


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
    allowed = View(causal=True, keys=REAL, pairs=pairs).mask(Q, K)
    assert allowed[0, 0].int().tolist() == [[0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 1, 1, 1, 1]]
    assert allowed[1, 0].int().tolist() == [[0, 1, 0, 0, 0]] * 3


def test_queries_that_see_nothing_are_fully_masked():
    nobody = View(keys=torch.tensor([[True] * 5, [False] * 5])).fully_masked(Q, K)
    assert nobody.flatten().tolist() == [False, True]
    assert View(keys=REAL).fully_masked(Q, K) is None


def test_mask_and_bias_are_one_sum_in_the_precision_of_the_softmax():
    bias = torch.randn(4, 3, 5)
    view = View(keys=REAL, bias=lambda queries, keys: bias)
    for dtype, wanted in ((torch.bfloat16, torch.float32), (torch.float32,) * 2, (torch.float64,) * 2):
        added = view.additive_mask(Q.to(dtype), K.to(dtype))
        assert added.dtype == wanted
        assert_close(added[0], bias.to(wanted))
        assert added[1, :, :, 2:].eq(-torch.inf).all()


def test_the_bias_is_asked_for_the_positions_of_the_block():
    asked = []

    def bias(queries, keys):
        asked.append((queries.tolist(), keys.tolist()))
        return torch.zeros(4, 3, 5)

    View(bias=bias).additive_mask(Q, K)
    assert asked == [([2, 3, 4], [0, 1, 2, 3, 4])]


def test_scores_are_normalised_in_float32_at_least():
    dtypes = {torch.bfloat16: torch.float32, torch.float16: torch.float32, torch.float32: torch.float32}
    for dtype, wanted in (dtypes | {torch.float64: torch.float64}).items():
        assert softmax_dtype(torch.zeros(1, dtype=dtype)) == wanted


def test_a_view_keeps_no_mask():
    view = View(causal=True, keys=REAL)
    assert view.mask(Q, K) is not view.mask(Q, K)
    assert set(vars(view)) == {field.name for field in dataclasses.fields(View)}


def test_one_pass_makes_each_mask_once_for_all_layers_and_anew_for_other_lengths():
    view = PassView(causal=True)
    assert view.mask(Q, K) is view.mask(Q.clone(), K.clone())
    assert view.additive_mask(Q, K) is view.additive_mask(Q, K)
    assert view.mask(Q[:, :, :2], K).shape[2] == 2
    assert view.mask(Q, K[:, :, :4]).shape[3] == 4


def test_the_mask_of_a_pass_is_made_for_the_precision_of_its_queries():
    view = PassView(causal=True)
    assert view.additive_mask(Q.double(), K.double()).dtype == torch.float64
    assert view.additive_mask(Q, K).dtype == torch.float32


def test_a_pass_view_changed_in_one_field_keeps_no_old_mask():
    view = PassView(causal=True)
    view.mask(Q, K)
    changed = dataclasses.replace(view, causal=False)
    assert isinstance(changed, PassView) and changed.mask(Q, K) is None


def test_what_was_made_without_gradients_does_not_reach_the_pass_that_trains():
    bias = torch.zeros(4, 3, 5, requires_grad=True)
    view = PassView(bias=lambda queries, keys: 2 * bias)
    with torch.no_grad():
        assert not view.additive_mask(Q, K).requires_grad
    assert view.additive_mask(Q, K).requires_grad


def test_a_bias_that_learns_is_made_anew_for_each_layer_where_layers_are_recomputed():
    bias = torch.zeros(4, 3, 5, requires_grad=True)
    view, kept = (PassView(bias=lambda queries, keys: 2 * bias, recomputed=recomputed) for recomputed in (True, False))
    assert view.additive_mask(Q, K) is not view.additive_mask(Q, K)
    assert kept.additive_mask(Q, K) is kept.additive_mask(Q, K)


def test_a_rounded_mask_is_made_once_unless_its_bias_is_learned():
    fixed, learned = torch.zeros(4, 3, 5), torch.zeros(4, 3, 5, requires_grad=True)

    def rounded(view):
        return view.rounded(view.additive_mask(Q, K), torch.bfloat16)

    view = PassView(causal=True, bias=lambda queries, keys: 2 * fixed)
    assert rounded(view) is rounded(view) and rounded(view).dtype == torch.bfloat16
    view = PassView(bias=lambda queries, keys: 2 * learned)
    assert rounded(view) is not rounded(view)


@pytest.mark.parametrize("make", [View, PassView])
@pytest.mark.parametrize("kernel", ["sdpa", "matmul"])
def test_a_view_used_under_inference_mode_can_be_trained_with_afterwards(make, kernel):
    # The mask of fully masked queries is saved for the backward pass.
    nothing_but_padding = REAL & torch.tensor([[True], [False]])
    view, x = make(causal=True, keys=nothing_but_padding), torch.nn.Parameter(K.clone())
    attention = ScaledDotProductConfig().build(num_heads=4, head_size=8)
    attention.kernel = KERNELS[kernel]
    with torch.inference_mode():
        attention(K, K, K, view)
    attention(x, x, x, view).sum().backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("make", [View, PassView])
def test_a_view_used_on_one_device_is_right_on_another(make):
    view = make(causal=True)
    assert view.mask(Q, K).device.type == view.additive_mask(Q, K).device.type == "cpu"
    elsewhere = Q.to("meta"), K.to("meta")
    assert view.mask(*elsewhere).device.type == "meta"
    assert view.additive_mask(*elsewhere).device.type == "meta"
    assert view.fully_masked(*elsewhere).device.type == "meta"
