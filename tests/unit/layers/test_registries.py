"""Feed-forward networks and norms are open: a class with a `kind` adds one, and recipes name it."""

from typing import Literal

import pytest
import torch
from torch import nn

from regardant.config import Config, load
from regardant.errors import ConfigError
from regardant.inspection.places import place_names
from regardant.layers.feed_forward import (
    FeedForward,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    LinearFeedForwardConfig,
)
from regardant.layers.norms import LayerNormConfig, Norm, NormConfig, RMSNormConfig
from regardant.models import next_token, tokens
from regardant.models.decoder_only import DecoderOnlyConfig


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
    model = config.build(tokens(11), next_token(11)).eval()
    text = torch.randint(5, 11, (2, 9))
    with torch.no_grad():
        state = model.start(1, 9)
        stepped = torch.stack([model.step(piece, state) for piece in text.split(1, 1)], 1)
        torch.testing.assert_close(stepped, model.scores(text))
    assert not any(isinstance(module, nn.LayerNorm) for module in model.modules())
    assert "decoder.layers.0.after_feed_forward.norm.before" in place_names(model)
