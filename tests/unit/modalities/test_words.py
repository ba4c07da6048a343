"""Labelled words as tokens: whatever the tokenizer does, a label stands on the first token of its word."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import normalizers

from regardant.errors import BlankItems, DataError
from regardant.modalities.words import LabelledWords, WordsCodec, WordsModalityConfig, first_tokens
from regardant.models.heads import IGNORED
from tests.unit.data.pretrained import byte_pieces, word_pieces

KINDS = ["word", "bpe", "unigram", "byte", "character"]

CORPUS = ["The cat sat on the mat .", "The cats sat on the mats , and the dog did not .", "don't de-ice it : why ?"] * 9

letters = st.characters(exclude_categories=["Cs", "Cn"])
texts = st.lists(st.text(letters) | st.text(st.sampled_from("Thecat-'.\u0301\u0331H😀\u200d�ßİ")), max_size=8)


def labelled(words):
    return LabelledWords(words, list(range(len(words))))


@pytest.fixture(scope="module")
def codecs():
    texts = [labelled(text.split()) for text in CORPUS]
    return {kind: WordsModalityConfig(tokenizer={"kind": kind}).fit(texts) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@given(drawn=texts)
@example(["don't", "de-ice", "zzz-zzz", "(zzz)", "zzz"])
@example(["a", "\u0301b", "H\u0331"])
@example([".", ".", "..", "…"])
def test_labels_stand_on_the_first_tokens_of_the_words(codecs, kind, drawn):
    codec, words = codecs[kind], " ".join(drawn).split()
    if not words:
        return
    (encoded,) = codec.encode([labelled(words)])
    ids, labels = encoded.T
    assert ids.tolist() == codec.tokenizer.encode(" ".join(words))
    assert labels[first_tokens(encoded)].tolist() == list(range(len(words)))
    for number, word in enumerate(words):
        # The text up to a word has as many tokens as stand before the word's first one.
        before = codec.tokenizer.encode("".join(f"{one} " for one in words[:number]))
        assert labels.tolist().index(number) == len(before)
        own = codec.tokenizer.encode(word)
        assert ids[len(before) :][: len(own)].tolist() == own
    units = codec.units(" ".join(words), encoded)
    assert sum(count for _, count in units) == len(ids)
    assert [name for name, _ in units if name != "▁" or not codec.space] == [
        word for word in words if word != "▁" or not codec.space
    ]


def test_a_text_in_smaller_pieces_has_the_labels_of_its_words():
    codec = WordsModalityConfig(tokenizer={"kind": "bpe"}, bpe_dropout=0.5).fit([labelled(CORPUS[0].split())] * 9)
    (encoded,) = codec.encode([labelled(CORPUS[0].split())])
    smaller = codec.augmented(encoded, [1])
    assert len(smaller) > len(encoded) and smaller.dtype == encoded.dtype
    assert codec.tokenizer.decode(smaller[:, 0]) == CORPUS[0]
    assert codec.named_units(CORPUS[0].split(), smaller)[-1][0] == "."
    pieces = np.split(smaller[:, 0], np.flatnonzero(first_tokens(smaller))[1:])
    assert [codec.tokenizer.decode(one) for one in pieces] == CORPUS[0].split()
    assert smaller[first_tokens(smaller), 1].tolist() == [*range(len(CORPUS[0].split()))]


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_padded_with_targets_that_count_nothing(codecs, kind):
    codec = codecs[kind]
    encoded = codec.encode([labelled(["The", "cats", "sat"]), labelled(["dog"])])
    inputs, targets = codec.collate(encoded), codec.targets(encoded)
    assert inputs.shape == targets.shape == (2, len(encoded[0]))
    assert targets[targets != IGNORED].tolist() == [0, 1, 2, 0]
    assert not inputs[1, len(encoded[1]) :].any() and (targets[1, len(encoded[1]) :] == IGNORED).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_cut_keeps_the_words_that_begin_in_time(codecs, kind):
    codec = codecs[kind]
    (encoded,) = codec.encode([codec.parse("The cats sat on the mats")])
    for length in range(1, len(encoded) + 1):
        cut = codec.cut(encoded, length)
        units = codec.units("The cats sat on the mats", cut)
        assert sum(count for _, count in units) == length
        assert len([name for name, _ in units if name != "▁"]) == first_tokens(cut).sum()


@pytest.mark.parametrize(
    ("tokenizer", "words", "counts"),
    [(word_pieces(), ["the", "cats", "sat"], [1, 2, 1]), (byte_pieces(), ["The", "cat", "sat"], [3, 1, 4])],
)
def test_words_are_spelled_as_in_a_text_by_the_tokenizer_of_an_imported_model(tokenizer, words, counts):
    codec = WordsCodec(tokenizer)
    (encoded,) = codec.encode([labelled(words)])
    assert encoded[:, 0].tolist() == tokenizer.encode(" ".join(words))
    assert codec.named_units(words, encoded) == list(zip(words, counts, strict=True))
    assert codec.words_of(encoded) == words
    with pytest.raises(DataError, match="item 1 has a blank word"):
        codec.encode([labelled(["The", ""])])


def test_texts_without_a_word_that_the_tokenizer_keeps_are_named_all():
    tokenizer = word_pieces()
    tokenizer.backend.normalizer = normalizers.BertNormalizer()
    with pytest.raises(BlankItems, match=r"^item 2 is blank: give a text$") as caught:
        WordsCodec(tokenizer).encode([labelled(one) for one in (["cat"], ["\u200b"], ["cat", "sat"], ["\ufffd"], [])])
    assert caught.value.numbers == [1, 3, 4]


def test_a_text_that_is_cut_has_no_marks_of_an_imported_model_around_it():
    codec = WordsCodec(word_pieces())
    (encoded,) = codec.encode([labelled(["the", "cats", "sat"])])
    for length in range(1, 5):
        np.testing.assert_array_equal(codec.cut(encoded, length), encoded[:length])


def test_the_space_between_words_is_part_of_none(codecs):
    (encoded,) = codecs["character"].encode([labelled(["on", "it"])])
    assert codecs["character"].units("on it", encoded) == [("on", 2), ("▁", 1), ("it", 2)]
    np.testing.assert_array_equal(encoded[:, 1], [0, IGNORED, IGNORED, 1, IGNORED])


def test_a_form_with_a_space_has_one_label(codecs):
    for codec in codecs.values():
        (encoded,) = codec.encode([labelled(["on the", "mat"])])
        assert encoded[first_tokens(encoded), 1].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([labelled(["a"]), labelled([])], "item 2 is blank: give a text"),
        ([labelled(["a", "\u2003"])], "item 1 has a blank word: give words without blank ones between them"),
    ],
)
def test_a_blank_item_is_one_line(codecs, items, message):
    with pytest.raises(DataError, match=f"^{message}$"):
        codecs["bpe"].encode(items)
