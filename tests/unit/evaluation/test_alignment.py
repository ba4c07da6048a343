import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from regardant.errors import DataError
from regardant.evaluation.alignment import (
    NO_WORD,
    alignment_error_rate,
    choose_threshold,
    extract_links,
    format_links,
    merge_to_words,
    parse_links,
    shifted,
    word_of_token,
)

links = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6)
matrices = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=2, max_dims=2, max_side=6),
    elements=st.floats(0, 1, width=32),
)


@pytest.mark.parametrize(
    ("predicted", "sure", "possible", "expected"),
    [
        ({(0, 0), (1, 1)}, {(0, 0), (1, 1)}, None, 0),
        ({(0, 1)}, {(0, 0)}, None, 1),
        ({(0, 0), (1, 1)}, {(0, 0), (2, 1)}, None, 1 - 2 / 4),
        ({(0, 0), (1, 1)}, {(0, 0), (2, 1)}, {(1, 1)}, 1 - (1 + 2) / 4),
        (set(), {(0, 0)}, None, 1),
        (set(), set(), None, 0),
    ],
)
def test_error_rates_by_hand(predicted, sure, possible, expected: float):
    rate = alignment_error_rate([predicted], [sure], None if possible is None else [possible])
    assert rate == pytest.approx(expected)


@given(st.lists(st.tuples(links, links, links), max_size=4))
def test_the_error_rate_is_the_formula_counted_link_by_link(corpus):
    hits = size = 0
    for predicted, sure, extra in corpus:
        for source in range(5):
            for target in range(5):
                link = (source, target)
                hits += (link in predicted) * ((link in sure) + (link in sure or link in extra))
                size += (link in predicted) + (link in sure)
    rate = alignment_error_rate(*zip(*corpus, strict=True)) if corpus else alignment_error_rate([], [], [])
    assert rate == pytest.approx(1 - hits / size if size else 0)


def test_the_corpus_counts_links_not_sentences():
    many, one = {(i, i) for i in range(9)}, {(0, 0)}
    assert alignment_error_rate([many, {(1, 1)}], [many, one]) == pytest.approx(0.1)


def test_unequal_counts_of_sentences_are_refused():
    with pytest.raises(DataError, match=r"^links of 1 sentences against 2 with sure and 2 with possible gold links;"):
        alignment_error_rate([set()], [set(), set()])


def test_each_target_word_is_linked_to_its_heaviest_source_word():
    assert extract_links(np.array([[0.1, 0.9], [0.6, 0.4], [0.2, 0.8]])) == {(1, 0), (0, 1), (1, 2)}


def test_equal_weights_link_the_first():
    assert extract_links(np.array([[0.2, 0.4, 0.4]])) == {(1, 0)}


def test_a_threshold_also_links_each_source_word_to_its_heaviest_target_word():
    weights = np.array([[0.5, 0.4, 0.1], [0.05, 0.9, 0.05]])
    assert extract_links(weights) == {(0, 0), (1, 1)}
    assert extract_links(weights, 0.05) == {(0, 0), (1, 1), (2, 0)}
    assert extract_links(weights, 0.1) == {(0, 0), (1, 1)}


def test_a_threshold_of_one_adds_no_links_of_weights_above_one():
    weights = np.array([[3.0, 2.0], [0.5, 1.5]])
    assert extract_links(weights) == {(0, 0), (1, 1)}
    assert extract_links(weights, 0.5) == {(0, 0), (1, 1), (1, 0)}


def test_a_row_of_zeros_and_an_empty_matrix_have_no_links():
    assert extract_links(np.array([[0.0, 0.0], [0.0, 1.0]])) == {(1, 1)}
    assert extract_links(np.zeros((0, 0))) == extract_links(np.zeros((2, 0))) == set()


@given(matrices, st.floats(0, 1))
def test_a_lower_threshold_only_adds_links(weights, threshold: float):
    one_each = extract_links(weights)
    assert one_each <= extract_links(weights, threshold)
    assert len(one_each) == np.count_nonzero(weights.any(1))


def test_the_chosen_threshold_has_the_lowest_error_rate():
    weights = [np.array([[0.5, 0.4, 0.1], [0.1, 0.1, 0.8]])]
    gold = [{(0, 0), (1, 0), (2, 1)}]
    assert alignment_error_rate([extract_links(weights[0], choose_threshold(weights, gold))], gold) == 0
    assert choose_threshold(weights, [{(0, 0), (2, 1)}]) == 1


def test_a_shifted_row_is_from_one_step_later():
    weights = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    assert shifted(weights).tolist() == [[0.2, 0.8], [0.5, 0.5], [0.0, 0.0]]


def test_subwords_are_summed_over_the_source_and_averaged_over_the_target():
    weights = np.array([[0.1, 0.2, 0.6, 0.1], [0.3, 0.4, 0.2, 0.1], [0.7, 0.1, 0.1, 0.1]])
    merged = merge_to_words(weights, [0, 0, 1, NO_WORD], [0, 0, 1])
    np.testing.assert_allclose(merged, [[(0.3 + 0.7) / 2, (0.6 + 0.2) / 2], [0.8, 0.1]])


def test_a_word_without_tokens_has_zeros():
    merged = merge_to_words(np.ones((1, 1)), [1], [2])
    assert merged.tolist() == [[0, 0], [0, 0], [0, 1]]


def test_tokens_without_words_leave_nothing():
    assert merge_to_words(np.ones((1, 2)), [NO_WORD, NO_WORD], [NO_WORD]).shape == (0, 0)


@given(st.data(), matrices)
def test_merging_keeps_the_sums_of_rows(data, weights):
    source_words = data.draw(st.lists(st.integers(-1, 3), min_size=weights.shape[1], max_size=weights.shape[1]))
    target_words = data.draw(st.lists(st.integers(-1, 3), min_size=weights.shape[0], max_size=weights.shape[0]))
    merged = merge_to_words(weights, source_words, target_words)
    in_words = weights[:, np.array(source_words) != NO_WORD].sum(1)
    for word in range(max(target_words) + 1):
        rows = [total for total, of in zip(in_words, target_words, strict=True) if of == word]
        assert merged[word].sum() == pytest.approx(np.mean(rows) if rows else 0)


def test_a_token_belongs_to_the_word_it_shares_most_characters_with():
    #              Le_chat_s'assoit
    words = [(0, 2), (3, 7), (8, 10), (10, 16)]
    tokens = [(0, 2), (2, 5), (5, 7), (7, 12), (12, 16), (0, 0), (2, 3)]
    assert word_of_token(tokens, words) == [0, 1, 1, 2, 3, NO_WORD, NO_WORD]


def test_no_words_or_no_tokens_are_no_trouble():
    assert word_of_token([(0, 2), (2, 3)], []) == [NO_WORD, NO_WORD]
    assert word_of_token([], [(0, 2)]) == []


@given(st.sets(st.tuples(st.integers(0, 200), st.integers(0, 200))))
def test_formatted_links_parse_back(pairs):
    assert parse_links(format_links(pairs)) == pairs


def test_links_are_written_in_order():
    assert format_links({(10, 0), (2, 1), (2, 0)}) == "2-0 2-1 10-0"


@pytest.mark.parametrize("text", ["0", "0-", "0-0,1-1", "a-b", "-1-0", "0-0 1?2", "0 - 1"])
def test_a_bad_link_is_refused_in_one_line(text: str):
    with pytest.raises(
        DataError, match=r"^alignment link '.*'; must be source-target, counted from 0, as in '0-0 1-2'$"
    ):
        parse_links(text)
