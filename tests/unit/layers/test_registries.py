"""Mixers, feed-forward networks and norms are open: a class with a `kind` adds one, and recipes name it."""

from typing import Literal

import pytest
import torch
from torch import nn

from regardant.config import Config, load
from regardant.errors import ConfigError
from regardant.inspection.places import place_names
from regardant.layers.cache import LayerCache
from regardant.layers.feed_forward import (
    FeedForward,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    LinearFeedForwardConfig,
)
from regardant.layers.mixers import TokenMixerConfig
from regardant.layers.norms import LayerNormConfig, Norm, NormConfig, RMSNormConfig
from regardant.models import next_token, tokens
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_only import EncoderOnlyConfig


class HalvingConfig(FeedForwardConfig):
    """Half of everything."""

    kind: Literal["halving"] = "halving"

    def build(self, d_model, d_ff, dropout, *, causal):
        return Halving()


class Halving(FeedForward):
    def forward(self, x, view=None, cache=None):
        return x / 2


class PlainNormConfig(NormConfig):
    """Numbers as they are."""

    kind: Literal["plain"] = "plain"

    def build(self, size):
        return PlainNorm()


class PlainNorm(Norm):
    def forward(self, x):
        return x


class RunningMeanConfig(TokenMixerConfig):
    """The mean of a token and those before it, or of all tokens."""

    kind: Literal["running_mean"] = "running_mean"

    def build(self, d_model, *, max_length, causal):
        return RunningMean(causal)


class RunningSum(LayerCache):
    def __init__(self):
        self.total, self.count = 0, 0

    def reorder(self, rows):
        self.total = self.total[rows]


class RunningMean(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, x, view, cache=None):
        if not self.causal:
            return x.mean(1, keepdim=True).expand_as(x)
        total, count = (0, 0) if cache is None else (cache.total, cache.count)
        sums = x.cumsum(1) + total
        if cache is not None:
            cache.total, cache.count = sums[:, -1:], count + x.shape[1]
        return sums / torch.arange(count + 1, count + 1 + x.shape[1])[:, None]

    def start(self, capacity, beam_origin=None):
        return RunningSum()


class Layer(Config):
    feed_forward: FeedForwardConfig = LinearFeedForwardConfig()
    """Network."""
    normalisation: NormConfig = LayerNormConfig()
    """Norm."""


def test_recipes_keep_their_spelling():
    assert load(Layer, {"feed_forward": {"kind": "gated"}}).feed_forward == GatedFeedForwardConfig()
    assert load(Layer, {"feed_forward": {"activation": "gelu"}}).feed_forward.kind == "linear"
    assert load(Layer, {"normalisation": "rms_norm"}).normalisation == RMSNormConfig()
    assert load(Layer, {"normalisation": {"kind": "rms_norm"}}).normalisation == RMSNormConfig()
    assert load(Layer, {}, ["normalisation=rms_norm"]).normalisation == RMSNormConfig()
    assert (
        load(Layer, {"normalisation": "layer_norm"}, ["normalisation.kind=rms_norm"]).normalisation == RMSNormConfig()
    )


def test_a_written_configuration_is_read_again():
    layer = load(Layer, {"normalisation": "rms_norm", "feed_forward": {"kind": "convolution", "kernel": 3}})
    assert load(Layer, layer.model_dump(mode="json")) == layer


@pytest.mark.parametrize("given", ["batch_norm", {"kind": "batch_norm"}])
def test_a_norm_that_is_not_there_is_refused_with_those_that_are(given):
    with pytest.raises(ConfigError, match=r"normalisation.kind: given 'batch_norm'; allowed: layer_norm, layer_norm_"):
        load(Layer, {"normalisation": given})


def test_a_model_of_foreign_parts_computes_decodes_and_is_inspected():
    config = DecoderOnlyConfig(
        d_model=8, num_heads=2, num_layers=2, max_length=9, feed_forward=HalvingConfig(), normalisation="plain"
    )
    assert decodes_as_it_scores(config)
    model = config.build(tokens(11), next_token(11))
    assert not any(isinstance(module, nn.LayerNorm) for module in model.modules())
    assert "decoder.layers.0.after_feed_forward.norm.before" in place_names(model)


def decodes_as_it_scores(config):
    model = config.build(tokens(11), next_token(11)).eval()
    text = torch.randint(5, 11, (2, 9))
    with torch.no_grad():
        state = model.start(1, 9)
        stepped = torch.stack([model.step(piece, state) for piece in text.split(1, 1)], 1)
        return torch.allclose(stepped, model.scores(text), rtol=1e-4, atol=1e-5)


SIZES = {"d_model": 8, "num_heads": 2, "num_layers": 2, "d_ff": 16, "max_length": 9}


def test_a_foreign_mixer_is_named_by_its_kind_and_computes_and_decodes():
    config = load(DecoderOnlyConfig, SIZES | {"self_attention": {"kind": "running_mean"}})
    assert config.self_attention == RunningMeanConfig()
    assert decodes_as_it_scores(config)
    encoder = load(EncoderOnlyConfig, SIZES | {"self_attention": {"kind": "running_mean"}})
    mixer = encoder.build(tokens(11), next_token(11)).encoder.layers[0].self_attention
    assert isinstance(mixer, RunningMean) and not mixer.causal


def test_a_foreign_mixer_is_refused_positions_that_it_has_no_place_for():
    config = load(
        DecoderOnlyConfig, SIZES | {"self_attention": {"kind": "running_mean"}, "positions": {"kind": "alibi"}}
    )
    with pytest.raises(ValueError, match="running_mean has no queries, keys or scores for Alibi positions"):
        config.build(tokens(11), next_token(11))
