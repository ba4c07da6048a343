"""Texts as tokens: what stands around them, what is cut off, and blanks in them."""

import pytest

from regardant.data.vocabulary import EOS, MASK, SOS
from regardant.modalities import TextModalityConfig
from regardant.modalities.text import SentenceCodec, TextCodec
from tests.unit.data.pretrained import word_pieces

TEXT = "the cats sat on a mat ."


def test_the_end_of_a_text_that_is_cut_has_the_name_of_no_word():
    codec = TextCodec(word_pieces())
    (encoded,) = codec.encode([TEXT])
    assert [encoded[0], encoded[-1]] == [SOS, EOS]
    words = [("[CLS]", 1), ("the", 1), ("cats", 2)]
    assert codec.units(TEXT, encoded) == [*words, ("sat", 1), ("on", 1), ("a", 1), ("mat", 1), (".", 1), ("[SEP]", 1)]
    cut = codec.cut(encoded, 5)
    assert codec.labels(cut) == ["[CLS]", "the", "cat", "##s", "[SEP]"]
    assert codec.units(TEXT, cut) == [*words, ("[SEP]", 1)]


@pytest.mark.parametrize("is_imported", [True, False])
def test_the_end_of_a_sentence_that_is_cut_has_the_name_of_no_word(is_imported):
    own = TextModalityConfig(tokenizer={"kind": "word"})
    codec = SentenceCodec(word_pieces() if is_imported else own.fit([TEXT.replace("cats", "cat")]).tokenizer)
    (encoded,) = codec.encode(["the cat sat on a mat"])
    end = codec.labels(encoded)[-1]
    assert codec.units("the cat sat on a mat", encoded)[-2:] == [("mat", 1), (end, 1)]
    assert codec.units("the cat sat on a mat", codec.cut(encoded, 3)) == [("the", 1), ("cat", 1), (end, 1)]


@pytest.mark.parametrize("kind", ["whitespace", "code", "word", "bpe", "unigram", "character", "byte"])
@pytest.mark.parametrize("text", ["The [MASK].", "The [MASK]. The cat", "[MASK].. [MASK]"])
def test_the_text_behind_a_blank_is_kept(kind, text):
    codec = TextModalityConfig(tokenizer={"kind": kind}).fit(["The cat .", "The cat.. .. The cat.", "[MASK]."] * 20)
    found = codec.encode_with_blanks(text, "[MASK]").tolist()
    assert found.count(MASK) == text.count("[MASK]")
    for part, given in zip(_parts(found), text.split("[MASK]"), strict=True):
        assert codec.tokenizer.decode(part).strip() == given.strip()


def _parts(ids):
    """Return the ids between blanks."""
    parts = [[]]
    for token in ids:
        if token == MASK:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts
