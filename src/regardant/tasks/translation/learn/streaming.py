"""Training a translator from a stream of pairs."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from regardant.data.batching import Arrays, PairBatch, Source, id_dtype, pad, plan_batches
from regardant.data.shards import Stream
from regardant.data.streamed import HeldOut
from regardant.data.streamed_pairs import StreamedPairsConfig
from regardant.data.tables import Row
from regardant.models import SequenceToSequenceModel
from regardant.tasks.sequence_to_sequence.job import SequenceToSequenceJob
from regardant.tasks.streaming import StreamedBatches, StreamedJob
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.learn.corpus import TextCorpus

AT_ONCE = 2048
"""Number of pairs encoded at a time. Tokens of a whole buffer at once would take several times its memory."""


class PairsBuffer:
    """Encoded pairs of a buffer. Those longer than the model are left out. Implements `tasks.streaming.RowBuffer`."""

    def __init__(
        self,
        codec: Source,
        sources: Arrays,
        targets: Arrays,
        *,
        batch_tokens: int,
        max_length: int,
    ) -> None:
        self.codec, self.batch_tokens, self.max_length = codec, batch_tokens, max_length
        self.sources, self.targets = sources, targets
        self.source_lengths = codec.lengths(sources.lengths)
        self.target_lengths = targets.lengths + 1

    def plan(self, generator: np.random.Generator, size: int) -> list[NDArray[np.int64]]:
        """Return the rows of each batch of one of `size` processes, which share the tokens of a batch."""
        batch_tokens = max(1, self.batch_tokens // size)
        longest = min(self.max_length, batch_tokens)
        kept = np.flatnonzero((self.source_lengths <= longest) & (self.target_lengths <= longest))
        batches = plan_batches(
            self.source_lengths[kept],
            self.target_lengths[kept],
            batch_tokens=batch_tokens,
            seed=int(generator.integers(2**31)),
            epoch=0,
        )
        return [kept[batch] for batch in batches]

    def load(self, rows: NDArray[np.int64]) -> PairBatch:
        """Return one batch as tensors."""
        source = self.codec.collate([self.sources[row] for row in rows])
        return PairBatch(source, pad([self.targets[row] for row in rows], sos=True))

    def count(self, rows: NDArray[np.int64]) -> int:
        """Return the number of target tokens of a batch, with EOS."""
        return int(self.target_lengths[rows].sum())


class StreamedTranslationJob(StreamedJob, SequenceToSequenceJob):
    """The job of a translator whose pairs are streamed."""

    def __init__(self, config: TranslationConfig, corpus: TextCorpus, model: SequenceToSequenceModel) -> None:
        super().__init__(config, corpus, model)
        self.stream = StreamedBatches(stream_of(config, corpus), config.seed)


def stream_of(config: TranslationConfig, corpus: TextCorpus) -> Stream[PairsBuffer]:
    """Return the stream of a recipe, encoded as its sample is."""
    data = config.data
    assert isinstance(data, StreamedPairsConfig)
    encode = partial(_encoded, config, data, corpus, data.leave_out(config.seed))
    return Stream(data.found(), (data.source, data.target), data.buffer_rows, config.seed, encode)


def _encoded(
    config: TranslationConfig, data: StreamedPairsConfig, corpus: TextCorpus, held_out: HeldOut, rows: list[Row]
) -> PairsBuffer:
    pairs = data.training_pairs(rows, held_out)
    dtype = id_dtype(corpus.tokenizer.vocab_size)
    chunks = [pairs[first : first + AT_ONCE] for first in range(0, len(pairs), AT_ONCE)]
    encode = corpus.tokenizer.encode_batch
    return PairsBuffer(
        corpus.codec,
        Arrays.join(corpus.codec.encode([source for source, _ in chunk]) for chunk in chunks),
        Arrays.join([np.array(ids, dtype) for ids in encode([target for _, target in chunk])] for chunk in chunks),
        batch_tokens=config.training.batch_tokens,
        max_length=config.model.max_length,
    )
