"""The corpus of a translation run: split, tokenised once, and kept in the run folder."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regardant.config.run_files import TOKENIZER
from regardant.data.batching import EncodedPairs, id_dtype
from regardant.data.parallel import MARKER, Splits
from regardant.data.streamed_pairs import StreamedPairsConfig
from regardant.data.tokenizers import Tokenizers
from regardant.modalities.text import SentenceCodec
from regardant.tasks.sequence_to_sequence.corpus import Corpus
from regardant.tasks.sequence_to_sequence.prepare import count_words, vocab_size_for
from regardant.tasks.take_over import run_of_vocabulary
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.learn.training_links import TrainingLinks, read_links

if TYPE_CHECKING:
    from datasets import Dataset

CHUNK = 10_000
"""Sentence pairs tokenised at a time: enough to keep all cores at work, a few megabytes."""

STREAMED_PAIRS = 1_000_000
"""Number of pairs that is assumed for a stream when a model is chosen: its length is not known."""


@dataclass(frozen=True)
class TextCorpus(Corpus):
    """Pairs of texts."""

    splits: Splits
    tokenizers: Tokenizers
    links: TrainingLinks | None
    """Word alignments of the training pairs. None without `alignment_guidance`."""
    streamed: bool
    """True if the training pairs are the beginning of a stream."""

    @property
    def size(self) -> int:
        return max(len(self.train), STREAMED_PAIRS) if self.streamed else len(self.train)


def read_corpus(config: TranslationConfig, run: Path, log: Callable[[str], None]) -> TextCorpus:
    """Read, clean, split and tokenise a corpus into RUN/data, or open the one that an earlier start left there."""
    folder = run / "data"
    text, vocabulary = folder / "text", run / TOKENIZER
    if (text / MARKER).is_file():
        splits = Splits.load(text)
    else:
        splits = config.data.read(text, config.seed)
        for line in splits.report.lines():
            log(line)
    if not vocabulary.is_file():
        _tokenizers(config, splits, log).save(vocabulary)
    tokenizers = Tokenizers.load(vocabulary)
    codec = SentenceCodec(tokenizers.source)
    shards = config.data.fingerprints() if isinstance(config.data, StreamedPairsConfig) else {}

    def encoded(name: str, dataset: "Dataset") -> EncodedPairs:
        path = folder / "tokens" / name
        if path.is_dir():
            return EncodedPairs.load(codec, path)
        return EncodedPairs.build(codec, _encoded_chunks(dataset, tokenizers, codec), path)

    return TextCorpus(
        codec,
        tokenizers.target,
        encoded("train", splits.train),
        encoded("validation", splits.validation),
        splits.validation["source"],
        splits.validation["target"],
        {name: len(pairs) for name, pairs in splits.tests.items()},
        splits.fingerprints | shards,
        splits,
        tokenizers,
        None if config.alignment_guidance is None else read_links(config.data, splits, text),
        bool(shards),
    )


def _encoded_chunks(
    dataset: "Dataset", tokenizers: Tokenizers, codec: SentenceCodec
) -> Iterator[tuple[list[NDArray[Any]], list[NDArray[Any]]]]:
    dtype = id_dtype(tokenizers.target.vocab_size)
    for chunk in dataset.iter(batch_size=CHUNK):
        targets = tokenizers.target.encode_batch(chunk["target"])
        yield codec.encode(chunk["source"]), [np.array(ids, dtype) for ids in targets]


def _tokenizers(config: TranslationConfig, splits: Splits, log: Callable[[str], None]) -> Tokenizers:
    if (earlier := run_of_vocabulary(config.training)) is not None:
        log(f"vocabulary taken over from {earlier}")
        return Tokenizers.load(earlier / TOKENIZER)

    def column(name: str) -> Any:
        return (text for chunk in splits.train.iter(batch_size=CHUNK) for text in chunk[name])

    log(f"learning a {config.tokenizer.kind} vocabulary")
    words = count_words(column("source")) + count_words(column("target"))
    asked = config.tokenizer.vocab_size or vocab_size_for(words)
    return Tokenizers.train(config.tokenizer, column("source"), column("target"), asked)
