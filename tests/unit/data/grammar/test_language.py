"""What holds for every sentence, tried on a large sample."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

from regardant.data.grammar import Pair, count
from regardant.data.grammar.language import language
from regardant.data.grammar.lexicon import Adjective, Noun, Phrase, Pronoun, Verb, adjectives, determiners, nouns, verbs
from regardant.data.grammar.syntax import Sentence
from regardant.data.words import words
from regardant.evaluation.trees import brackets

pytestmark = pytest.mark.xdist_group("language")  # one process makes what all tests share

Sample = list[tuple[Sentence, Pair]]


def lexemes(tree: object) -> Iterator[object]:
    if isinstance(tree, (Noun, Adjective, Verb, Phrase, Pronoun)):
        yield tree
    elif isinstance(tree, tuple):
        for part in tree:
            yield from lexemes(part)
    elif is_dataclass(tree):
        for field in fields(tree):
            yield from lexemes(getattr(tree, field.name))


def test_there_are_more_than_ten_million_pairs():
    assert count() > 10_000_000


def test_different_trees_are_different_sentences(sample: Sample):
    """So that counting trees counts pairs."""
    assert len({tree for tree, _ in sample}) == len({pair.source for _, pair in sample})


def test_a_source_has_one_translation(sample: Sample):
    targets: dict[str, Pair] = {}
    assert all(targets.setdefault(pair.source, pair) == pair for _, pair in sample)


def test_a_tree_has_a_leaf_for_every_word_of_its_source(sample: Sample):
    for _, pair in sample[:5000]:
        found = brackets(pair.tree)
        assert found is not None
        leaves = [piece for piece in pair.tree.split() if piece[0] not in "()"]
        assert leaves == [word.text for word in words(pair.source)]
        (whole,) = (
            (label, end)
            for label, start, end in found
            if label in ("S", "SQ") and (start, end) == (0, max(last for _, _, last in found))
        )
        assert whole == ("SQ" if pair.source.endswith("?") else "S", len(words(pair.source)))


def test_the_lexicon_has_more_than_four_hundred_english_words(sample: Sample):
    listed = {noun.english[0] for noun in nouns().values()} | set(adjectives()) | set(verbs())
    assert len(listed) > 400


def test_every_word_of_the_lexicon_is_met_often(sample: Sample):
    met = Counter(lexeme for tree, _ in sample for lexeme in lexemes(tree))
    expected = 100 * len(sample) / 100_000
    listed = (*nouns().values(), *adjectives().values(), *verbs().values())
    assert [lexeme for lexeme in listed if met[lexeme] < 0.7 * expected] == []


def test_every_determiner_is_met(sample: Sample):
    text = " ".join(f" {pair.source.lower()}" for _, pair in sample)
    named = {" ".join(one.forms[0].english).replace("a|an", "an") for one in determiners()}
    assert [name for name in named if f" {name} " not in text and name] == []


def test_surface_forms_stay_few(sample: Sample):
    assert len({word.text for _, pair in sample for word in words(pair.source)}) <= 1300
    assert len({word.text for _, pair in sample for word in words(pair.target)}) <= 2500


def test_sentences_are_of_moderate_length(sample: Sample):
    lengths = [len(words(pair.source)) for _, pair in sample]
    assert 8 <= sum(lengths) / len(lengths) <= 11
    assert max(lengths) <= 25


def test_links_are_in_range_and_no_target_word_goes_without(sample: Sample):
    for _, pair in sample:
        sources, targets = len(words(pair.source)), len(words(pair.target))
        assert all(i < sources for i, _ in pair.links)
        assert {j for _, j in pair.links} == set(range(targets))


def test_every_source_word_is_linked_and_links_are_in_order(sample: Sample):

    for _, pair in sample:
        assert {i for i, _ in pair.links} == set(range(len(words(pair.source))))
        assert pair.links == tuple(sorted(set(pair.links)))


def test_no_mark_of_the_tables_is_left(sample: Sample):
    assert not [pair for _, pair in sample if set("*|") & set(pair.source + pair.target)]


def test_what_is_drawn_is_in_the_language(sample: Sample):
    assert all(tree in language() for tree, _ in sample[:30])
