"""Regardant's own search over a trained run, and the same search over a model that remembers nothing.

Arguments: the run, the sentences, and what products are in, if not in the weights' own precision.
"""

import sys
from typing import Any

import torch
from decoding_loop import MOST_TOKENS, answer_requests, folder
from serve import Driver
from torch import Tensor

import regardant
from regardant.generation.config import GenerationConfig
from regardant.generation.parallel import each_in_parallel
from regardant.generation.search import generate
from regardant.layers.linear import Layouts
from regardant.models import Model


class Prefixes:
    """A decoding state that is nothing but what was written so far."""

    def __init__(self, source: Tensor, beam_size: int) -> None:
        self.source = source
        self.written = torch.empty(len(source), beam_size, 0, dtype=torch.int64)

    def reorder(self, beams: Tensor) -> None:
        self.written = self.written.gather(1, beams[..., None].expand_as(self.written))

    def keep(self, sentences: Tensor) -> None:
        self.source, self.written = self.source[sentences], self.written[sentences]


class Anew:
    """The model, reading source and prefix again at every step: slow, and what any faster way must equal."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def encode(self, source: Tensor) -> Tensor:
        return source

    def start(self, memory: Tensor, beam_size: int, max_length: int) -> Prefixes:
        return Prefixes(memory, beam_size)

    def step(self, tokens: Tensor, state: Prefixes) -> Tensor:
        state.written = torch.cat([state.written, tokens[..., None]], 2)
        sources = state.source.repeat_interleave(tokens.shape[1], 0)
        return self.model.scores(sources, state.written.flatten(0, 1))[:, -1].view(*tokens.shape, -1)


def main() -> None:
    driver = Driver()
    model = regardant.load(folder()).translator.model

    layouts = Layouts(getattr(torch, sys.argv[3]) if len(sys.argv) > 3 else None)

    def translate(sources: list[list[int]], request: dict[str, Any]) -> list[list[int]]:
        """Where batches come as one, it takes several of `batch_size` at once."""
        generation = GenerationConfig(
            beam_size=request["beam_size"], length_penalty=1.0, max_length_ratio=0, max_length_extra=MOST_TOKENS
        )
        size = request["batch_size"]
        batches = [sources[start : start + size] for start in range(0, len(sources), size)]
        searched: Any = Anew(model) if request.get("anew") else model

        def decode(batch: list[list[int]]) -> list[list[int]]:
            source = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in batch], batch_first=True)
            with layouts.in_use():
                found = generate(searched, source, generation, max_length=model.config.max_length - 1)
            return [best.tokens for best, *_ in found]

        return [tokens for found in each_in_parallel(decode, batches, torch.get_num_threads()) for tokens in found]

    driver.answer(
        versions={"regardant": regardant.__version__, "torch": str(torch.__version__)},
        threads=torch.get_num_threads(),
    )
    answer_requests(driver, translate)


if __name__ == "__main__":
    main()
