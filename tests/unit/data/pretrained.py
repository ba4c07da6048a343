"""Tokenizers of imported models, small."""

import tokenizers as hf
from tokenizers import decoders, models, pre_tokenizers, processors

from regardant.data.pretrained_tokenizers import PretrainedTokenizer
from regardant.data.tokenizer_config import TokenizerConfig

SPECIAL = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
"""In the order of our ids, which they have here."""


def imported(model: models.Model, pre_tokenizer: pre_tokenizers.PreTokenizer, decoder: decoders.Decoder):
    backend = hf.Tokenizer(model)
    backend.pre_tokenizer, backend.decoder = pre_tokenizer, decoder
    backend.add_special_tokens(SPECIAL)
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    config = TokenizerConfig(kind="pretrained", vocab_size=backend.get_vocab_size(), special=tuple(range(5)))
    return PretrainedTokenizer(config, backend)


def word_pieces():
    """A tokenizer like BERT's."""
    pieces = [*SPECIAL, "the", "cat", "##s", "sat", "on", "a", "mat", "."]
    model = models.WordPiece({piece: number for number, piece in enumerate(pieces)}, unk_token="[UNK]")
    return imported(model, pre_tokenizers.BertPreTokenizer(), decoders.WordPiece())


def byte_pieces():
    """A tokenizer like RoBERTa's: its pieces have the space before a word, and a letter of "caf\u00e9" is two bytes."""
    merges = [("c", "a"), ("ca", "t"), ("\u0120", "cat")]
    pieces = [*SPECIAL, *"Thecatsf.", "\u0120", "\u00c3", "\u00a9", *("".join(pair) for pair in merges)]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    return imported(
        models.BPE(vocabulary, merges), pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    )
