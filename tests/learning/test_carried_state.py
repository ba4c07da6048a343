"""A state that is carried knows more than any window holds."""

import math
from random import Random

import numpy as np
import pytest
import torch

from regardant import run
from regardant.data.windows import consecutive_windows

CONTEXT = 6
RECIPE = (
    f"model={{kind: recurrent, cell: gru, embedding_size: 16, hidden_size: 64, max_length: {CONTEXT}}}",
    "training.max_updates=800",
    "training.batch_tokens=384",
    "training.averaging={kind: none}",
    "training.validate_every=800",
    "training.processes=1",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A text of blocks: a letter, up to 12 dots, a question mark, the letter again."""
    folder, random = tmp_path_factory.mktemp("blocks"), Random(1)
    blocks = [(random.choice("abcd"), random.randint(0, 12)) for _ in range(4000)]
    text = "".join(f"{letter}{'.' * dots}?{letter}" for letter, dots in blocks)
    (folder / "a.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def learned(folder, tiny_text_config):
    def train(carry):
        run.train(
            tiny_text_config(f"data.root={folder}", *RECIPE, f"training.carry_state={carry}"),
            folder / carry,
            lambda line: None,
        )
        return run.load(folder / carry).language_model

    return train


def unseen(text):
    """The share of the letters' second places whose first place is outside of their window."""
    targets = [place for place in range(1, len(text)) if text[place - 1] == "?"]
    firsts = [text.rindex(text[place], 0, place - 1) for place in targets]
    return np.mean([first < (place - 1) // CONTEXT * CONTEXT for first, place in zip(firsts, targets, strict=True)])


def test_a_carried_state_beats_every_model_that_begins_anew_in_each_window(folder, learned):
    text = (folder / "a.txt").read_text(encoding="utf-8")
    ideal = (math.log(4) + math.log(13)) / (len(text) / 4000)  # nats of a block: its letter and its number of dots
    least_of_windows = ideal + unseen(text) * math.log(4) / (len(text) / 4000)
    carried, reset = learned("true"), learned("false")
    tokens = carried.tokenizer.encode_long(text[int(0.9 * len(text)) :])
    with torch.inference_mode():
        losses = [
            reset.model(**batch.inputs, targets=batch.targets).plain
            for batch in consecutive_windows(tokens, CONTEXT, 8192)
        ]
    assert sum(map(float, losses)) / (len(tokens) - 1) > least_of_windows
    assert carried.evaluate()["validation"]["loss"] < (ideal + least_of_windows) / 2
