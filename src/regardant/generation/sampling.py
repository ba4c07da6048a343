"""Sampling: draw each next token from the model's distribution.

temperature    logits / t before the softmax: near 0 the likeliest token alone, above 1 flatter than the model
top_k          only the k likeliest tokens (Fan et al. 2018, https://arxiv.org/abs/1805.04833)
top_p          only the fewest likeliest tokens that hold the share p (Holtzman et al. 2020, nucleus sampling,
               https://arxiv.org/abs/1904.09751), of those that top_k keeps

The random numbers of a sample depend on the seed and the sample's number alone, not on the other samples.

Shape legend: N samples, T tokens of the prompt, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor

from regardant import config as configuration
from regardant.config import Config
from regardant.data.vocabulary import EOS, NEVER_WRITTEN
from regardant.errors import DataError, RunError
from regardant.layers.linear import Layouts
from regardant.models.base import CausalModel

BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))
"""Largest random number: its product with any sum is below the sum."""

LOWEST_TEMPERATURE = 1e-30
"""Divisor of logits in float32 at any lower temperature. The softmax is the same: all its mass is on the largest."""


class SamplingConfig(Config):
    """Settings of the continuation of a text."""

    max_tokens: int = Field(500, gt=0)
    """Maximum number of tokens to write."""

    temperature: float = Field(1.0, ge=0, allow_inf_nan=False)
    """Divisor of the logits: 1 samples the learned distribution, 0 takes the likeliest token at every step."""

    top_k: int | None = Field(None, gt=0)
    """Number of likeliest tokens to draw from. Empty: all."""

    top_p: float = Field(1.0, gt=0, le=1)
    """Probability mass to draw from: only the fewest likeliest tokens that together reach this share."""

    ends: bool = False
    """True lets a text end before max_tokens, with EOS. Only an imported model has learned to write EOS."""

    def replaced(self, **fields: Any) -> Self:
        """Return a copy with the given fields, except None, replaced. Raises ConfigError."""
        changed = {name: value for name, value in fields.items() if value is not None}
        return configuration.load(type(self), {**self.model_dump(), **changed}, origin="generation")

    def distribution(self, logits: Float[Tensor, "*B V"]) -> Float[Tensor, "*B V"]:
        """Return the sampling probabilities in float32; excluded tokens have 0.

        Of equally likely tokens the one with the lower id ranks first.
        """
        if self.temperature == 0:
            likeliest = logits.argmax(-1, keepdim=True)  # the first of equal ones
            return torch.zeros_like(logits, dtype=torch.float32).scatter_(-1, likeliest, 1)
        if self.top_k is None and self.top_p == 1:  # nothing is left out: no need to rank
            wide = logits.float()
            if self.temperature != 1:
                wide = (wide - wide.amax(-1, keepdim=True)) / max(self.temperature, LOWEST_TEMPERATURE)
            return torch.softmax(wide, -1)
        ranked, order = logits.sort(dim=-1, descending=True, stable=True)
        ranked = ranked.double()  # after sorting, which takes longer in float64
        kept = torch.softmax((ranked - ranked[..., :1]) / self.temperature, -1)
        if self.top_k is not None:
            kept[..., self.top_k :] = 0
        before = kept.cumsum(-1) - kept
        kept = kept.masked_fill(before >= self.top_p * kept.sum(-1, keepdim=True), 0)
        return torch.zeros_like(kept).scatter(-1, order, kept / kept.sum(-1, keepdim=True)).float()


def sample(
    model: CausalModel,
    prompt: Int[Tensor, " T"],
    config: SamplingConfig,
    *,
    samples: Sequence[int],
    seed: int,
    layouts: Layouts,
) -> Iterator[Int[Tensor, " N"]]:
    """Yield the next token of every sample, at most `max_tokens` times; EOS after the end of a sample.

    `samples` are the numbers of the samples. `layouts` keep copies of the weights from one text to the next. The model
    must be in evaluation mode. When the context is full, sampling continues from its newer half; a model that carries a
    state needs no context. Raises DataError for an empty prompt, RunError if the first scores are not numbers.
    """
    if not len(prompt):
        raise DataError("the prompt is empty: give a prompt of at least one character")
    draws = np.stack([np.random.default_rng([seed, sample]).random(config.max_tokens) for sample in samples], 1)
    draws = np.minimum(draws.astype(np.float32), BELOW_ONE)
    context = model.config.max_length
    read = prompt if model.carries_state else prompt[-context:]
    seen = newest = read[None]
    ended = torch.zeros(len(samples), 1, dtype=torch.bool, device=prompt.device)
    state = model.start(1, context)
    never = torch.tensor(NEVER_WRITTEN if config.ends else (*NEVER_WRITTEN, EOS), device=prompt.device)
    for number, drawn in enumerate(torch.from_numpy(draws).to(prompt.device)):
        if seen.shape[1] > context and not model.carries_state:
            seen = newest = seen[:, -(context // 2) :]
            state = model.start(1, context)
        # Exit both contexts before yielding; otherwise they stay active in the caller.
        with torch.inference_mode(), layouts.in_use():
            for piece in newest.split(context, 1):
                logits = model.step(piece, state)
            if number == 0 and bool(logits.isnan().any()):  # later an accelerator would wait at each step
                raise RunError(
                    "the model's scores are not numbers, as its training has diverged: train anew at a lower rate"
                )
            if len(newest) < len(samples):  # the prompt was read once for all
                state.keep(torch.zeros(len(samples), dtype=torch.long, device=prompt.device))
                seen = seen.expand(len(samples), -1)
            logits.index_fill_(1, never, -torch.inf)  # a list of ids would become a tensor at every step
            newest = draw(config.distribution(logits).expand(len(samples), -1), drawn[:, None])
            if config.ends:
                newest = newest.masked_fill(ended, EOS)
                ended = newest == EOS
            seen = torch.cat([seen, newest], 1)[:, -context - 1 :]
        yield newest.squeeze(1)
        if config.ends and bool(ended.all()):
            return


def draw(chances: Float[Tensor, "N V"], numbers: Float[Tensor, "N 1"]) -> Int[Tensor, "N 1"]:
    """Return the tokens in whose shares of the distribution the numbers fall, from 0 to BELOW_ONE.

    In float32: softmax and sums take several times as long in float64.
    """
    ends = chances.cumsum(-1)  # summed in float64 on a CPU
    return torch.searchsorted(ends, numbers * ends[:, -1:], right=True)
