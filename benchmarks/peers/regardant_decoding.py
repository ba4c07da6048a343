"""Regardant's own search over a trained run, and the same search over a model without a cache.

Arguments: the run, the sentences, the precision of matrix products (float32 or bfloat16).
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from decoding_loop import Translate, answer_requests, folder, most_tokens
from devices import DEVICE
from serve import Driver
from torch import Tensor

import regardant
from regardant.generation.config import GenerationConfig
from regardant.generation.search import BatchSizes, ModelSearcher
from regardant.layers.linear import Layouts
from regardant.models import SequenceToSequenceModel


@dataclass
class Prefixes:
    """A decoding state that holds the tokens written so far and nothing computed from them."""

    source: Tensor
    written: Tensor

    def reorder(self, beams: Tensor) -> None:
        self.written = self.written.gather(1, beams[..., None].expand(-1, -1, self.written.shape[2]))

    def keep(self, sentences: Tensor) -> None:
        self.source, self.written = self.source[sentences], self.written[sentences]


class Uncached:
    """The model, computing source and prefix again at every step: the slow reference for cached search."""

    def __init__(self, model: SequenceToSequenceModel) -> None:
        self.model = model

    def encode(self, source: Tensor) -> Tensor:
        return source

    def start(self, memory: Tensor, beam_size: int, max_length: int) -> Prefixes:
        return Prefixes(memory, torch.empty(len(memory), 1, 0, dtype=torch.int64))

    def step(self, tokens: Tensor, state: Prefixes) -> Tensor:
        state.written = torch.cat([state.written, tokens[..., None]], 2)
        sources = state.source.repeat_interleave(tokens.shape[1], 0)
        return self.model.scores(sources, state.written.flatten(0, 1))[:, -1].view(*tokens.shape, -1)


def translating(precision: str, workers: int) -> Translate:
    """Return the search of the run with products in a precision, on a CPU with so many workers."""
    translator = regardant.load(folder()).translator
    model, most = translator.model, most_tokens()
    layouts = Layouts(None if precision == "float32" else getattr(torch, precision))

    def translate(sources: list[list[int]], request: dict[str, Any]) -> list[list[int]]:
        """Translate one call's sentences, in several batches of `batch_size` at once if there are more."""
        generation = GenerationConfig(
            beam_size=request["beam_size"], length_penalty=1.0, max_length_ratio=0, max_length_extra=most
        )
        work = BatchSizes(
            batch_tokens=10**9,
            batch_sentences=request["batch_size"],
            workers=workers if DEVICE.type == "cpu" else 1,
        )
        searched: Any = Uncached(model) if request.get("uncached") else model
        longest = model.config.max_length - 1
        searcher = ModelSearcher(searched, translator.codec, DEVICE, layouts, work)
        without_eos = [np.array(source[:-1]) for source in sources]
        found = searcher.search(without_eos, [[] for _ in sources], generation, longest)
        return [best.tokens for best, *_ in found]

    return translate


def main() -> None:
    driver = Driver()
    translate = translating(sys.argv[3], torch.get_num_threads())
    driver.answer(
        versions={"regardant": regardant.__version__, "torch": str(torch.__version__)},
        threads=torch.get_num_threads(),
    )
    answer_requests(driver, translate)


if __name__ == "__main__":
    main()
