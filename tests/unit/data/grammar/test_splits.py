import os
import subprocess
import sys
from random import Random

import pytest

from regardant.data.grammar import LECTURE_SENTENCES, Corpus, Pair, corpus
from regardant.data.grammar.language import language
from regardant.data.grammar.lecture import LECTURE_TREES
from regardant.data.grammar.lexicon import Polarity, Tense, adjectives, nouns, verbs
from regardant.data.grammar.realisation import realise
from regardant.data.grammar.splits import held_out_combinations
from regardant.data.grammar.syntax import Combination, Sentence, combinations
from regardant.errors import DataError

pytestmark = pytest.mark.xdist_group("splits")  # one process makes what all tests share

SEED = 7


@pytest.fixture(scope="module")
def written() -> Corpus:
    return corpus(seed=SEED, train=8_000, validation=300, test=500, heldout=500)


@pytest.fixture(scope="module")
def trees(written: Corpus) -> dict[str, Sentence]:
    """What every source of the corpus was drawn as."""
    random = Random(SEED)
    wanted = {pair.source for pair in lists(written)}
    found: dict[str, Sentence] = {}
    while len(found) < len(wanted):
        tree = language().draw(random)
        if (source := realise(tree).source) in wanted:
            found[source] = tree
    return found


def lists(written: Corpus) -> list[Pair]:
    return [*written.train, *written.validation, *written.test, *written.heldout]


def combined(pairs: list[Pair], trees: dict[str, Sentence]) -> set[Combination]:
    return {combination for pair in pairs for combination in combinations(trees[pair.source])}


def test_the_lists_are_as_long_as_asked(written: Corpus):
    assert [len(part) for part in (written.train, written.validation, written.test, written.heldout)] == (
        [8_000, 300, 500, 500]
    )


def test_no_source_is_there_twice(written: Corpus):
    sources = [pair.source for pair in lists(written)]
    assert len(set(sources)) == len(sources)


def test_held_out_combinations_are_in_no_other_list(written: Corpus, trees: dict[str, Sentence]):
    held_out = held_out_combinations(SEED)
    for part in (written.train, written.validation, written.test):
        assert combined(part, trees).isdisjoint(held_out)


def test_every_held_out_sentence_has_a_held_out_combination(written: Corpus, trees: dict[str, Sentence]):
    held_out = held_out_combinations(SEED)
    assert all(not held_out.isdisjoint(combinations(trees[pair.source])) for pair in written.heldout)


def test_the_parts_of_held_out_combinations_are_trained_on(written: Corpus, trees: dict[str, Sentence]):
    trained = {part for combination in combined(written.train, trees) for part in combination}
    assert trained >= {*adjectives().values(), *verbs().values(), *Tense, *Polarity}
    met = " ".join(pair.source for pair in written.train)
    assert [noun for noun in nouns() if noun not in met] == []


@pytest.mark.parametrize("seed", range(5))
def test_a_tenth_is_held_out_whatever_the_seed(seed: int):
    held_out = held_out_combinations(seed)
    qualified = sum(noun.fits(adjective.nouns) for adjective in adjectives().values() for noun in nouns().values())
    spoken = sum(3 * len(verb.polarities) for verb in verbs().values())
    of_verbs = sum(len(combination) == 3 for combination in held_out)
    assert 0.08 < (len(held_out) - of_verbs) / qualified < 0.12
    assert 0.06 < of_verbs / spoken < 0.12


@pytest.mark.parametrize("seed", range(5))
def test_a_verb_form_is_never_held_out_in_all_its_uses(seed: int):
    held_out = held_out_combinations(seed)
    for verb in verbs().values():
        for tense in Tense:
            uses = {(verb, tense, polarity) for polarity in verb.polarities if polarity is not Polarity.NOT}
            assert uses - held_out


@pytest.mark.parametrize("seed", range(5))
def test_lecture_sentences_are_of_familiar_combinations(seed: int):
    needed = {combination for tree in LECTURE_TREES for combination in combinations(tree)}
    assert len(needed) == 4
    assert needed.isdisjoint(held_out_combinations(seed))


def test_lecture_sentences_are_in_no_list(written: Corpus):
    assert {pair.source for pair in LECTURE_SENTENCES}.isdisjoint(pair.source for pair in lists(written))


def test_the_same_seed_writes_the_same_corpus():
    sizes = {"train": 300, "validation": 20, "test": 20, "heldout": 20}
    assert corpus(seed=1, **sizes) == corpus(seed=1, **sizes)
    assert corpus(seed=1, **sizes) != corpus(seed=2, **sizes)


def test_the_corpus_does_not_depend_on_pythons_hash():
    script = (
        "from regardant.data.grammar import corpus; print(corpus(seed=3, train=99, validation=1, test=1, heldout=9))"
    )
    printed = [
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1] != b""


def test_a_negative_size_is_refused():
    with pytest.raises(DataError, match=r"cannot write -1 pairs for test: ask for 0 or more"):
        corpus(seed=0, train=1, validation=0, test=-1, heldout=0)
