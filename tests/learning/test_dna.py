"""DNA as k-mers: a bag of them tells a motif from the same letters in another order, a bag of letters cannot."""

from random import Random

import pytest

from regardant import run
from regardant.tasks import load_recipe
from tests.runs import STEADY

MOTIF, SHUFFLED = "TATAAA", "AATATA"
"""The TATA box of promoters, and the same letters in another order."""

RECIPE = {
    "task": "classification",
    "data": {"source": "sequences.tsv", "validation_share": 0.2},
    "input": {"tokenizer": {"kind": "kmer"}},
    "model": {"kind": "bag", "d_model": 32, "max_length": 32},
    "training": {
        "max_updates": 150,
        "batch_tokens": 1024,
        "validate_every": 150,
        **STEADY,
        "optimizer": {"kind": "muon"},
        "schedule": {"kind": "linear", "learning_rate": 1e-2, "warmup_steps": 20},
    },
}


def sequence(random, planted):
    """Return 26 random letters, six of them in a place that is drawn; the motif stands in no other place."""
    while True:
        letters, at = "".join(random.choices("ACGT", k=20)), random.randrange(21)
        found = letters[:at] + planted + letters[at:]
        if found.count(MOTIF) == (planted == MOTIF):
            return found


@pytest.fixture(scope="module")
def accuracy(tmp_path_factory):
    """The accuracy on validation sequences, with fields of the tokenizer set."""
    folder, random = tmp_path_factory.mktemp("dna"), Random(1)
    rows = [f"{sequence(random, MOTIF)}\tpromoter\n{sequence(random, SHUFFLED)}\tother\n" for _ in range(1000)]
    (folder / "sequences.tsv").write_text("text\tlabel\n" + "".join(rows), encoding="utf-8")

    def train(name, *overrides):
        recipe = load_recipe(RECIPE, [f"data.root={folder}", *overrides])
        assert run.train(recipe, folder / name, lambda line: None).finished
        return run.load(folder / name).evaluate()["validation"]["accuracy"]

    return train


def test_kmers_tell_a_motif_from_its_letters(accuracy):
    assert accuracy("kmers", "input.tokenizer.k=4") > 0.92
    assert 0.4 < accuracy("letters", "input.tokenizer.k=1") < 0.6


def test_kmers_that_do_not_overlap_miss_a_motif_between_two(accuracy):
    assert 0.7 < accuracy("apart", "input.tokenizer.k=4", "input.tokenizer.stride=4") < 0.9
