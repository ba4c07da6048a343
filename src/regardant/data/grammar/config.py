"""The embedded corpus as a source of pairs, with its gold word alignments beside the text."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from regardant.config import Config
from regardant.data.cleaning import CleaningReport
from regardant.data.parallel import Splits

Link = tuple[int, int]
LINKS_FOLDER = "links"


class GrammarConfig(Config):
    """English and French sentences written by a small grammar. Two test sets: `test` has random unseen sentences,
    `heldout` has combinations of words that never occur in training."""

    kind: Literal["grammar"] = "grammar"

    train_size: int = Field(100_000, gt=0)
    """Pairs to train on."""

    validation_size: int = Field(500, gt=0)
    """Pairs to validate on."""

    test_size: int = Field(1000, gt=0)
    """Random pairs that are not in training."""

    heldout_size: int = Field(1000, gt=0)
    """Pairs that hold an adjective and noun, or a verb, tense and negation, that never meet in training."""

    links: Literal["gold"] | None = None
    """gold: keep the gold alignments of the training pairs too, for `alignment_guidance`."""

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
        evaluated = {"validation": written.validation, "test": written.test, "heldout": written.heldout}
        links = folder.with_name(LINKS_FOLDER)
        links.mkdir(parents=True, exist_ok=True)
        linked = {**evaluated, "train": written.train} if self.links == "gold" else evaluated
        for name, pairs in linked.items():
            lines = (" ".join(f"{source}-{target}" for source, target in sorted(pair.links)) for pair in pairs)
            (links / f"{name}.links").write_text("".join(line + "\n" for line in lines), encoding="ascii")
        report = CleaningReport(read=self.train_size, kept=self.train_size)
        sets = {"train": written.train, **evaluated}
        return Splits.write(
            folder, {name: [(pair.source, pair.target) for pair in pairs] for name, pairs in sets.items()}, report
        )


def gold_links(folder: Path, name: str) -> list[str] | None:
    """The gold alignments of a set, a line a pair as `0-0 1-2`, where the corpus in `folder` has them."""
    path = folder.with_name(LINKS_FOLDER) / f"{name}.links"
    return path.read_text(encoding="ascii").splitlines() if path.exists() else None
