"""The embedded corpus as a source of pairs, with its gold word alignments beside the text, and as a treebank."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from regardant.config import Config
from regardant.data.cleaning import CleaningReport
from regardant.data.gold_alignments import write_gold_links
from regardant.data.labelled import LabelledConfig, Sets
from regardant.data.parallel import Splits

if TYPE_CHECKING:
    from regardant.data.grammar.realisation import Pair


class GrammarConfig(Config):
    """English and French sentences written by a small grammar. Two test sets: `test` has random unseen sentences,
    `heldout` has combinations of words that never occur in training."""

    kind: Literal["grammar"] = "grammar"

    direction: Literal["en-fr", "fr-en"] = "en-fr"
    """The language of the source and of the target."""

    train_size: int = Field(100_000, gt=0)
    """Pairs to train on."""

    validation_size: int = Field(500, gt=0)
    """Pairs to validate on."""

    test_size: int = Field(1000, gt=0)
    """Random pairs that are not in training."""

    heldout_size: int = Field(1000, gt=0)
    """Pairs that hold an adjective and noun, or a verb, tense and negation, that never meet in training."""

    links: Literal["gold"] | None = None
    """Word alignments kept for the training pairs too: gold, for `alignment_guidance`. Empty: none."""

    def read(self, folder: Path, seed: int) -> Splits:
        """Write the corpus and open it."""
        from regardant.data.grammar import corpus

        written = corpus(
            seed=seed,
            train=self.train_size,
            validation=self.validation_size,
            test=self.test_size,
            heldout=self.heldout_size,
        )
        names = ("train", "validation", "test", "heldout")
        turn = _turned if self.direction == "fr-en" else list
        sets = {name: turn(getattr(written, name)) for name in names}
        linked = sets if self.links == "gold" else {name: sets[name] for name in names[1:]}
        write_gold_links(folder, {name: [pair.links for pair in pairs] for name, pairs in linked.items()})
        report = CleaningReport(read=self.train_size, kept=self.train_size)
        return Splits.write(
            folder, {name: [(pair.source, pair.target) for pair in pairs] for name, pairs in sets.items()}, report
        )


def _turned(pairs: Sequence["Pair"]) -> list["Pair"]:
    """Return the pairs with source and target exchanged."""
    return [
        replace(pair, source=pair.target, target=pair.source, links=tuple(sorted((j, i) for i, j in pair.links)))
        for pair in pairs
    ]


class GrammarTreesConfig(LabelledConfig):
    """English sentences written by the same grammar; the label of each is its tree in brackets.

    Vinyals et al. 2015, "Grammar as a foreign language", https://arxiv.org/abs/1412.7449, section 3: trees are written
    depth first, with labels at closing brackets too. Here words are written as well. The test sets are those of
    `grammar`.
    """

    kind: Literal["grammar_trees"] = "grammar_trees"

    train_size: int = Field(20_000, gt=1)
    """Sentences to train and to validate on."""

    test_size: int = Field(1000, gt=0)
    """Random sentences that are not in training."""

    heldout_size: int = Field(1000, gt=0)
    """Sentences that hold an adjective and noun, or a verb, tense and negation, that never meet in training."""

    def read(self, seed: int) -> Sets:
        from regardant.data.grammar import corpus

        validation = max(1, round(self.validation_share * self.train_size))
        train = self.train_size - validation
        written = corpus(seed=seed, train=train, validation=validation, test=self.test_size, heldout=self.heldout_size)
        names = ("train", "validation", "test", "heldout")
        return {name: [(pair.source, pair.tree) for pair in getattr(written, name)] for name in names}
