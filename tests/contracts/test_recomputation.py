"""What the backward pass computes again is what the forward pass computed: the gradients are those of what is kept."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from regardant.attention import AttentionConfig, View
from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.layers import convolution, dense, residual
from regardant.layers.feed_forward import ConvolutionalFeedForwardConfig, GatedFeedForwardConfig
from regardant.layers.residual import CheckpointedStream, EagerTwoStreams, TwoStreams
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.positions import PositionsConfig
from tests.models import loss_of_pairs, loss_of_text, over_pairs, over_text

from . import plugins  # noqa: F401  which adds a mechanism

VOCAB_SIZE = 12
SOURCE = torch.tensor([[5, 6, 7, 8, 9, EOS], [9, 5, 6, EOS, PAD, PAD]])
TARGET = torch.tensor([[SOS, 9, 8, 7, 6, 5, EOS], [SOS, 6, 5, 9, EOS, PAD, PAD]])
SIZES = {"num_heads": 4, "d_ff": 32, "dropout": 0.3, "max_length": 32}


def encoder_decoder(encoder=None, decoder=None, **fields):
    """Two layers each, and their loss; fields of the stacks."""
    stacks = {"encoder": {"num_layers": 2} | (encoder or {}), "decoder": {"num_layers": 2} | (decoder or {})}
    config = EncoderDecoderConfig(preset=None, **{"d_model": 16} | SIZES | stacks | fields)
    torch.manual_seed(0)
    return over_pairs(config, VOCAB_SIZE, label_smoothing=0.1), lambda model: loss_of_pairs(model, SOURCE, TARGET)


def decoder_only(**fields):
    """Two layers, and their loss."""
    config = DecoderOnlyConfig(**{"d_model": 16, "num_layers": 2} | SIZES | fields)
    torch.manual_seed(0)
    text = TARGET[:1].repeat(1, 2)
    return over_text(config, VOCAB_SIZE, label_smoothing=0.1), lambda model: loss_of_text(model, text)


def writes(kind):
    try:
        AttentionConfig.kinds()[kind]().build(num_heads=4, head_size=4).check(View(causal=True))
    except ValueError:
        return False
    return True


def at(kind):
    """The fields of a model with these positions."""
    beside = PositionsConfig.kinds()[kind]().width(16, 32)
    positions = {"positions": PositionsConfig.kinds()[kind]()}
    return positions | ({"tie_embeddings": "none", "d_model": 48} if beside else {})


KINDS, PLACES = AttentionConfig.kinds(), list(PositionsConfig.kinds())
T5 = PositionsConfig.kinds()["t5"]()

MODELS = {
    **{f"reading by {kind}": (encoder_decoder, {"encoder": {"self_attention": KINDS[kind]()}}) for kind in KINDS},
    **{
        f"writing by {kind}": (encoder_decoder, {"decoder": {"self_attention": KINDS[kind]()}})
        for kind in filter(writes, KINDS)
    },
    **{f"at {kind} positions": (encoder_decoder, at(kind)) for kind in PLACES},
    **{f"going on at {kind} positions": (decoder_only, at(kind)) for kind in PLACES},
    "gated": (encoder_decoder, {"feed_forward": GatedFeedForwardConfig(), "normalisation": "rms_norm"}),
    "convolutional": (
        encoder_decoder,
        {
            "encoder": {"self_attention": convolution.ConvolutionMixerConfig()},
            "decoder": {"self_attention": dense.DenseMixerConfig()},
            "feed_forward": ConvolutionalFeedForwardConfig(kernel=3),
        },
    ),
}

PRE_NORM_ALONE = {
    "post-norm": (encoder_decoder, {"norm": "post", "positions": T5}),
    "no residuals": (encoder_decoder, {"residual": "none", "positions": T5}),
    "memory of every layer": (encoder_decoder, {"memory": "per_layer", "positions": T5}),
    "going on, post-norm": (decoder_only, {"norm": "post", "positions": T5}),
    "going on, no residuals": (decoder_only, {"residual": "none", "positions": T5}),
}
"""What reversible residuals cannot be."""


def gradients(build, fields):
    """The loss, and all gradients by name, in double precision: what differs by rounding alone is equal."""
    model, loss_of = build(**fields)
    model.double().train()
    torch.manual_seed(1)  # for mechanisms that draw
    loss = loss_of(model).total
    torch.manual_seed(2)  # whoever draws between the passes
    loss.backward()
    return {"loss": loss.detach()} | {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("name", [*MODELS, *PRE_NORM_ALONE])
def test_checkpointing_changes_no_gradient(name, monkeypatch):
    build, fields = (MODELS | PRE_NORM_ALONE)[name]
    kept = gradients(build, fields)
    used = []
    monkeypatch.setattr(residual, "CheckpointedStream", lambda x: used.append(x) or CheckpointedStream(x))
    computed_again = gradients(build, fields | {"activation_checkpointing": True})
    assert used
    assert_close(computed_again, kept, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_reversing_changes_no_gradient(name, monkeypatch):
    build, fields = MODELS[name]
    fields = fields | {"residual": "reversible"}
    computed_again = gradients(build, fields)
    used = []
    monkeypatch.setattr(residual, "TwoStreams", lambda x: used.append(x) or EagerTwoStreams(x))
    kept = gradients(build, fields)
    assert used
    assert_close(computed_again, kept, rtol=1e-8, atol=1e-10)


def test_a_model_that_is_not_trained_computes_nothing_again(monkeypatch):
    for stream in (CheckpointedStream, TwoStreams):
        monkeypatch.setattr(residual, stream.__name__, None)
    for more in ({"activation_checkpointing": True}, {"residual": "reversible"}):
        model, loss_of = decoder_only(**more)
        assert loss_of(model.eval()).total.isfinite()


def test_what_is_reversible_has_nothing_to_checkpoint():
    with pytest.raises(ValueError, match="choose one"):
        DecoderOnlyConfig(residual="reversible", activation_checkpointing=True)


class Held(TorchDispatchMode):
    """The most bytes at once of what operations made."""

    def __init__(self) -> None:
        super().__init__()
        self.storages, self.most = WeakIdKeyDictionary(), 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        found = function(*arguments, **(keywords or {}))
        for tensor in tree_leaves(found):
            if isinstance(tensor, Tensor):
                self.storages[tensor.untyped_storage()] = tensor.untyped_storage().nbytes()
        self.most = max(self.most, sum(self.storages.values()))
        return found


def most_held(**fields):
    torch.manual_seed(0)
    config = DecoderOnlyConfig(d_model=32, num_heads=4, d_ff=64, num_layers=12, max_length=64, **fields)
    model = over_text(config, VOCAB_SIZE)
    with Held() as held:
        loss_of_text(model.train(), torch.randint(VOCAB_SIZE, (8, 65))).total.backward()
    return held.most


def test_twelve_checkpointed_layers_hold_a_fraction():
    assert most_held(activation_checkpointing=True) < most_held() / 3
    assert most_held(residual="reversible") < most_held() / 3
