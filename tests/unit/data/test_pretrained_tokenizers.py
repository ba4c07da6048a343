"""The tokenizer of an imported model beside ours: ids, pieces, texts."""

import json

import pytest
import tokenizers as hf
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from regardant.data.pretrained_tokenizers import PretrainedTokenizer, absent_of, byte_level, rows_of
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import EOS, MASK, PAD, SOS, UNK
from regardant.errors import ConfigError, DataError

PIECES = ["the", "cat", "##s", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "sat", "."]
SPECIAL = (None, 4, 5, 3, 6)


def made(**changed):
    backend = hf.Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(PIECES)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 4), ("[SEP]", 5)]
    )
    backend.add_special_tokens(["[CLS]", "[SEP]", "[MASK]", "[UNK]"])
    for name, value in changed.items():
        setattr(backend, name, value)
    return PretrainedTokenizer(TokenizerConfig(kind="pretrained", vocab_size=11, special=SPECIAL), backend)


def test_our_special_ids_stand_for_theirs_and_all_others_follow():
    assert rows_of(SPECIAL, 9) == [None, 4, 5, 3, 6, 0, 1, 2, 7, 8]
    assert absent_of(SPECIAL) == (PAD,) and absent_of((1, None, 0, None, None)) == (SOS, UNK, MASK)


def test_texts_become_our_ids_and_texts_again():
    tokenizer = made()
    assert tokenizer.vocab_size == 12
    assert tokenizer.encode("The cats sat.") == [5, 6, 7, 8, 9] == tokenizer.encode_batch(["The cats sat."])[0]
    assert tokenizer.encode("dogs") == [UNK]
    assert tokenizer.frame == ([SOS], [EOS])
    assert tokenizer.decode([SOS, 5, 6, 7, 8, 9, EOS, PAD]) == "the cats sat ."
    assert "".join(tokenizer.decode_as_it_comes([5, 6, 7, 8])) == "the cats sat"
    assert tokenizer.spans([5, 6, 7]) == [(0, 3), (3, 7), (7, 8)]
    assert tokenizer.locate("The cats") == ([5, 6, 7], [(0, 3), (4, 7), (7, 8)])
    assert tokenizer.normalise("The CATS") == "the cats"
    assert tokenizer.tokens([SOS, 5, 7, PAD, 11]) == ["[CLS]", "the", "##s", "<absent_pad>", "<unused_10>"]
    assert tokenizer.encode_with_blanks("the <blank> sat", "<blank>") == [5, MASK, 8]


def test_limits_and_padding_of_the_file_are_not_those_of_a_run():
    tokenizer = made()
    tokenizer.backend.enable_truncation(2)
    tokenizer.backend.enable_padding(length=20)
    again = PretrainedTokenizer(tokenizer.config, tokenizer.backend)
    assert len(again.encode("the cat sat the cat")) == 5


def test_it_is_kept_as_it_is(tmp_path):
    tokenizer = made()
    Tokenizers(tokenizer, tokenizer).save(tmp_path / "tokenizer.json")
    again = Tokenizers.load(tmp_path / "tokenizer.json").source
    assert isinstance(again, PretrainedTokenizer) and again.config == tokenizer.config
    assert json.loads(again.backend.to_str()) == json.loads(tokenizer.backend.to_str())
    assert again.encode("the cats") == tokenizer.encode("the cats")


@pytest.mark.parametrize(
    ("decoder", "pieces", "text"),
    [
        (decoders.ByteLevel(), ["the", "\u0120caf\u00c3\u00a9"], "the café"),
        (decoders.Metaspace(), ["\u2581the", "\u2581cat", "<0x0A>"], "the cat\n"),
        (
            decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()]),
            ["the", " cat", "<0xC3>", "<0xA9>"],
            "the caté",
        ),
    ],
)
def test_pieces_of_other_vocabularies_are_spelled(decoder, pieces, text):
    backend = hf.Tokenizer(models.WordLevel({piece: n for n, piece in enumerate([*pieces, "[UNK]"])}, "[UNK]"))
    backend.decoder = decoder
    size = len(pieces) + 1
    config = TokenizerConfig(kind="pretrained", vocab_size=max(size, 6), special=(None, None, None, size - 1, None))
    assert PretrainedTokenizer(config, backend).decode(range(5, 5 + len(pieces))) == text


def test_a_line_end_of_a_byte_level_piece_is_shown_as_a_sign():
    pieces = ["the", "\u010a\u0120\u0120cat", "\u0109", "<s>", "</s>", "[UNK]"]  # GPT-2 spells a line feed as U+010A
    backend = hf.Tokenizer(models.WordLevel({piece: n for n, piece in enumerate(pieces)}, "[UNK]"))
    backend.decoder = decoders.ByteLevel()
    tokenizer = PretrainedTokenizer(
        TokenizerConfig(kind="pretrained", vocab_size=6, special=(None, 3, 4, 5, None)), backend
    )
    assert tokenizer.tokens(range(5, 8)) == ["the", "⏎▁▁cat", "⇥"]
    assert tokenizer.decode([6]) == "\n  cat"


def test_what_is_no_byte_level_piece_is_taken_as_it_is():
    assert byte_level("\u0120a") == b" a" and byte_level("<|end of text|>") == b"<|end of text|>"


def test_an_unknown_decoder_and_training_are_refused():
    with pytest.raises(DataError, match="a decoder of type CTC: ByteLevel, WordPiece and Metaspace"):
        made(decoder=decoders.CTC())
    with pytest.raises(ConfigError, match=r"set training\.from to its run"):
        PretrainedTokenizer.train(TokenizerConfig(kind="pretrained"), [], 10)
