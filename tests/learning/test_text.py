"""A small text is learned by heart, and of a large one more than how often each character comes."""

import math
from collections import Counter

import pytest

from regardant import config as configuration
from regardant import run
from regardant.tasks.language_modelling.config import LanguageModellingConfig
from tests.runs import STEADY

POEM = """Under the bridge the river goes,
  and nobody asks it why;
over the bridge the north wind blows
  the washing of clouds to dry.

The miller counts what the millstone grinds,
  the heron counts to one;
the clerk in the tower counts what he finds
  and is, by evening, done.
"""

RECIPE = {
    "task": "language_modelling",
    "data": {"source": "poem.txt", "validation_share": 0.05},
    "model": {"d_model": 64, "num_heads": 2, "num_layers": 2, "d_ff": 128, "max_length": 32},
    "training": {
        "max_updates": 300,
        "batch_tokens": 320,
        "validate_every": 300,
        **STEADY,
        "schedule": {"kind": "linear", "learning_rate": 5e-3, "warmup_steps": 20},
        "averaging": {"kind": "none"},
    },
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """The run that learned the poem, with fields set."""

    def train(*overrides):
        folder = tmp_path_factory.mktemp("poem")
        (folder / "poem.txt").write_text(POEM, encoding="utf-8")
        config = configuration.load(LanguageModellingConfig, RECIPE, [f"data.root={folder}", *overrides])
        assert run.train(config, folder / "run", log=lambda line: None).finished
        return run.load(folder / "run")

    return train


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param((), id="as it is"),
        pytest.param(("model.positions.kind=rotary", "model.normalisation=rms_norm"), id="rotary"),
        pytest.param(("tokenizer.kind=byte",), id="bytes"),
        pytest.param(("model.self_attention.kind=linear",), id="linear", marks=pytest.mark.slow),
        pytest.param(("training.precision=bfloat16",), id="bfloat16", marks=pytest.mark.slow),
    ],
)
def test_a_poem_is_learned_by_heart(learned, overrides):
    trained = learned(*overrides)
    seen = POEM[: int(0.95 * len(POEM))]
    assert trained.score(seen).nats_per_character < 0.25
    written = "Under the bridge" + trained.generate("Under the bridge", temperature=0, max_tokens=120)[0]
    assert written == POEM[: len(written)]


def test_words_are_learned_beyond_the_frequencies_of_their_characters(trained_on_text, text_file):
    text = text_file.read_bytes().decode()
    shares = [count / len(text) for count in Counter(text).values()]
    entropy = -sum(share * math.log(share) for share in shares)
    assert trained_on_text().evaluate()["validation"]["loss"] < 0.4 * entropy
