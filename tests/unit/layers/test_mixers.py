"""What does not go together is refused when a layer is built, by name, and never ignored."""

import pytest
import torch

from regardant.attention import AttentionConfig, ScaledDotProductConfig, View
from regardant.attention.additive import AdditiveConfig
from regardant.attention.linear import LinearAttentionConfig
from regardant.attention.linformer import LinformerConfig
from regardant.attention.lsh import LSHConfig
from regardant.attention.performer import PerformerConfig
from regardant.layers.convolution import ConvolutionMixerConfig
from regardant.layers.dense import DenseMixerConfig
from regardant.layers.mixers import build_mixer
from regardant.layers.multi_head import HeadShape
from regardant.positions import PositionsConfig, SinusoidalConfig
from regardant.positions.relative_bias import RelativeBiasConfig
from regardant.positions.rotary import RotaryConfig
from regardant.positions.shaw import ShawConfig

D_MODEL, NUM_HEADS, HEAD_SIZE, LENGTH = 16, 4, 4, 6
SHAPE = {"d_model": D_MODEL, "num_heads": NUM_HEADS, "head_size": HEAD_SIZE, "max_length": LENGTH}
ON_SCORES = [
    kind for kind, config in PositionsConfig.kinds().items() if config().build(**SHAPE, causal=True).acts_on == "scores"
]
UNSCALED, HOT = ScaledDotProductConfig(scaled=False), ScaledDotProductConfig(temperature=2.0)


def build(config, positions=None, projections="separate", *, causal=True, num_key_heads=NUM_HEADS):
    scheme = (positions or SinusoidalConfig()).build(**SHAPE, causal=causal)
    shape = HeadShape(D_MODEL, NUM_HEADS, num_key_heads, HEAD_SIZE, HEAD_SIZE)
    return build_mixer(config, shape, scheme, projections, max_length=LENGTH, causal=causal)


def vectors():
    return torch.randn(2, LENGTH, D_MODEL, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("kind", ON_SCORES)
@pytest.mark.parametrize(
    "config", [LinearAttentionConfig(), PerformerConfig(), LSHConfig()], ids=lambda config: config.kind
)
def test_a_bias_on_scores_is_refused_where_there_are_none(config, kind):
    with pytest.raises(ValueError, match=rf"^{config.kind} has no scores for \w+ positions to be added to: choose"):
        build(config, PositionsConfig.kinds()[kind]())


def test_a_mechanism_that_cannot_hide_the_future_is_refused_in_a_decoder_alone():
    with pytest.raises(ValueError, match=r"^Linformer cannot honour view\.causal; .* \(each of its mixtures holds"):
        build(LinformerConfig())
    build(LinformerConfig(), causal=False)


@pytest.mark.parametrize("kind", [*ON_SCORES, "rotary"])
@pytest.mark.parametrize("config", [ConvolutionMixerConfig(), DenseMixerConfig()], ids=lambda config: config.kind)
def test_positions_on_what_a_mixer_does_not_have_are_refused(config, kind):
    with pytest.raises(ValueError, match=rf"^{config.kind} has no queries, keys or scores for \w+ positions to act on"):
        build(config, PositionsConfig.kinds()[kind]())


@pytest.mark.parametrize("positions", [ShawConfig(), RelativeBiasConfig(scaled=True)], ids=lambda config: config.kind)
@pytest.mark.parametrize("config", [UNSCALED, HOT, AdditiveConfig()], ids=["unscaled", "hot", "additive"])
def test_a_bias_inside_the_scaling_is_refused_where_that_is_another_one(config, positions):
    with pytest.raises(ValueError, match=r"positions are scaled by 1 / sqrt\(head size\) like the products"):
        build(config, positions)
    build(ScaledDotProductConfig(), positions)


@pytest.mark.parametrize("config", [UNSCALED, HOT, AdditiveConfig()], ids=["unscaled", "hot", "additive"])
def test_a_bias_outside_the_scaling_goes_with_any(config):
    mixer = build(config, RelativeBiasConfig())
    mixer(vectors(), View(causal=True, bias=mixer.positions.shared_bias())).sum().backward()
    (bias,) = [one.grad for name, one in mixer.named_parameters() if name.startswith("positions.")]
    assert bias.abs().sum() > 0


def test_additive_attention_without_projections_is_refused():
    with pytest.raises(ValueError, match=r"^additive needs projected queries and keys: choose other projections than"):
        build(AdditiveConfig(), projections="none")


@pytest.mark.parametrize("projections", ["separate", "query_key", "key_value", "all", "none"])
def test_what_shares_queries_and_keys_gets_one_tensor_for_both_whatever_else_is_shared(projections):
    mixer = build(LSHConfig(), projections=projections)
    seen = []
    mixer.mechanism.register_forward_hook(lambda module, inputs, answer: seen.append(inputs))
    mixer(vectors(), View(causal=True))
    ((q, k, *_),) = seen
    assert torch.equal(q, k)


def test_a_value_that_shares_the_key_s_matrix_still_does_where_the_query_joins_them():
    assert build(LSHConfig(), projections="key_value").query_key_value.out_features == D_MODEL


@pytest.mark.parametrize("projections", ["separate", "key_value"])
def test_what_shares_queries_and_keys_has_as_many_heads_of_both(projections):
    with pytest.raises(ValueError, match=r"^lsh gives .* 2 key heads cannot serve 4 heads: leave out num_key_heads$"):
        build(LSHConfig(), projections=projections, num_key_heads=2)


@pytest.mark.parametrize("name", ["query_positions", "key_positions"])
def test_positions_of_the_view_are_refused_by_a_bias_that_counts_by_itself(name):
    mixer = build(ScaledDotProductConfig(), ShawConfig())
    with pytest.raises(ValueError, match=r"^Shaw counts tokens from 0: give the view no positions$"):
        mixer(vectors(), View(causal=True, **{name: torch.arange(LENGTH)}))


def test_a_kernel_without_a_middle_is_refused_in_an_encoder():
    with pytest.raises(ValueError, match=r"^a kernel of 4 has no middle: take an odd one in an encoder$"):
        build(ConvolutionMixerConfig(kernel=4), causal=False)
    build(ConvolutionMixerConfig(kernel=4))


def test_every_kind_of_attention_of_an_encoder_goes_with_rotary_positions():
    for config in AttentionConfig.kinds().values():
        here = vectors()
        mixed = build(config(), RotaryConfig(), causal=False)(here, View())
        assert mixed.shape == here.shape
