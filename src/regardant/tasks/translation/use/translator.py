"""A text generator from texts to texts."""

import torch

from regardant.data.tokenizers import Tokenizers
from regardant.generation.search import Searcher
from regardant.modalities.text import SentenceCodec
from regardant.models import SequenceToSequenceModel
from regardant.tasks.sequence_to_sequence.generator import TextGenerator


class Translator(TextGenerator):
    """A text generator whose sources are texts; the vocabulary may be joint."""

    answer_name = "Translation"

    def __init__(
        self,
        model: SequenceToSequenceModel,
        tokenizers: Tokenizers,
        device: torch.device,
        searcher: Searcher | None = None,
    ) -> None:
        super().__init__(model, SentenceCodec(tokenizers.source), tokenizers.target, device, searcher)
        self.tokenizers = tokenizers
