from functools import cache
from itertools import chain

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import UNK
from regardant.errors import DataError
from regardant.generation.config import GenerationConfig
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.tasks.translation.use.translator import Translator
from tests.models import over_pairs

GREEDY = GenerationConfig(beam_size=1, length_penalty=0)
KINDS = ("word", "bpe", "unigram", "character", "byte")
CORPUS = ["The cat sat on the mat. Did the old dog sleep? It never ate, they said!"] * 4
TEXT = st.text(st.sampled_from("the cat sat. Did it? é語。!,\u00a0"), max_size=120)


@pytest.fixture
def translator(trained):
    return trained().translator


@pytest.fixture(scope="module")
def untrained():
    """Translators of every kind of token and any length, with random weights."""
    tokenizers = {kind: Tokenizers.train(TokenizerConfig(kind=kind), CORPUS, CORPUS, 300) for kind in KINDS}

    @cache
    def build(kind, max_length):
        sizes = {"d_model": 8, "num_heads": 1, "d_ff": 8, "max_length": max_length}
        stacks = {"encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}}
        size = tokenizers[kind].source.vocab_size
        model = over_pairs(EncoderDecoderConfig(preset=None, **sizes, **stacks), size)
        return Translator(model, tokenizers[kind], torch.device("cpu"))

    return build


def test_lines_come_back_in_their_order_and_blank_ones_blank(translator, test_set):
    lines = [test_set.sources[0], "", test_set.sources[1], " \t", test_set.sources[2]]
    found = translator.generate(lines, GREEDY)
    assert [translation.source for translation in found] == lines
    assert [bool(translation.text) for translation in found] == [True, False, True, False, True]
    assert (found[1].pieces, found[1].tokens, found[1].notes) == (0, [], [])
    alone = [translator.generate([line], GREEDY)[0] for line in lines]
    assert [translation.text for translation in found] == [translation.text for translation in alone]


def test_no_lines_give_none(translator):
    assert translator.generate([], GREEDY) == []


def test_a_translation_does_not_depend_on_the_lines_beside_it(translator, test_set):
    generation = GenerationConfig(beam_size=4, nbest=2)
    forwards = translator.generate(test_set.sources, generation)
    backwards = translator.generate(test_set.sources[::-1], generation)[::-1]
    for one, other in zip(forwards, backwards, strict=True):
        assert [candidate.text for candidate in one.candidates] == [candidate.text for candidate in other.candidates]
        assert one.score == pytest.approx(other.score, abs=1e-4)


def test_candidates_differ_and_come_best_first(translator, test_set):
    ranked = 0
    for translation in translator.generate(test_set.sources, GenerationConfig(beam_size=5, nbest=5)):
        texts = [candidate.text for candidate in translation.candidates]
        scores = [candidate.score for candidate in translation.candidates]
        assert len(set(texts)) == len(texts) == 5
        assert (translation.text, translation.score) == (texts[0], scores[0])
        if max(len(candidate.tokens) for candidate in translation.candidates) < 20:  # else one may be cut, and last
            assert scores == sorted(scores, reverse=True)
            ranked += 1
    assert ranked > 20


def test_scores_are_those_of_scoring_the_same_text(translator, test_set):
    sources = test_set.sources[:40]
    found = translator.generate(sources, GenerationConfig(beam_size=3, length_penalty=0))
    tokenizer = translator.tokenizers.target
    again = translator.score(sources, [translation.text for translation in found])
    compared = 0
    for translation, score in zip(found, again, strict=True):
        # A model may write a text in other tokens than the tokenizer, and a cut one without its EOS.
        if not translation.notes and translation.tokens == tokenizer.tokens(tokenizer.encode(translation.text)):
            assert translation.score == pytest.approx(score, abs=1e-3)
            compared += 1
    assert compared > 20


def test_the_length_penalty_divides_the_score_by_the_length_with_eos(translator, test_set):
    source = test_set.sources[0]
    (translation,) = translator.generate([source], GenerationConfig(beam_size=1, length_penalty=1))
    (score,) = translator.score([source], [translation.text])
    assert not translation.notes
    assert translation.score == pytest.approx(score / (len(translation.tokens) + 1), abs=1e-4)


def test_scoring_makes_no_difference_between_one_pair_and_many(translator, test_set):
    sources, targets = test_set.sources[:9], test_set.references[:9]
    together = translator.score(sources, targets)
    alone = [translator.score([source], [target])[0] for source, target in zip(sources, targets, strict=True)]
    assert together == pytest.approx(alone, abs=1e-3)
    assert max(together) < 0


def test_a_translation_begins_with_its_prefix(translator, test_set):
    sources = test_set.sources[:4]
    prefixes = ["La", "", "Elle est", "Le"]
    found = translator.generate(sources, GenerationConfig(beam_size=3, nbest=3), prefixes)
    for translation, prefix in zip(found, prefixes, strict=True):
        assert all(candidate.text.startswith(prefix) for candidate in translation.candidates)
    free = translator.generate(sources, GenerationConfig(beam_size=3))
    assert found[1].text == free[1].text
    assert any(not one.text.startswith(prefix) for one, prefix in zip(free, prefixes, strict=True))


@pytest.mark.parametrize("prefixes", [["La"], ["La", "Le", "Les"]])
def test_another_number_of_prefixes_is_refused(translator, test_set, prefixes):
    with pytest.raises(DataError, match=f"2 texts and {len(prefixes)} prefixes: give as many of each"):
        translator.generate(test_set.sources[:2], GenerationConfig(), prefixes)


def test_scores_of_unequal_columns_are_refused(translator):
    with pytest.raises(DataError, match="2 sources and 1 targets"):
        translator.score(["a", "b"], ["c"])


def test_a_pair_longer_than_the_model_is_named(translator):
    long = "the " * 60
    with pytest.raises(DataError, match="line 70 has 61 tokens, the model takes 48: shorten it") as error:
        translator.score(["the cat"] * 69 + [long], ["le chat"] * 70)
    assert "\n" not in str(error.value)


def test_a_long_line_is_cut_between_sentences(untrained):
    translator = untrained("word", 9)
    line = "The cat sat. The dog sat. Did the cat sleep? It never ate!"
    assert texts_of_parts(translator, line) == ["The cat sat. The dog sat.", "Did the cat sleep?", "It never ate!"]


def test_a_long_sentence_is_cut_between_words(untrained):
    translator = untrained("bpe", 9)
    parts = texts_of_parts(translator, "the old cat sat on the mat they said it never ate on the old mat")
    assert len(parts) > 1
    assert " ".join(parts) == "the old cat sat on the mat they said it never ate on the old mat"


def test_a_long_word_is_cut_between_tokens(untrained):
    assert texts_of_parts(untrained("character", 5), "catsatonmat") == ["cats", "aton", "mat"]


def parts_of(translator, line):
    return [part.tolist() for part in translator.codec.parts(line, translator.max_length)[0]]


def texts_of_parts(translator, line):
    return [translator.tokenizers.source.decode(ids) for ids in parts_of(translator, line)]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None)
@given(line=TEXT, max_length=st.sampled_from([2, 3, 7, 20, 40]))
def test_every_token_of_a_line_is_in_some_part_and_every_part_fits(untrained, kind, line, max_length):
    translator = untrained(kind, max_length)
    parts = parts_of(translator, line)
    assert all(0 < len(part) < max_length for part in parts)
    assert [*chain(*parts)] == (translator.tokenizers.source.encode(line) if line.strip() else [])


@pytest.fixture
def long_line(translator, test_set):
    """Sentences of known words, so that its parts can be read as text."""
    known = [line for line in test_set.sources if UNK not in translator.tokenizers.source.encode(line)]
    return " ".join(known * 6)


def test_a_line_that_was_cut_says_so_and_its_parts_are_translated_one_by_one(translator, long_line):
    (translation,) = translator.generate([long_line], GREEDY)
    assert translation.pieces > 1 and len(translation.candidates) == 1
    assert translation.notes[0] == f"longer than the model's 48 tokens, read in {translation.pieces} parts"
    parts = texts_of_parts(translator, long_line)
    alone = translator.generate(parts, GREEDY)
    assert translation.text == " ".join(part.text for part in alone)
    assert translation.score == pytest.approx(sum(part.score for part in alone) / len(alone), abs=1e-3)
    assert translation.tokens == [token for part in alone for token in part.tokens]


def test_a_line_that_was_cut_begins_with_its_prefix_once(translator, long_line):
    (translation,) = translator.generate([long_line], GREEDY, ["Elle"])
    (free,) = translator.generate([long_line], GREEDY)
    assert translation.pieces > 1 and not free.text.startswith("Elle")
    first, *others = texts_of_parts(translator, long_line)
    (begun,) = translator.generate([first], GREEDY, ["Elle"])
    rest = " ".join(part.text for part in translator.generate(others, GREEDY))
    assert begun.text.startswith("Elle")
    assert translation.text == f"{begun.text} {rest}"


def test_a_translation_that_did_not_end_says_so(translator, test_set):
    generation = GenerationConfig(beam_size=1, max_length_ratio=0, max_length_extra=2)
    (translation,) = translator.generate(test_set.sources[:1], generation)
    assert len(translation.tokens) == 2
    assert translation.notes == ["stopped at the length limit before the translation ended"]
