"""A corpus drawn from the language, split so that two kinds of novelty can be told apart.

The test set holds new sentences made of familiar combinations. The held-out set holds sentences with at least one
combination that is in no other set: an adjective with a noun, or a verb with a tense and a polarity, whose parts are
all familiar from elsewhere.
"""

from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import islice
from random import Random

from regardant.data.grammar.language import language
from regardant.data.grammar.lecture import LECTURE_SENTENCES, LECTURE_TREES
from regardant.data.grammar.lexicon import Adjective, Polarity, Tense, Verb, adjectives, nouns, verbs
from regardant.data.grammar.realisation import Pair, realise
from regardant.data.grammar.syntax import Combination, combinations
from regardant.errors import DataError

HELD_OUT_SHARE = 0.1
DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Corpus:
    """Four lists that share no source sentence."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]
    """Unseen sentences of seen combinations."""
    heldout: list[Pair]
    """Sentences with a combination that no other list has."""


def corpus(*, seed: int, train: int, validation: int, test: int, heldout: int) -> Corpus:
    """Draw a corpus with lists of these sizes, the same on every machine, without the sentences of the lectures.

    Raises DataError for a negative size.
    """
    sizes = {"train": train, "validation": validation, "test": test, "heldout": heldout}
    for name, size in sizes.items():
        if size < 0:
            raise DataError(f"the grammar cannot write {size} pairs for {name}: ask for 0 or more")
    held_out = held_out_combinations(seed)
    random = Random(seed)
    seen = {pair.source for pair in LECTURE_SENTENCES}
    familiar: list[Pair] = []
    novel: list[Pair] = []
    while len(familiar) < train + validation + test or len(novel) < heldout:
        sentence = language().draw(random)
        wanted, size = familiar, train + validation + test
        if not held_out.isdisjoint(combinations(sentence)):
            wanted, size = novel, heldout
        if len(wanted) == size:
            continue
        pair = realise(sentence)
        if pair.source not in seen:
            seen.add(pair.source)
            wanted.append(pair)
    rest = iter(familiar)
    return Corpus(
        train=list(islice(rest, train)),
        validation=list(islice(rest, validation)),
        test=list(rest),
        heldout=novel,
    )


@cache
def held_out_combinations(seed: int) -> frozenset[Combination]:
    """Return a tenth of all combinations, chosen by hash, without those of the lecture sentences."""
    familiar = {combination for sentence in LECTURE_TREES for combination in combinations(sentence)}
    held_out: set[Combination] = set()
    for adjective in adjectives().values():
        held_out |= held_out_nouns(seed, adjective)
    for verb in verbs().values():
        held_out |= held_out_forms(seed, verb)
    return frozenset(held_out - familiar)


def held_out_nouns(seed: int, adjective: Adjective) -> set[Combination]:
    """Return the held-out combinations of an adjective. One noun never is, so that training has the adjective."""
    hashes = {
        noun: fraction(f"{seed} {adjective.english} {noun.english[0]}")
        for noun in nouns().values()
        if noun.fits(adjective.nouns)
    }
    met = max(hashes, key=hashes.__getitem__)
    return {(adjective, noun) for noun, value in hashes.items() if value < HELD_OUT_SHARE and noun is not met}


def held_out_forms(seed: int, verb: Verb) -> set[Combination]:
    """Return the forms of a verb that are held out. An affirmative is held out only if "never" in its tense is not: no
    other form has the English "sleeps" and "slept"."""
    held_out = {
        (tense, polarity)
        for tense in Tense
        for polarity in verb.polarities
        if fraction(f"{seed} {verb.base} {tense.name} {polarity.name}") < HELD_OUT_SHARE
    }
    can_be_never = Polarity.NEVER in verb.polarities
    return {
        (verb, tense, polarity)
        for tense, polarity in held_out
        if polarity is not Polarity.AFFIRMATIVE or (can_be_never and (tense, Polarity.NEVER) not in held_out)
    }


def fraction(name: str) -> float:
    """Return a number from 0 to 1 that is the same on every machine, as Python's own hash is not."""
    digest = blake2b(name.encode(), digest_size=DIGEST_BYTES).digest()
    return int.from_bytes(digest, "big") / (1 << 8 * DIGEST_BYTES)
