"""The logit lens: what a decoder would say next if it ended after each of its layers.

The residual stream goes through the last norm and the output projection before its time (nostalgebraist 2020,
"interpreting GPT: the logit lens"). Post-norm streams have no last norm, and go to the projection as they are.

Shape legend: L layers, B sentences, T tokens, N real tokens of all sentences, V vocabulary, M d_model.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regardant.data.vocabulary import PAD
from regardant.layers.residual import Stream
from regardant.models.decoder import Decoder
from regardant.models.heads import NextToken


@dataclass(frozen=True)
class LensReading:
    """Of every token that was written, before the first layer and after each: [L + 1, N]."""

    rank: Tensor
    """Of the token in the order of probability: 1 is the likeliest."""
    probability: Tensor
    """Of the token."""
    divergence: Tensor
    """Nats: Kullback and Leibler's divergence of the layer's distribution from the final one, D(final || layer)."""


def logit_lens(model: nn.Module, run: Callable[[], Tensor], written: Tensor) -> LensReading:
    """Read every layer of the decoder while `run` gives its logits [B, T, V] of the tokens `written` [B, T].

    Raises ValueError for a model without a stack of decoder layers, and for one that was not run exactly once.
    """
    stack = _stack(model)
    head = next(module for module in model.modules() if isinstance(module, NextToken))
    real = written != PAD
    tokens = written[real][:, None]
    with torch.no_grad(), _streams(stack.layers) as streams:
        final = run()[real].float().log_softmax(-1)
        if len(streams) != len(stack.layers) + 1:
            raise ValueError("one pass is read at a time: let `run` run the decoder once")
        readings = [
            _reading(F.linear(stack.final_norm(stream[real]), head.weight).float(), final, tokens) for stream in streams
        ]
    return LensReading(*(torch.stack(parts) for parts in zip(*readings, strict=True)))


def _reading(logits: Tensor, final: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    said = logits.log_softmax(-1)
    of_token = said.gather(1, tokens)
    rank = (said > of_token).sum(-1) + 1
    divergence = F.kl_div(said, final, reduction="none", log_target=True).sum(-1)
    return rank.cpu(), of_token[:, 0].exp().cpu(), divergence.cpu()


def _stack(model: nn.Module) -> Decoder:
    for module in model.modules():
        if isinstance(module, Decoder):
            return module
    raise ValueError(f"{type(model).__name__} has no stack of decoder layers to read a stream after")


@contextmanager
def _streams(layers: Sequence[nn.Module]) -> Iterator[list[Tensor]]:
    """What the stream says [B, T, M] before the first layer and after each."""
    said: list[Tensor] = []

    def before(layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        said.append(_said(inputs[0]))

    def after(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        said.append(_said(inputs[0]))

    with ExitStack() as listening:
        listening.callback(layers[0].register_forward_pre_hook(before).remove)
        for layer in layers:
            listening.callback(layer.register_forward_hook(after).remove)
        yield said


def _said(stream: Stream) -> Tensor:
    return stream.close()
