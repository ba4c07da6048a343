import pytest
import torch
from torch.testing import assert_close

from regardant.attention import AttentionConfig, ScaledDotProduct, View
from regardant.attention.linformer import Linformer, LinformerConfig
from regardant.attention.scored import DotProductAttention

from .mechanisms import (
    BATCH,
    FULL_SCENES,
    HEAD_SIZE,
    LENGTH,
    MECHANISMS,
    NUM_HEADS,
    REAL,
    SCENES,
    distance_bias,
    draw,
    honouring,
    in_scenes,
)

every_scene, full_scenes = in_scenes(), in_scenes(FULL_SCENES)
causal_scenes, padded_scenes = in_scenes(asking="causal"), in_scenes(asking="keys")
every_mechanism = pytest.mark.parametrize("make", honouring())
every_decoder = pytest.mark.parametrize("make", honouring("causal"))
PORTIONS = pytest.mark.parametrize("portions", [[1] * LENGTH, [1, 3, 2], [LENGTH]], ids=str)

BF16_BOUND = 2e-2
"""Values of unit variance reach 4, where a bfloat16 is off by up to 4 / 512; scores and weights add as much again."""


class SeesThePastAlone(ScaledDotProduct):
    honours = frozenset({"causal"})


def gradients(mixed, inputs):
    """Of a sum in which every number of `mixed` counts differently."""
    generator = torch.Generator().manual_seed(3)
    of_mixed = torch.randn(mixed.shape, generator=generator, dtype=mixed.dtype)
    # Hard attention learns nothing from queries and keys, location nothing from keys: zeros.
    return torch.autograd.grad(mixed, inputs, of_mixed, materialize_grads=True)


def decode(attention, tensors, portions, view):
    state, answers = attention.start(LENGTH), []
    with torch.no_grad():
        for q, k, v in zip(*(x.split(portions, 2) for x in tensors), strict=True):
            mixed, state = attention.step(q, k, v, state, view())
            answers.append(mixed)
    return torch.cat(answers, 2)


def assert_padded_equals_unpadded(attention, causal):
    q, k, v = draw(LENGTH, LENGTH)
    padded = attention(q, k, v, View(causal=causal, keys=REAL))
    for b, real in enumerate(REAL):
        alone = attention(*(x[b : b + 1, :, real] for x in (q, k, v)), View(causal=causal))
        assert_close(padded[b : b + 1, :, real], alone)


def test_every_mechanism_of_the_package_is_under_contract():
    assert {"scaled_dot_product/sdpa", "scaled_dot_product/matmul"} <= set(MECHANISMS)
    assert set(AttentionConfig.kinds()) <= {name.split("/")[0] for name in MECHANISMS}


@every_scene
def test_rows_of_weights_sum_to_one_or_to_zero_where_nothing_may_be_seen(make, scene):
    q, k, _ = scene.tensors()
    attention = make()
    weights, sees_some = attention.weights(q, k, scene.view()), scene.met(attention).any(-1)
    assert (weights[~sees_some] == 0).all()
    if not isinstance(attention, Linformer):  # whose mixtures of values are free
        assert_close(weights.sum(-1), sees_some.float())


@every_scene
def test_weights_are_never_negative_and_hidden_pairs_get_none(make, scene):
    q, k, _ = scene.tensors()
    attention = make()
    weights = attention.weights(q, k, scene.view())
    assert weights.min() >= 0 or isinstance(attention, Linformer)
    assert (weights[~scene.met(attention)] == 0).all()


@every_scene
def test_the_fast_path_equals_weights_times_values(make, scene):
    q, k, v = scene.tensors()
    attention = make()
    assert_close(attention(q, k, v, scene.view()), attention.weights(q, k, scene.view()) @ v)


@every_scene
def test_the_better_a_pair_scores_the_more_it_weighs_and_hidden_ones_score_nothing(make, scene):
    attention = make()
    if not attention.has_scores:
        return
    q, k, _ = scene.tensors()
    scores, weights = attention.scores(q, k, scene.view()), attention.weights(q, k, scene.view())
    assert torch.equal(scores == -torch.inf, ~scene.met(attention).expand_as(scores))
    descending = weights.gather(-1, scores.argsort(-1, descending=True))
    assert (descending.diff(dim=-1) <= 1e-6).all()
    if not isinstance(attention, DotProductAttention):  # these normalise by something else than a softmax
        assert_close(torch.softmax(scores, -1).nan_to_num(0), weights)


def test_a_mechanism_without_scores_says_so():
    mechanism = LinformerConfig().build(num_heads=NUM_HEADS, head_size=HEAD_SIZE)
    q, k, _ = draw(LENGTH, LENGTH)
    with pytest.raises(ValueError, match="Linformer does not score pairs: look at its weights"):
        mechanism.scores(q, k)


@every_scene
def test_the_gradient_of_the_fast_path_equals_that_of_weights_times_values(make, scene):
    inputs = scene.tensors(requires_grad=True)
    q, k, v = inputs
    attention = make()
    fast = gradients(attention(q, k, v, scene.view()), inputs)
    slow = gradients(attention.weights(q, k, scene.view()) @ v, inputs)
    assert_close(fast, slow, rtol=1e-4, atol=1e-5)


@full_scenes
def test_the_gradient_of_the_fast_path_equals_finite_differences(make, scene):
    attention = make().double()
    inputs = scene.tensors(torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, scene.view()), inputs, fast_mode=True)


@full_scenes
def test_the_gradient_of_weights_equals_finite_differences(make, scene):
    attention = make().double()
    q, k, _ = scene.tensors(torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda q, k: attention.weights(q, k, scene.view()), (q, k), fast_mode=True)


@pytest.mark.parametrize("make", honouring("bias"))
def test_a_learned_bias_gets_its_gradient(make):
    attention = make().double()
    inputs = draw(LENGTH, LENGTH, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(NUM_HEADS, LENGTH, LENGTH, dtype=torch.float64, requires_grad=True)

    def mix(q, k, v, bias):
        return attention(q, k, v, View(causal=True, keys=REAL, bias=lambda queries, keys: bias[:, queries][:, :, keys]))

    assert torch.autograd.gradcheck(mix, (*inputs, bias), fast_mode=True)


@pytest.mark.parametrize("make", honouring("bias"))
def test_looking_at_weights_first_takes_no_gradient_from_a_learned_bias(make):
    q, k, v = draw(LENGTH, LENGTH, requires_grad=True)
    bias = torch.zeros(NUM_HEADS, LENGTH, LENGTH, requires_grad=True)
    seen, unseen = (View(bias=lambda queries, keys: 2 * bias[:, queries][:, :, keys]) for _ in range(2))
    attention = make()
    with torch.no_grad():
        attention.weights(q, k, seen)
    assert_close(*(gradients(attention(q, k, v, view), [bias]) for view in (seen, unseen)))


@causal_scenes
def test_no_gradient_comes_from_the_future(make, scene):
    q, k, v = scene.tensors(requires_grad=True)
    attention = make()
    mixed, visible = attention(q, k, v, scene.view()), scene.visible
    for i in range(scene.num_queries):
        to_q, to_k, to_v = torch.autograd.grad(
            mixed[:, :, i].sum(), (q, k, v), retain_graph=True, materialize_grads=True
        )
        assert (to_k[~visible[:, :, i]] == 0).all()
        assert (to_v[~visible[:, :, i]] == 0).all()
        assert (to_q[:, :, torch.arange(scene.num_queries) != i] == 0).all()


@causal_scenes
def test_the_future_never_changes_the_past(make, scene):
    q, k, v = scene.tensors()
    attention = make()
    before = attention(q, k, v, scene.view())
    at_queries, at_keys = scene.view().positions(q, k)
    for i, at in enumerate(at_queries.tolist()):
        later = (at_keys > at)[:, None]
        after = attention(q, k + 50 * later, v - 50 * later, scene.view())
        assert_close(after[:, :, i], before[:, :, i], rtol=0, atol=1e-6)


@padded_scenes
def test_what_padding_holds_changes_nothing(make, scene):
    q, k, v = scene.tensors()
    attention = make()
    padding = ~scene.view().keys[:, None, :, None]
    after = attention(q, k + 50 * padding, v - 50 * padding, scene.view())
    assert_close(after, attention(q, k, v, scene.view()), rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", honouring("keys"))
def test_padded_equals_unpadded(make):
    assert_padded_equals_unpadded(make(), causal=False)


@pytest.mark.parametrize("make", honouring("keys", "causal"))
def test_padded_equals_unpadded_where_the_future_is_hidden(make):
    assert_padded_equals_unpadded(make(), causal=True)


@every_scene
def test_a_query_that_sees_nothing_mixes_to_zeros_and_every_gradient_is_finite(make, scene):
    inputs = scene.tensors(requires_grad=True)
    attention = make()
    mixed = attention(*inputs, scene.view())
    fully_masked = ~scene.met(attention).any(-1)
    assert (mixed[fully_masked] == 0).all()
    to_q, to_k, to_v = gradients(mixed, inputs)
    assert to_q.isfinite().all() and to_k.isfinite().all() and to_v.isfinite().all()
    assert (to_q[fully_masked] == 0).all()


@every_mechanism
def test_a_sentence_is_mixed_as_if_it_were_alone(make):
    q, k, v = draw(LENGTH, LENGTH)
    together = make()(q, k, v)
    for b in range(BATCH):
        assert_close(make()(q[b : b + 1], k[b : b + 1], v[b : b + 1]), together[b : b + 1])


@every_mechanism
def test_looking_at_weights_changes_nothing_that_runs(make):
    q, k, v = draw(LENGTH, LENGTH)
    attention = make()
    before, random_state = attention(q, k, v), torch.get_rng_state()
    attention.weights(q, k)
    assert torch.equal(torch.get_rng_state(), random_state)
    assert torch.equal(attention(q, k, v), before)


@pytest.mark.parametrize("make", [*honouring(), pytest.param(lambda: SeesThePastAlone(HEAD_SIZE), id="narrow")])
def test_a_view_that_cannot_be_honoured_is_refused_by_name(make):
    attention = make()
    for scene in SCENES.values():
        unmet = scene.view().asks() - attention.honours
        if not unmet:
            continue
        q, k, v = scene.tensors()
        refusal = f"{type(attention).__name__} cannot honour view.{', view.'.join(sorted(unmet))}; it honours "
        with pytest.raises(ValueError, match=refusal):
            attention(q, k, v, scene.view())
        with pytest.raises(ValueError, match=refusal):
            attention.weights(q, k, scene.view())
        with pytest.raises(ValueError, match=refusal):
            attention.step(q, k, v, attention.start(LENGTH), scene.view())


@every_decoder
def test_a_step_that_is_asked_for_padding_pairs_or_positions_refuses_them_by_name(make):
    attention = make()
    q, k, v = (x[:, :, :1] for x in draw(LENGTH, LENGTH))
    fields = {
        "keys": REAL[:, :1],
        "pairs": torch.ones(1, 1, 1, 1).bool(),
        "query_positions": torch.arange(1),
        "key_positions": torch.arange(1),
    }
    for name in fields.keys() & attention.honours:
        with pytest.raises(
            ValueError, match=rf"^{type(attention).__name__} decodes without view\.{name}; a step honours"
        ):
            attention.step(q, k, v, attention.start(LENGTH), View(causal=True, **{name: fields[name]}))


@PORTIONS
@every_decoder
def test_decoding_step_by_step_equals_one_pass(make, portions):
    tensors = draw(LENGTH, LENGTH)
    attention = make()
    stepped = decode(attention, tensors, portions, lambda: View(causal=True))
    assert_close(stepped, attention(*tensors, View(causal=True)))


@PORTIONS
@pytest.mark.parametrize("make", honouring("causal", "bias"))
def test_decoding_with_a_bias_equals_one_pass(make, portions):
    tensors = draw(LENGTH, LENGTH)
    attention = make()
    stepped = decode(attention, tensors, portions, lambda: View(causal=True, bias=distance_bias))
    assert_close(stepped, attention(*tensors, View(causal=True, bias=distance_bias)))


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 0, 0], [1], [2, 2, 1, 0, 1]], ids=str)
@every_decoder
def test_reordering_the_state_equals_reordering_what_was_read(make, rows):
    rows = torch.tensor(rows)
    tensors = draw(LENGTH, LENGTH)
    attention = make()
    state = attention.start(LENGTH)
    with torch.no_grad():
        for at in (slice(0, 2), slice(2, 4)):
            _, state = attention.step(*(x[:, :, at] for x in tensors), state, View(causal=True))
        state = attention.reorder(state, rows)
        for at in (slice(4, 5), slice(5, 6)):
            mixed, state = attention.step(*(x[rows, :, at] for x in tensors), state, View(causal=True))
            once = attention(*(x[rows] for x in tensors), View(causal=True))
            assert_close(mixed, once[:, :, at])


@every_decoder
def test_a_state_can_be_reordered_before_the_first_step(make):
    rows = torch.tensor([1, 0])
    q, k, v = (x[rows, :, :1] for x in draw(LENGTH, LENGTH))
    attention = make()
    with torch.no_grad():
        mixed, _ = attention.step(q, k, v, attention.reorder(attention.start(LENGTH), rows), View(causal=True))
    assert_close(mixed, v)  # the one key there is gets all the weight


@pytest.mark.parametrize("key_heads", [1, 2])
@every_mechanism
def test_fewer_key_heads_equal_repeated_ones(make, key_heads):
    q, k, v = draw(LENGTH, LENGTH, key_heads=key_heads)
    attention = make()
    repeated_k, repeated_v = (x.repeat_interleave(NUM_HEADS // key_heads, 1) for x in (k, v))
    assert_close(attention.weights(q, k), attention.weights(q, repeated_k))
    assert_close(attention(q, k, v), attention(q, repeated_k, repeated_v))


@every_decoder
def test_decoding_with_fewer_key_heads_equals_one_pass(make):
    tensors = draw(LENGTH, LENGTH, key_heads=2)
    attention = make()
    stepped = decode(attention, tensors, [1] * LENGTH, lambda: View(causal=True))
    assert_close(stepped, attention(*tensors, View(causal=True)))


@every_mechanism
def test_values_may_be_of_another_size_than_keys(make):
    q, k, v = draw(LENGTH, LENGTH, value_size=HEAD_SIZE + 3)
    attention = make()
    assert_close(attention(q, k, v), attention.weights(q, k) @ v)


@every_scene
def test_bfloat16_is_near_float32(make, scene):
    narrow = scene.tensors(torch.bfloat16)
    mixed = make()(*narrow, scene.view())
    assert mixed.dtype == torch.bfloat16
    exact = make()(*(x.float() for x in narrow), scene.view())
    assert (mixed.float() - exact).abs().max() <= BF16_BOUND


@every_mechanism
def test_bfloat16_is_near_float32_for_many_keys(make):
    narrow = draw(LENGTH, 200, dtype=torch.bfloat16)
    exact = make()(*(x.float() for x in narrow))
    assert (make()(*narrow).float() - exact).abs().max() <= BF16_BOUND


@every_mechanism
def test_float64_is_computed_in_float64(make):
    tensors = draw(LENGTH, LENGTH, dtype=torch.float64)
    attention = make().double()
    mixed = attention(*tensors)
    assert mixed.dtype == attention.weights(*tensors[:2]).dtype == torch.float64
    assert_close(mixed, attention.weights(*tensors[:2]) @ tensors[2], rtol=1e-12, atol=1e-12)
