"""Attention of a captioning run: share of words whose strongest patch lies on the digit that they name.

    .venv/bin/python -m benchmarks.captions runs/digits-captions

Weights are those of the cross-attention, averaged over heads, by teacher forcing. The layer is the best one on
validation images; the share is over the words of the test images. A patch lies on a digit if its middle column does.
"""

import sys
from collections.abc import Sequence

import torch

from regardant.data.captions import SIDE, Caption
from regardant.inspection import capture
from regardant.run import Run, load

BATCH = 100
"""Number of images in a batch."""


def shares_on_digit(run: Run, captions: Sequence[Caption]) -> list[float]:
    """Return the share of words whose strongest patch lies on their digit, by decoder layer."""
    generator = run.trained.generator
    columns, side = generator.codec.columns, generator.codec.patch_size
    right: list[list[bool]] = []
    for start in range(0, len(captions), BATCH):
        part = captions[start : start + BATCH]
        probe = generator.probe(
            generator.codec.encode([one.image for one in part]),
            generator.tokenizer.encode_batch([one.text for one in part]),
        )
        with torch.inference_mode(), capture(generator.model, "*cross_attention.weights") as records:
            generator.model.scores(**probe.inputs)
        strongest = torch.stack([records.whole(place).mean(1).argmax(-1) for place in records], 1)  # [B, L, T]
        middles = (strongest % columns) * side + (side - 1) / 2
        for caption, layers in zip(part, middles.tolist(), strict=True):
            for number, first in enumerate(caption.starts):
                right.append([first <= layer[number] < first + SIDE for layer in layers])
    return torch.tensor(right).double().mean(0).tolist()


def measure(run: Run) -> dict[str, float]:
    """Return the share of words of the test images, in the decoder layer that validation chooses."""
    drawn = run.config.data.draw(run.config.seed)
    validation = shares_on_digit(run, drawn["validation"])
    layer = max(range(len(validation)), key=validation.__getitem__)
    return {"attention_on_digit": shares_on_digit(run, drawn["test"])[layer]}


if __name__ == "__main__":
    (folder,) = sys.argv[1:]
    print(measure(load(folder)))
