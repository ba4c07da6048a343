"""The search that the sample of an ONNX export makes."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regardant.data.batching import pad
from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate
from regardant.interop.samples.onnx_translator import Model
from tests.unit.generation.conftest import FIRST_TEXT_ID, TableModel, follow

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


SOURCES = [[*ids, EOS] for ids in ([5, 6, 7, 5, 6], [7], [6, 6, 5], [5, 7])]
NEW = -1
"""A key of the cache that was never fed."""


class OfTable(Model):
    """The scores of a table, whose row depends on the whole source and the whole target: a key of the cache is the
    bucket of the text so far."""

    def __init__(self, table, beams, penalty):
        self.table = table
        self.settings = {"beam_size": beams, "length_penalty": penalty, "max_length_ratio": 1, "max_length_extra": 4}
        self.settings |= {"max_length": 50, "start": SOS, "end": EOS, "pad": PAD}
        self.settings["never"] = [token for token in range(FIRST_TEXT_ID) if token != EOS]

    def encode(self, sources):
        buckets = self.table.encode(pad(sources, eos=False)).numpy()
        return {"memory_keys": buckets[None], "memory_values": buckets[None], "real": buckets > NEW}

    def nothing(self, rows):
        return [np.full((1, rows), NEW)] * 2

    def step(self, tokens, keys, values, memory):
        beams = len(tokens) // memory["memory_keys"].shape[1]
        before = np.where(keys[0] == NEW, np.repeat(memory["memory_keys"][0], beams), keys[0])
        now = follow(torch.as_tensor(before), torch.as_tensor(tokens[:, 0]))
        return [self.table.table[now].numpy()[:, None], now.numpy()[None], now.numpy()[None]]


@given(seed=st.integers(0, 500), beams=st.integers(1, 4), penalty=st.sampled_from([0.0, 1.0, 2.0]))
def test_its_search_is_that_of_the_package(seed, beams, penalty):
    table = TableModel(seed)
    config = GenerationConfig(beam_size=beams, length_penalty=penalty, max_length_ratio=1, max_length_extra=4)
    found = generate(table, pad(SOURCES, eos=False), config)
    assert OfTable(table, beams, penalty).search(SOURCES) == [list(best[0].tokens) for best in found]
