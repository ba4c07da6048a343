"""Cross-attention of a run of the recipe `spoken-sequence`, compared with the time at which each digit is spoken.

    .venv/bin/python -m benchmarks.digit_attention RUN

The share of a word's weight that lies on frames of its own digit is averaged over heads and over all words of the test
sequences, by teacher forcing, in the decoder layer that is best on validation sequences. A frame belongs to a digit if
any of its samples do.
"""

import sys
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from regardant.data.digit_sequences import DigitSequence
from regardant.inspection import attention_places, capture
from regardant.run import Run, load

KIND = "decoder.cross_attention"


def shares(run: Run, sequences: Sequence[DigitSequence]) -> dict[str, float]:
    """Return the share of the weight on a word's own digit, by decoder layer."""
    trained = run.trained
    generator, stride = trained.generator, trained.generator.codec.stride
    found: dict[str, list[NDArray[np.float64]]] = {place: [] for place in attention_places(trained.model)[KIND]}
    for one in sequences:
        (source,) = generator.codec.encode([one.recording])
        (target,) = generator.tokenizer.encode_batch([one.text])
        probe = generator.probe([source], [target])
        with torch.inference_mode(), capture(trained.model) as records:
            trained.model.scores(**probe.inputs)
        for place, kept in found.items():
            kept.append(inside(records.whole(f"{place}.weights")[0].double().numpy(), one, stride))
    return {place: float(np.concatenate(kept, 1).mean()) for place, kept in found.items()}


def inside(weights: NDArray[np.float64], sequence: DigitSequence, stride: int) -> NDArray[np.float64]:
    """Return the weight of each word [heads, words] on its own digit; `weights` are [heads, words and EOS, frames]."""
    frames = [slice(start // stride, -(-end // stride)) for start, end in sequence.spans]
    return np.stack([weights[:, word, own].sum(-1) for word, own in enumerate(frames)], 1)


def measure(run: Run) -> dict[str, float]:
    """Return the share in test sequences, in the layer that is best on validation sequences."""
    drawn = run.config.data.sequences(run.config.seed)
    validation = shares(run, drawn["validation"])
    layer = max(validation, key=validation.__getitem__)
    return {"attention_in_digit": shares(run, drawn["test"])[layer]}


if __name__ == "__main__":
    (folder,) = sys.argv[1:]
    print(measure(load(folder)))
