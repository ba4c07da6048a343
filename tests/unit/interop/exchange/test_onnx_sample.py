"""The search that the sample of an ONNX export makes."""

import numpy as np
import pytest

from regardant.interop.samples.onnx_translator import Model

WORDS, END = 7, 2


class Fixed(Model):
    """Scores that depend on the number of steps alone: the end is likeliest in the third."""

    def __init__(self, beams):
        self.settings = {"beam_size": beams, "length_penalty": 1.0, "max_length_ratio": 1, "max_length_extra": 5}
        self.settings |= {"max_length": 20, "start": 1, "end": END, "never": [0, 1]}

    def encode(self, sources):
        memory = np.zeros((1, len(sources)))
        return {"memory_keys": memory, "memory_values": memory, "real": np.ones((len(sources), 1), bool)}

    def nothing(self, rows):
        return [np.zeros((1, rows, 0))] * 2

    def step(self, tokens, keys, values, memory):
        written = keys.shape[2]
        logits = np.tile(np.linspace(0.0, 1.0, WORDS), (len(tokens), 1, 1))
        logits[..., END] = 5.0 if written == 2 else -5.0
        more = np.zeros((1, len(tokens), written + 1))
        return [logits, more, more]


@pytest.mark.parametrize("beams", [1, 2, 5, 7])
def test_a_vocabulary_may_be_as_small_as_the_beam(beams):
    assert Fixed(beams).search([[3, 4], [5]]) == [[WORDS - 1, WORDS - 1]] * 2
