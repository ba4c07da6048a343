"""Greedy search by Regardant and by torch.nn.Transformer, whose encoder reads the source once and whose decoder reads
the whole prefix at each step.

Both have random weights, and never end before their limit.
"""

import sys
from pathlib import Path

import torch
from regardant_training import build
from serve import Clock, Driver
from torch import Tensor
from torch_transformer import PAD, Translator
from training_loop import read

from regardant.data.vocabulary import EOS, SOS
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate
from regardant.models import SequenceToSequenceModel

SENTENCES, STEPS = 32, 24


def by_regardant(model: SequenceToSequenceModel, source: Tensor) -> None:
    limit = GenerationConfig(beam_size=1, length_penalty=0, max_length_ratio=0, max_length_extra=STEPS)
    for (found,) in generate(model, source, limit):
        assert len(found.tokens) == STEPS


def by_torch(model: Translator, source: Tensor) -> None:
    written = torch.full((len(source), 1), SOS)
    padding = source == PAD
    with torch.inference_mode():
        memory = model.encode(source, padding)
        for _ in range(STEPS):
            newest = model.decode(memory, padding, written)[:, -1].argmax(-1)
            written = torch.cat([written, newest[:, None]], 1)


def main() -> None:
    driver = Driver()
    shape, batches = read(Path(sys.argv[1]))
    source = batches[len(batches) // 2][0][:SENTENCES]
    torch.manual_seed(1)
    ours = build(shape).eval()
    with torch.no_grad():
        ours.get_parameter("head.weight")[EOS] = 0  # so its logit is never the largest
    theirs = Translator(shape).eval()
    driver.answer(versions={"torch": str(torch.__version__)}, threads=torch.get_num_threads())
    for request in driver.requests():
        clock = Clock()
        if request["engine"] == "regardant":
            by_regardant(ours, source)
        else:
            by_torch(theirs, source)
        driver.answer(tokens=len(source) * STEPS, **clock.read())


if __name__ == "__main__":
    main()
