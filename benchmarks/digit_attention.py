"""Cross-attention of a run of the recipe `spoken-sequence`, held to where each digit is spoken.

    .venv/bin/python -m benchmarks.digit_attention RUN

Prints, for each head, the share of the weight of a word that lies on frames of its own digit, as the mean over all
words of the test sequences, by teacher forcing. A frame belongs to a digit if any of its samples do.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from regardant.data.digit_sequences import DigitSequence, DigitSequencesConfig
from regardant.inspection import attention_places, capture
from regardant.run import load
from regardant.tasks.sequence_to_sequence.trained import TrainedItemGenerator

KIND = "decoder.cross_attention"


def shares(run: Path, count: int | None = None) -> Mapping[str, NDArray[np.float64]]:
    """Return the share of each head [heads] by layer, over the first `count` test sequences."""
    trained = load(run).trained
    config = trained.config
    assert isinstance(trained, TrainedItemGenerator) and isinstance(config.data, DigitSequencesConfig)
    generator, stride = trained.generator, trained.generator.codec.stride  # type: ignore[attr-defined]
    found: dict[str, list[NDArray[np.float64]]] = {place: [] for place in attention_places(trained.model)[KIND]}
    for one in config.data.sequences(config.seed)["test"][:count]:
        (source,) = generator.codec.encode([one.recording])
        (target,) = generator.tokenizer.encode_batch([one.text])
        probe = generator.probe([source], [target])
        with torch.inference_mode(), capture(trained.model) as records:
            trained.model.scores(**probe.inputs)
        for place, kept in found.items():
            kept.append(inside(records.whole(f"{place}.weights")[0].double().numpy(), one, stride))
    return {place: np.concatenate(kept, 1).mean(1) for place, kept in found.items()}


def inside(weights: NDArray[np.float64], sequence: DigitSequence, stride: int) -> NDArray[np.float64]:
    """Return the weight of each word [heads, words] on its own digit; `weights` are [heads, words and EOS, frames]."""
    frames = [slice(start // stride, -(-end // stride)) for start, end in sequence.spans]
    return np.stack([weights[:, word, own].sum(-1) for word, own in enumerate(frames)], 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("name the folder of one run of spoken-sequence")
    for place, heads in shares(Path(sys.argv[1])).items():
        numbers = ", ".join(f"{share:.3f}" for share in heads)
        print(f"{place}: {heads.mean():.3f} in its own digit, heads {numbers}")
