"""The contracts of attention: what every mechanism promises to layers, decoders and inspection."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.testing import assert_close

from regardant.attention import Attention, View
from regardant.attention.linformer import Linformer
from regardant.attention.scored import DotProductAttention
from regardant.checks.contracts.contract import Make, causal, contract, require, require_refused
from regardant.checks.contracts.scenes import (
    BATCH,
    FULL_SCENES,
    HEAD_SIZE,
    LENGTH,
    NUM_HEADS,
    REAL,
    SCENES,
    Scene,
    distance_bias,
    draw,
)

PORTIONS = ([1] * LENGTH, [1, 3, 2], [LENGTH])
"""Numbers of tokens in each step of a decoding of LENGTH tokens."""

ROWS = ([0, 1, 2], [2, 0, 0], [1], [2, 2, 1, 0, 1])
"""Indices of the rows of a decoding state that continue, in their new order."""

BF16_BOUND = 2e-2
"""Maximum error in bfloat16. Values of unit variance reach 4, with a rounding error of up to 4 / 512; scores and
weights add as much again."""


def _gradients(mixed: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return the gradients of a randomly weighted sum of `mixed` with respect to the inputs."""
    generator = torch.Generator().manual_seed(3)
    of_mixed = torch.randn(mixed.shape, generator=generator, dtype=mixed.dtype)
    # Hard attention has no gradient to queries and keys, location attention none to keys: zeros instead.
    return torch.autograd.grad(mixed, inputs, of_mixed, materialize_grads=True)


def _decode(
    attention: Attention, tensors: Sequence[Tensor], portions: Sequence[int], view: Callable[[], View]
) -> Tensor:
    state, answers = attention.start(LENGTH), []
    with torch.no_grad():
        for q, k, v in zip(*(x.split(list(portions), 2) for x in tensors), strict=True):
            mixed, state = attention.step(q, k, v, state, view())
            answers.append(mixed)
    return torch.cat(answers, 2)


def _at_finite_differences(function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> None:
    torch.autograd.gradcheck(function, tuple(inputs), fast_mode=True)  # raises GradcheckError, a RuntimeError


@contract()
def rows_of_weights_sum_to_one_or_to_zero_where_nothing_may_be_seen(make: Make, scene: Scene) -> None:
    q, k, _ = scene.tensors()
    attention = make()
    weights, sees_some = attention.weights(q, k, scene.view()), scene.attended(attention).any(-1)
    require(weights[~sees_some] == 0, "the weights of a fully masked query are not zero")
    if not isinstance(attention, Linformer):  # its mixtures are unconstrained
        assert_close(weights.sum(-1), sees_some.float())


@contract()
def weights_are_never_negative_and_masked_pairs_get_none(make: Make, scene: Scene) -> None:
    q, k, _ = scene.tensors()
    attention = make()
    weights = attention.weights(q, k, scene.view())
    require((weights >= 0).all() or isinstance(attention, Linformer), "a weight is negative")
    require(weights[~scene.attended(attention)] == 0, "a masked pair has a weight")


@contract()
def the_fast_path_equals_weights_times_values(make: Make, scene: Scene) -> None:
    q, k, v = scene.tensors()
    attention = make()
    assert_close(attention(q, k, v, scene.view()), attention.weights(q, k, scene.view()) @ v)


class _Square(nn.Module):
    def forward(self, weights: Tensor) -> Tensor:
        return weights.square()


@contract()
def what_training_drops_is_dropped_from_the_weights(make: Make, scene: Scene) -> None:
    q, k, v = scene.tensors()
    attention = make().train()
    expected = attention.weights(q, k, scene.view()).square() @ v
    attention.drop = _Square()  # deterministic, and independent of the layout of weights
    assert_close(attention(q, k, v, scene.view()), expected)


@contract()
def the_better_a_pair_scores_the_more_it_weighs_and_masked_ones_score_nothing(make: Make, scene: Scene) -> None:
    attention = make()
    if not attention.has_scores:
        return
    q, k, _ = scene.tensors()
    scores, weights = attention.scores(q, k, scene.view()), attention.weights(q, k, scene.view())
    masked = ~scene.attended(attention).expand_as(scores)
    require((scores == -torch.inf) == masked, "scores of masked pairs, and of no others, must be minus infinity")
    descending = weights.gather(-1, scores.argsort(-1, descending=True))
    require(descending.diff(dim=-1) <= 1e-6, "a pair with a lower score has a higher weight")
    if not isinstance(attention, DotProductAttention):  # its normalisers are no softmax
        assert_close(torch.softmax(scores, -1).nan_to_num(0), weights)


@contract()
def the_gradient_of_the_fast_path_equals_that_of_weights_times_values(make: Make, scene: Scene) -> None:
    inputs = scene.tensors(requires_grad=True)
    q, k, v = inputs
    attention = make()
    fast = _gradients(attention(q, k, v, scene.view()), inputs)
    slow = _gradients(attention.weights(q, k, scene.view()) @ v, inputs)
    assert_close(fast, slow, rtol=1e-4, atol=1e-5)


@contract(scenes=FULL_SCENES)
def the_gradient_of_the_fast_path_equals_finite_differences(make: Make, scene: Scene) -> None:
    attention = make().double()
    inputs = scene.tensors(torch.float64, requires_grad=True)
    _at_finite_differences(lambda q, k, v: attention(q, k, v, scene.view()), inputs)


@contract(scenes=FULL_SCENES)
def the_gradient_of_weights_equals_finite_differences(make: Make, scene: Scene) -> None:
    attention = make().double()
    q, k, _ = scene.tensors(torch.float64, requires_grad=True)
    _at_finite_differences(lambda q, k: attention.weights(q, k, scene.view()), (q, k))


@contract("bias")
def a_learned_bias_gets_its_gradient(make: Make) -> None:
    attention = make().double()
    inputs = draw(LENGTH, LENGTH, dtype=torch.float64, requires_grad=True)
    generator = torch.Generator().manual_seed(4)
    bias = torch.randn(NUM_HEADS, LENGTH, LENGTH, generator=generator, dtype=torch.float64, requires_grad=True)

    def mix(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Any:
        return attention(q, k, v, View(causal=True, keys=REAL, bias=lambda queries, keys: bias[:, queries][:, :, keys]))

    _at_finite_differences(mix, (*inputs, bias))


@contract("bias")
def looking_at_weights_first_takes_no_gradient_from_a_learned_bias(make: Make) -> None:
    q, k, v = draw(LENGTH, LENGTH, requires_grad=True)
    bias = torch.zeros(NUM_HEADS, LENGTH, LENGTH, requires_grad=True)
    seen, unseen = (View(bias=lambda queries, keys: 2 * bias[:, queries][:, :, keys]) for _ in range(2))
    attention = make()
    with torch.no_grad():
        attention.weights(q, k, seen)
    assert_close(*(_gradients(attention(q, k, v, view), [bias]) for view in (seen, unseen)))


@contract("causal")
def no_gradient_comes_from_the_future(make: Make, scene: Scene) -> None:
    q, k, v = scene.tensors(requires_grad=True)
    attention = make()
    mixed, visible = attention(q, k, v, scene.view()), scene.visible
    for i in range(scene.num_queries):
        to_q, to_k, to_v = torch.autograd.grad(
            mixed[:, :, i].sum(), (q, k, v), retain_graph=True, materialize_grads=True
        )
        require(to_k[~visible[:, :, i]] == 0, f"query {i} has a gradient to a masked key")
        require(to_v[~visible[:, :, i]] == 0, f"query {i} has a gradient to a masked value")
        others = torch.arange(scene.num_queries) != i
        require(to_q[:, :, others] == 0, f"query {i} has a gradient to another query")


@contract("causal")
def the_future_never_changes_the_past(make: Make, scene: Scene) -> None:
    q, k, v = scene.tensors()
    attention = make()
    before = attention(q, k, v, scene.view())
    at_queries, at_keys = scene.view().positions(q, k)
    for i, at in enumerate(at_queries.tolist()):
        later = (at_keys > at)[:, None]
        after = attention(q, k + 50 * later, v - 50 * later, scene.view())
        assert_close(after[:, :, i], before[:, :, i], rtol=0, atol=1e-6)


@contract("keys")
def what_padding_holds_changes_nothing(make: Make, scene: Scene) -> None:
    q, k, v = scene.tensors()
    attention = make()
    padding = ~scene.fields["keys"][:, None, :, None]
    after = attention(q, k + 50 * padding, v - 50 * padding, scene.view())
    assert_close(after, attention(q, k, v, scene.view()), rtol=0, atol=1e-6)


@contract("keys")
def padded_equals_unpadded(make: Make) -> None:
    _padded_equals_unpadded(make(), is_causal=False)


@contract("keys", "causal")
def padded_equals_unpadded_where_the_future_is_masked(make: Make) -> None:
    _padded_equals_unpadded(make(), is_causal=True)


def _padded_equals_unpadded(attention: Attention, is_causal: bool) -> None:
    q, k, v = draw(LENGTH, LENGTH)
    padded = attention(q, k, v, View(causal=is_causal, keys=REAL))
    for b, real in enumerate(REAL):
        alone = attention(*(x[b : b + 1, :, real] for x in (q, k, v)), View(causal=is_causal))
        assert_close(padded[b : b + 1, :, real], alone)


@contract()
def a_query_that_sees_nothing_mixes_to_zeros_and_every_gradient_is_finite(make: Make, scene: Scene) -> None:
    inputs = scene.tensors(requires_grad=True)
    attention = make()
    mixed = attention(*inputs, scene.view())
    fully_masked = ~scene.attended(attention).any(-1)
    require(mixed[fully_masked] == 0, "the output of a fully masked query is not zero")
    gradients = _gradients(mixed, inputs)
    require(all(one.isfinite().all() for one in gradients), "a gradient is not finite")
    require(gradients[0][fully_masked] == 0, "a fully masked query has a gradient")


@contract()
def a_sentence_is_mixed_as_if_it_were_alone(make: Make) -> None:
    q, k, v = draw(LENGTH, LENGTH)
    together = make()(q, k, v)
    for b in range(BATCH):
        assert_close(make()(q[b : b + 1], k[b : b + 1], v[b : b + 1]), together[b : b + 1])


@contract()
def looking_at_weights_changes_nothing_that_runs(make: Make) -> None:
    q, k, v = draw(LENGTH, LENGTH)
    attention = make()
    before, random_state = attention(q, k, v), torch.get_rng_state()
    attention.weights(q, k)
    require(torch.equal(torch.get_rng_state(), random_state), "weights draws random numbers from the global generator")
    require(torch.equal(attention(q, k, v), before), "weights changes the next result of forward")


@contract()
def a_view_that_cannot_be_honoured_is_refused_by_name(make: Make) -> None:
    attention = make()
    for scene in SCENES.values():
        unmet = scene.view().asked - attention.honours
        if not unmet:
            continue
        q, k, v = scene.tensors()
        begins = f"{type(attention).__name__} cannot honour view.{', view.'.join(sorted(unmet))}; it honours "
        require_refused(begins, attention, q, k, v, scene.view())
        require_refused(begins, attention.weights, q, k, scene.view())
        require_refused(begins, attention.step, q, k, v, attention.start(LENGTH), scene.view())


@contract("causal")
def a_step_that_is_asked_for_padding_pairs_or_positions_refuses_them_by_name(make: Make) -> None:
    attention = make()
    q, k, v = (x[:, :, :1] for x in draw(LENGTH, LENGTH))
    fields = {
        "keys": REAL[:, :1],
        "pairs": torch.ones(1, 1, 1, 1).bool(),
        "query_positions": torch.arange(1),
        "key_positions": torch.arange(1),
    }
    for name in fields.keys() & attention.honours:
        view = View(causal=True, **{name: fields[name]})  # type: ignore[arg-type]
        begins = f"{type(attention).__name__} decodes without view.{name}; a step honours"
        require_refused(begins, attention.step, q, k, v, attention.start(LENGTH), view)


@contract("causal")
def decoding_step_by_step_equals_one_pass(make: Make) -> None:
    tensors = draw(LENGTH, LENGTH)
    for portions in PORTIONS:
        attention = make()
        assert_close(_decode(attention, tensors, portions, causal), attention(*tensors, causal()))


@contract("causal", "bias")
def decoding_with_a_bias_equals_one_pass(make: Make) -> None:
    tensors = draw(LENGTH, LENGTH)
    for portions in PORTIONS:
        attention = make()
        stepped = _decode(attention, tensors, portions, lambda: View(causal=True, bias=distance_bias))
        assert_close(stepped, attention(*tensors, View(causal=True, bias=distance_bias)))


@contract("causal")
def reordering_the_state_equals_reordering_what_was_read(make: Make) -> None:
    for order in ROWS:
        rows = torch.tensor(order)
        tensors = draw(LENGTH, LENGTH)
        attention = make()
        state = attention.start(LENGTH)
        with torch.no_grad():
            for at in (slice(0, 2), slice(2, 4)):
                q, k, v = (x[:, :, at] for x in tensors)
                _, state = attention.step(q, k, v, state, causal())
            state = attention.reorder(state, rows)
            for at in (slice(4, 5), slice(5, 6)):
                q, k, v = (x[rows, :, at] for x in tensors)
                mixed, state = attention.step(q, k, v, state, causal())
                once = attention(*(x[rows] for x in tensors), causal())
                assert_close(mixed, once[:, :, at])


@contract("causal")
def a_state_can_be_reordered_before_the_first_step(make: Make) -> None:
    rows = torch.tensor([1, 0])
    q, k, v = (x[rows, :, :1] for x in draw(LENGTH, LENGTH))
    attention = make()
    with torch.no_grad():
        mixed, _ = attention.step(q, k, v, attention.reorder(attention.start(LENGTH), rows), causal())
    assert_close(mixed, v)  # the only key gets all the weight


@contract()
def fewer_key_heads_equal_repeated_ones(make: Make) -> None:
    for key_heads in (1, 2):
        q, k, v = draw(LENGTH, LENGTH, key_heads=key_heads)
        attention = make()
        repeated_k, repeated_v = (x.repeat_interleave(NUM_HEADS // key_heads, 1) for x in (k, v))
        assert_close(attention.weights(q, k), attention.weights(q, repeated_k))
        assert_close(attention(q, k, v), attention(q, repeated_k, repeated_v))


@contract("causal")
def decoding_with_fewer_key_heads_equals_one_pass(make: Make) -> None:
    tensors = draw(LENGTH, LENGTH, key_heads=2)
    attention = make()
    assert_close(_decode(attention, tensors, [1] * LENGTH, causal), attention(*tensors, causal()))


@contract()
def values_may_be_of_another_size_than_keys(make: Make) -> None:
    q, k, v = draw(LENGTH, LENGTH, value_size=HEAD_SIZE + 3)
    attention = make()
    assert_close(attention(q, k, v), attention.weights(q, k) @ v)


@contract()
def bfloat16_is_near_float32(make: Make, scene: Scene) -> None:
    _bfloat16_is_near_float32(make, scene.tensors(torch.bfloat16), scene.view)


@contract()
def bfloat16_is_near_float32_for_many_keys(make: Make) -> None:
    _bfloat16_is_near_float32(make, draw(LENGTH, 200, dtype=torch.bfloat16), View)


def _bfloat16_is_near_float32(make: Make, narrow: Sequence[Tensor], view: Callable[[], View]) -> None:
    mixed = make()(*narrow, view())
    require(mixed.dtype == torch.bfloat16, f"for bfloat16 the output is {mixed.dtype}")
    exact = make()(*(x.float() for x in narrow), view())
    off = float((mixed.float() - exact).detach().abs().max())
    require(off <= BF16_BOUND, f"the bfloat16 output is off by {off:.3g}, allowed {BF16_BOUND}: compute in float32")


@contract()
def float64_is_computed_in_float64(make: Make) -> None:
    tensors = draw(LENGTH, LENGTH, dtype=torch.float64)
    attention = make().double()
    mixed, weights = attention(*tensors), attention.weights(tensors[0], tensors[1])
    require(
        mixed.dtype == weights.dtype == torch.float64,
        f"for float64 the output is {mixed.dtype}, the weights {weights.dtype}",
    )
    assert_close(mixed, weights @ tensors[2], rtol=1e-12, atol=1e-12)
