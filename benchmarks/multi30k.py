"""Multi30k's raw English and German for the benchmarks, tokenised by Regardant."""

import gzip
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regardant import config as configuration
from regardant.data.batching import PairBatch
from regardant.data.vocabulary import MASK, PAD
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.learn.corpus import TextCorpus, read_corpus

from .records import ROOT
from .shared_batches import BATCH_TOKENS, BATCHES, SHAPE, Lengths, bucketed, spread, training_flops, write
from .workers import progress

DEV_LINES = 10
"""Lines of the validation text, which a trainer requires and never reaches."""


def folder() -> Path:
    """Return the folder of the text. Exits if REGARDANT_DATA is not set."""
    if "REGARDANT_DATA" not in os.environ:
        sys.exit("this benchmark reads Multi30k: set REGARDANT_DATA to the folder that holds multi30k")
    return Path(os.environ["REGARDANT_DATA"]) / "multi30k"


def lines(name: str, root: Path | None = None) -> list[str]:
    """Return the lines of NAME.gz, in another folder if `root` is given."""
    with gzip.open((root or folder()) / f"{name}.gz", "rt", encoding="utf-8") as text:
        return text.read().splitlines()


def settings(root: Path | None = None) -> list[str]:
    """Return overrides of the recipe `translation`, as of --set. `root` is another folder with files of these names."""
    return [
        f"data.root={root or folder()}",
        "data.source=train.en.gz",
        "data.target=train.de.gz",
        "data.validation.source=val.en.gz",
        "data.validation.target=val.de.gz",
        f"tokenizer.vocab_size={SHAPE['vocab_size']}",
    ]


def write_batches(
    path: Path,
    shape: dict[str, Any] = SHAPE,
    batch_tokens: int = BATCH_TOKENS,
    root: Path | None = None,
    cut: Callable[[Lengths, Lengths, int], list[list[int]]] = bucketed,
) -> dict[str, Any]:
    """Write the batches that are timed, and beside them the whole text as ids. Return a description of the batches.

    `root` is a folder with other text under the same names. `cut` returns the batches of an epoch as indices, from the
    lengths of sources and targets and the number of tokens.
    """
    recipe = configuration.recipe("translation")
    config = configuration.load(TranslationConfig, recipe, settings(root), origin="translation")
    run = ROOT / "runs" / "bench-corpus" if root is None else path.parent / "corpus"
    run.mkdir(parents=True, exist_ok=True)
    corpus = read_corpus(config, run, progress)
    source_lengths, target_lengths = corpus.train.source_lengths.tolist(), corpus.train.target_lengths.tolist()
    batches = cut(source_lengths, target_lengths, batch_tokens)
    chosen = spread(batches, BATCHES)
    blocks = [corpus.train.batch(batch) for batch in chosen]
    write(path, shape, [(block.source.tolist(), block.target.tolist()) for block in blocks])
    write_text(path.parent / "text", corpus)
    targets = sum(block.count for block in blocks)
    sources = sum(int((block.source != PAD).sum()) for block in blocks)
    pairs = [(source_lengths[index], target_lengths[index]) for batch in chosen for index in batch]
    return {
        "corpus": f"Multi30k en-de, raw, joint BPE{'' if root is None else ', lines joined'}",
        "batches_of_an_epoch": len(batches),
        "batches": len(blocks),
        "pairs": len(pairs),
        "target_tokens": targets,
        "real_share_of_target": round(targets / sum(block.target[:, 1:].numel() for block in blocks), 4),
        "real_share_of_source": round(sources / sum(block.source.numel() for block in blocks), 4),
        "megaflops_a_target_token": round(training_flops(shape, pairs) / targets / 1e6, 2),
    }


def write_text(folder: Path, corpus: TextCorpus) -> None:
    """Write train.en and train.de with ids between spaces, and their first lines as dev.en and dev.de."""
    folder.mkdir(exist_ok=True)
    whole: PairBatch = corpus.train.batch(range(len(corpus.train)))
    for language, block in (("en", whole.source), ("de", whole.target)):
        lines = [" ".join(str(token) for token in row if token > MASK) + "\n" for row in block.tolist()]
        (folder / f"train.{language}").write_text("".join(lines), encoding="utf-8")
        (folder / f"dev.{language}").write_text("".join(lines[:DEV_LINES]), encoding="utf-8")
