"""The cost of published models, counted on this package's own layers on the meta device.

Training takes 6 N D FLOPs for N parameters and D tokens (Kaplan et al. 2020, https://arxiv.org/abs/2001.08361, section
2.1). A forward pass takes 2 N per token and, in each attention, 4 d_model for each token attended to: 2 for its score
and 2 for its value. An encoder-decoder has three attentions for each pair of layers; its tokens are those of the
target, each with one of the source.

Kaplan's N leaves out embeddings; here N is all parameters. All pairs of tokens are counted. A causal model needs half
of them, 2 d_model for each token of the context, which is Kaplan's term. 6 N D leaves attention out, as theirs does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from regardant.layers.multi_head import CrossAttention, SelfAttention
from regardant.models import EncoderDecoderConfig, next_token, tokens
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_only import EncoderOnlyConfig

VOCABULARY = 37_000
"""Entries of the joint vocabulary of WMT14 English-German in Vaswani et al. 2017, section 5.1."""

BYTES_OF_TRAINING = 16
"""Bytes per parameter in mixed precision: weight and gradient 2 each, float32 copy and two moments of Adam 4 each."""


@dataclass(frozen=True)
class Published:
    """A published model with the tokens that it was trained on."""

    title: str
    build: Callable[[], nn.Module]
    d_model: int
    length: int
    """Tokens that a token attends to, in each attention."""
    tokens: float
    source: str

    def cost(self) -> "PublishedCost":
        """Return the cost of the model."""
        with torch.device("meta"):
            model = self.build()
        parameters = sum(one.numel() for one in model.parameters())
        attentions = sum(isinstance(one, SelfAttention | CrossAttention) for one in model.modules())
        attention = 4 * attentions * self.d_model * self.length
        return PublishedCost(
            parameters=parameters,
            weight_bytes=2 * parameters,
            training_bytes=BYTES_OF_TRAINING * parameters,
            forward_flops_per_token=float(2 * parameters + attention),
            training_flops=6 * parameters * self.tokens,
            tokens=self.tokens,
            title=self.title,
            source=self.source,
        )


@dataclass(frozen=True)
class PublishedCost:
    """Parameters, memory and compute of a published model."""

    parameters: int
    weight_bytes: int
    """Bytes of the weights in bfloat16."""
    training_bytes: int
    """Bytes of weights, gradients and optimizer, without activations."""
    forward_flops_per_token: float
    training_flops: float
    tokens: float
    title: str
    source: str

    def as_dict(self) -> dict[str, Any]:
        """Return the content of --json."""
        return dict(vars(self))

    def lines(self) -> list[str]:
        """Return the lines to print."""
        return [
            f"model           {self.title}",
            f"parameters      {self.parameters:,}",
            f"memory          {self.weight_bytes / 2**30:,.1f} GiB of weights in bfloat16; to train "
            f"{self.training_bytes / 2**30:,.1f} GiB without activations",
            f"forward pass    {self.forward_flops_per_token:.3g} FLOP a token",
            f"training        {self.training_flops:.3g} FLOP for {self.tokens:.3g} tokens",
            f"source          {self.source}",
        ]


def _encoder_decoder(preset: str) -> Callable[[], nn.Module]:
    config = EncoderDecoderConfig.model_validate({"preset": preset})
    return lambda: config.build(tokens(VOCABULARY), tokens(VOCABULARY), next_token(VOCABULARY))


def _gpt_3() -> nn.Module:
    return DecoderOnlyConfig.model_validate({"preset": "gpt3"}).build(tokens(50_257), next_token(50_257))


def _bert() -> nn.Module:
    config = EncoderOnlyConfig.model_validate(
        {
            "d_model": 768,
            "num_heads": 12,
            "d_ff": 3072,
            "num_layers": 12,
            "max_length": 512,
            "norm": "post",
            "positions": {"kind": "learned"},
            "embedding_norm": True,
            "tie_embeddings": True,
            "scale_embeddings": False,
        }
    )
    return config.build(tokens(30_522), next_token(30_522))


VASWANI = "Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, table 3; 25,000 target tokens an update"

PUBLISHED: dict[str, Published] = {
    "base": Published("Transformer base, 37,000 words", _encoder_decoder("base"), 512, 50, 100_000 * 25_000, VASWANI),
    "big": Published("Transformer big, 37,000 words", _encoder_decoder("big"), 1024, 50, 300_000 * 25_000, VASWANI),
    "bert": Published(
        "BERT base, without segments and pooler",
        _bert,
        768,
        512,
        1_000_000 * 256 * 512,
        "Devlin et al. 2019, https://arxiv.org/abs/1810.04805, appendix A.2: rows of 512 tokens in all steps, as "
        "its 40 epochs imply; 43 billion tokens if 90 % of the steps have rows of 128, as it also says",
    ),
    "gpt3": Published(
        "GPT-3", _gpt_3, 12_288, 2048, 300e9, "Brown et al. 2020, https://arxiv.org/abs/2005.14165, table 2.1"
    ),
}
"""Models that `plan` knows by name."""
