"""It learns: made-up tasks whose answer is known, solved within seconds on one thread.

A model of one layer that cannot copy or reverse eight symbols has a fault, whatever its other tests say.
"""

import json
import math
from collections import Counter, defaultdict
from itertools import chain

import pytest

from regardant import config as configuration
from regardant import run
from regardant.data.parallel import Splits
from regardant.data.vocabulary import EOS
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.look.alignment import choose_alignment, word_attention
from tests.runs import STEADY

pytestmark = pytest.mark.xdist_group("toys")  # one process makes what all tests share

TOY = {
    "data": {
        "symbols": 10,
        "min_length": 3,
        "max_length": 8,
        "train_size": 5000,
        "validation_size": 100,
        "test_size": 200,
    },
    "tokenizer": {"kind": "word"},
    "model": {
        "preset": None,
        "d_model": 32,
        "num_heads": 2,
        "d_ff": 64,
        "dropout": 0.0,
        "max_length": 16,
        "encoder": {"num_layers": 1},
        "decoder": {"num_layers": 1},
    },
    "training": {
        "max_updates": 500,
        "batch_tokens": 800,
        "validate_every": 500,
        **STEADY,
        "label_smoothing": 0.0,
        "schedule": {"kind": "linear", "learning_rate": 1e-2, "warmup_steps": 50},
        "averaging": {"kind": "ema", "decay": 0.95},
    },
    "generation": {"beam_size": 1},
    "evaluation": {"bootstrap_samples": 10},
}
VOCAB_SIZE = 10 + 5  # with the special tokens


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """The run that learned a toy, with fields set; each once."""
    runs = {}

    def train(kind, *overrides):
        if (kind, overrides) not in runs:
            folder = tmp_path_factory.mktemp("learning") / kind
            document = TOY | {"data": TOY["data"] | {"kind": kind}}
            recipe = configuration.load(TranslationConfig, document, overrides)
            assert run.train(recipe, folder, log=lambda line: None).finished
            runs[kind, overrides] = run.load(folder)
        return runs[kind, overrides]

    return train


def accuracy(trained):
    """Of whole sequences, none of which was trained on."""
    return trained.evaluate()["test"]["exact_match"]


def events(trained, name):
    lines = (trained.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == name]


@pytest.mark.parametrize("kind", ["copy", "reverse"])
def test_sequences_never_seen_come_out_right(learned, kind):
    assert accuracy(learned(kind)) >= 0.9


@pytest.mark.parametrize(
    "overrides",
    [
        pytest.param(
            ("model.norm=post", "training.schedule.learning_rate=5e-3"), id="post-norm", marks=pytest.mark.slow
        ),
        pytest.param(("model.num_key_heads=1", "model.tie_embeddings=none"), id="shared-keys", marks=pytest.mark.slow),
        pytest.param(("model.positions.kind=learned",), id="learned-positions", marks=pytest.mark.slow),
        pytest.param(("training.accumulate=2", "training.batch_tokens=400"), id="accumulated", marks=pytest.mark.slow),
        pytest.param(("training.averaging.kind=none",), id="not-averaged", marks=pytest.mark.slow),
    ],
)
def test_every_kind_of_model_learns_to_copy(learned, overrides):
    assert accuracy(learned("copy", *overrides)) >= 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["copy", "reverse"])
def test_bfloat16_learns_too(learned, kind):
    assert accuracy(learned(kind, "training.precision=bfloat16")) >= 0.9


def test_the_loss_falls_from_chance_to_almost_nothing(learned):
    losses = [event["loss"] for event in events(learned("copy"), "train")]
    assert 0.8 * math.log(VOCAB_SIZE) < losses[0] < 2 * math.log(VOCAB_SIZE)
    assert losses[19] < 1.0  # 200 updates
    assert events(learned("copy"), "validation")[-1]["loss"] < 0.05


def test_label_smoothing_lifts_the_loss_to_its_floor_and_the_answers_stay_right(learned):
    """Whoever learns the smoothed distribution exactly gives the right symbol 1 - s + s / V."""
    smoothed = learned("copy", "training.label_smoothing=0.2")
    floor = -math.log(1 - 0.2 + 0.2 / VOCAB_SIZE)
    assert events(smoothed, "validation")[-1]["loss"] == pytest.approx(floor, abs=0.05)
    assert accuracy(smoothed) >= 0.9


@pytest.mark.parametrize("kind", ["copy", "reverse"])
def test_attention_looks_where_the_answer_stands(learned, kind):
    trained = learned(kind)
    random = [f"{number * 7919 % 10**6:06}" for number in range(1, 101)]
    sources = [" ".join(digits) for digits in random]
    targets = [" ".join(digits if kind == "copy" else digits[::-1]) for digits in random]
    gold = [{(place if kind == "copy" else 5 - place, place) for place in range(6)}] * len(sources)
    choice = choose_alignment(word_attention(trained.translator, sources, targets), gold)
    assert choice.validation_error_rate < 0.1


DISTANCES = (
    "data.max_length=10",
    "training.optimizer.kind=muon",
    "training.max_updates=250",
    "training.validate_every=250",
)


def accuracy_by_distance(trained):
    """Return the share of right answers by the number that the source names."""
    trained.evaluate()
    source, reference, answer = (
        (trained.folder / "evaluation" / f"test.{suffix}").read_text(encoding="utf-8").splitlines()
        for suffix in ("src", "ref", "hyp")
    )
    right = defaultdict(list)
    for read, expected, written in zip(source, reference, answer, strict=True):
        right[int("".join(filter(str.isdigit, read)))].append(expected == written)
    return {distance: sum(found) / len(found) for distance, found in right.items()}


def test_attention_finds_a_symbol_at_a_distance_that_it_reads(learned):
    found = accuracy_by_distance(learned("variable_distance", *DISTANCES, "model.positions.kind=rotary"))
    assert all(found[distance] >= 0.9 for distance in range(1, 8)), found


def test_a_convolution_finds_it_within_its_kernel_alone(learned):
    """The encoder has to mark the symbol, since the only query of the decoder is the same for all sources. A kernel of
    3 carries the number one symbol far; beyond, the decoder can but guess among the symbols that it sees."""
    convolution = "model.encoder.self_attention={kind: convolution, kernel: 3}"
    found = accuracy_by_distance(learned("variable_distance", *DISTANCES, convolution))
    assert found[1] >= 0.9, found
    assert all(found[distance] < 0.85 for distance in range(3, 8)), found


def test_without_positions_a_sequence_is_a_bag_and_cannot_be_reversed(learned):
    trained = learned("reverse", "model.positions.kind=none", "training.max_updates=100", "training.validate_every=100")
    assert accuracy(trained) < 0.2
    first, same, other = trained.predict(["3 1 4 1 5", "5 1 4 1 3", "3 1 4 1 6"])
    assert first.answer == same.answer and first.details["score"] == pytest.approx(same.details["score"], abs=1e-4)
    assert first.details["score"] != pytest.approx(other.details["score"], abs=1e-4)


def test_text_is_learned_beyond_the_frequencies_of_its_words(trained):
    """English to French from a thousand pairs, against the best guess that reads nothing at all."""
    text = Splits.load(trained().folder / "data" / "text")
    ids = trained().translator.tokenizers.target.encode_batch(list(text.train["target"]))
    counts = Counter(chain(*ids, [EOS] * len(ids)))
    shares = [count / counts.total() for count in counts.values()]
    entropy = -sum(share * math.log(share) for share in shares)
    assert events(trained(), "validation")[-1]["loss"] < 0.5 * entropy
