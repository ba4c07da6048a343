"""Training a language model from a stream of documents."""

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from regardant.data.batching import id_dtype
from regardant.data.shards import Stream
from regardant.data.streamed import HeldOut, texts_of
from regardant.data.streamed_text import StreamedTextConfig
from regardant.data.tables import Row
from regardant.data.text import EncodedText, Tokens
from regardant.data.tokenizers import Tokenizer
from regardant.data.windows import WindowBatch
from regardant.models import CausalModel
from regardant.tasks.language_modelling.config import LanguageModellingConfig
from regardant.tasks.language_modelling.job import LanguageModellingJob
from regardant.tasks.streaming import StreamedBatches, StreamedJob


class WindowsBuffer:
    """The tokens of a buffer, in windows. Implements `tasks.streaming.RowBuffer`."""

    def __init__(self, tokens: Tokens, *, context: int, batch_tokens: int) -> None:
        self.tokens, self.context, self.batch_tokens = tokens, context, batch_tokens

    def plan(self, generator: np.random.Generator, size: int) -> list[NDArray[np.int64]]:
        """Return the starts of the windows of each batch of one of `size` processes. The last window may be shorter,
        and comes alone."""
        whole = generator.permutation(np.arange(0, len(self.tokens) - self.context, self.context))
        windows = max(1, self.batch_tokens // (self.context * size))
        batches = [whole[at : at + windows] for at in range(0, len(whole), windows)]
        if (start := len(whole) * self.context) < len(self.tokens) - 1:
            batches.insert(int(generator.integers(len(batches) + 1)), np.array([start]))
        return batches

    def load(self, rows: NDArray[np.int64]) -> WindowBatch:
        """Return one batch as tensors."""
        chosen = self.tokens[rows[:, None] + np.arange(self._targets(rows) + 1)]
        return WindowBatch(torch.from_numpy(chosen.astype(np.int64)))

    def count(self, rows: NDArray[np.int64]) -> int:
        """Return the number of predicted tokens of a batch."""
        return len(rows) * self._targets(rows)

    def _targets(self, rows: NDArray[np.int64]) -> int:
        return min(self.context, len(self.tokens) - 1 - int(rows.max()))


class StreamedTextJob(StreamedJob, LanguageModellingJob):
    """The job of a language model whose text is streamed."""

    def __init__(
        self, config: LanguageModellingConfig, text: EncodedText, model: CausalModel, tokenizer: Tokenizer
    ) -> None:
        super().__init__(config, text, model, tokenizer)
        self.stream = StreamedBatches(stream_of(config, tokenizer), config.seed)


def stream_of(config: LanguageModellingConfig, tokenizer: Tokenizer) -> Stream[WindowsBuffer]:
    """Return the stream of a recipe, in tokens of the tokenizer."""
    data = config.data
    assert isinstance(data, StreamedTextConfig)
    encode = partial(_encoded, config, tokenizer, data.leave_out())
    return Stream(data.found(), (data.column,), data.buffer_rows, config.seed, encode)


def _encoded(
    config: LanguageModellingConfig, tokenizer: Tokenizer, held_out: HeldOut, rows: list[Row]
) -> WindowsBuffer:
    documents = [f"{text}\n" for text in texts_of(rows) if held_out.split_of(text) == "train"]
    ids = [np.array(one, id_dtype(tokenizer.vocab_size)) for one in tokenizer.encode_batch(documents)]
    tokens = np.concatenate(ids) if ids else np.empty(0, np.int32)
    return WindowsBuffer(tokens, context=config.model.max_length, batch_tokens=config.training.batch_tokens)
