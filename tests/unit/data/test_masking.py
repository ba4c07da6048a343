from itertools import pairwise

import numpy as np
import pytest
import torch

from regardant.data.masking import (
    HIDDEN,
    MASKED_SHARE,
    REPLACED,
    SPAN_CHANCES,
    SPAN_LENGTHS,
    WordStarts,
    count_targets,
    draw_spans,
    draw_words,
    mask_tokens,
)
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import EOS, MASK, PAD, SOS, SPECIAL_TOKENS
from tests.unit.data.pretrained import byte_pieces, word_pieces

VOCABULARY = 10_000
"""So many that a random token is hardly ever the one it replaces."""


@pytest.fixture(scope="module")
def masked():
    """200 texts of 40 to 100 tokens, padded, and what is made of them."""
    generator = np.random.default_rng(1)
    lengths = generator.integers(40, 101, 200)
    tokens = torch.from_numpy(generator.integers(len(SPECIAL_TOKENS), VOCABULARY, (200, 100)))
    tokens[torch.arange(100) >= torch.from_numpy(lengths)[:, None]] = PAD
    shown, targets = mask_tokens(tokens, VOCABULARY, np.random.default_rng(2))
    return tokens, lengths, shown, targets


def test_fifteen_per_cent_of_each_text_are_targets_and_never_padding(masked):
    tokens, lengths, _, targets = masked
    chosen = targets != PAD
    assert chosen.sum(1).tolist() == [round(MASKED_SHARE * length) for length in lengths.tolist()]
    assert (tokens[chosen] == targets[chosen]).all()
    places = chosen[:, :40].float().mean(0)  # every place alike, with 200 texts of standard error 0.025
    assert places.min() > 0.05 and places.max() < 0.25


def test_of_the_targets_eighty_per_cent_are_hidden_ten_replaced_and_ten_kept(masked):
    tokens, _, shown, targets = masked
    chosen = targets != PAD
    assert (shown[~chosen] == tokens[~chosen]).all()
    seen, count = shown[chosen], int(chosen.sum())
    hidden, kept = seen == MASK, seen == targets[chosen]
    replaced = seen[~hidden & ~kept]
    assert int(hidden.sum()) / count == pytest.approx(HIDDEN, abs=0.02)
    assert int(kept.sum()) / count == pytest.approx(1 - HIDDEN - REPLACED, abs=0.02)
    assert len(replaced) / count == pytest.approx(REPLACED, abs=0.02)
    assert replaced.min() >= len(SPECIAL_TOKENS)
    assert len(replaced.unique()) > 0.9 * len(replaced)


def test_masks_depend_on_the_generator_alone(masked):
    tokens, _, shown, targets = masked
    again = mask_tokens(tokens, VOCABULARY, np.random.default_rng(2))
    assert torch.equal(again[0], shown) and torch.equal(again[1], targets)
    other = mask_tokens(tokens, VOCABULARY, np.random.default_rng(3))
    assert not torch.equal(other[1], targets)


def test_the_shortest_text_has_a_target():
    assert count_targets(np.array([1, 2, 3, 9, 10, 20])).tolist() == [1, 1, 1, 1, 2, 3]
    shown, targets = mask_tokens(torch.tensor([[7, PAD, PAD]]), VOCABULARY, np.random.default_rng(1))
    assert targets.tolist() == [[7, PAD, PAD]] and shown[0, 1:].tolist() == [PAD, PAD]


def test_no_token_is_replaced_by_a_special_one():
    tokens = torch.full((50, 100), len(SPECIAL_TOKENS))
    shown, _ = mask_tokens(tokens, len(SPECIAL_TOKENS) + 2, np.random.default_rng(1))
    assert set(shown.unique().tolist()) == {MASK, len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 1}


# spans


@pytest.fixture(scope="module")
def spanned():
    """60 texts of 300 tokens in words of two on average, the first 20 of them padded, and what is made of them."""
    generator = np.random.default_rng(1)
    tokens = torch.from_numpy(generator.integers(len(SPECIAL_TOKENS), VOCABULARY, (60, 300)))
    tokens[:20, 200:] = PAD
    starts = generator.random((60, 300)) < 0.5
    starts[:, 0] = True
    shown, targets = mask_tokens(tokens, VOCABULARY, np.random.default_rng(2), "spans", starts)
    return tokens, starts, shown, targets


def runs_of_targets(targets):
    """Return (first, after the last) of the targets that stand side by side in a text."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (targets != PAD).astype(int), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def test_spans_are_of_the_share_of_tokens_too(spanned):
    tokens, _, _, targets = spanned
    chosen = targets != PAD
    assert chosen.sum(1).tolist() == [30] * 20 + [45] * 40
    assert (tokens[chosen] == targets[chosen]).all()


def test_spans_are_whole_words_but_for_the_last_of_a_text(spanned):
    _, starts, _, targets = spanned
    cut = 0
    for row, first in zip(targets.numpy(), starts, strict=True):
        runs = runs_of_targets(row)
        assert len(runs) <= 30 and all(first[start] for start, _ in runs)
        cut += sum(end < 300 and row[end] == PAD and not first[end] for _, end in runs)
    assert 0 < cut <= len(targets)  # in the last span, where there are targets enough


def test_the_lengths_of_spans_are_geometric_up_to_ten():
    mean = SPAN_CHANCES @ SPAN_LENGTHS
    assert SPAN_CHANCES.sum() == pytest.approx(1) and mean == pytest.approx(3.8, abs=0.01)
    assert SPAN_CHANCES[1:] / SPAN_CHANCES[:-1] == pytest.approx(0.8)
    tokens = np.full((1, 40_000), VOCABULARY)
    chosen, span = draw_spans(tokens, np.ones(tokens.shape, dtype=bool), np.random.default_rng(1))
    lengths = np.unique(span[chosen], return_counts=True)[1]
    assert lengths.max() == 10 and len(lengths) > 1500
    assert lengths.mean() == pytest.approx(3.6, abs=0.2)  # a span ends before the next one
    assert (lengths == 1).mean() == pytest.approx(SPAN_CHANCES[0], abs=0.05)


def test_a_span_is_hidden_replaced_or_kept_as_a_whole(spanned):
    tokens, starts, shown, targets = spanned
    kinds = np.where(shown == MASK, 0, np.where(shown == tokens, 2, 1))
    chosen = (targets != PAD).numpy()
    inside = chosen[:, 1:] & chosen[:, :-1] & ~starts[:, 1:]  # two tokens of one word
    assert inside.sum() > 300
    assert (kinds[:, 1:][inside] == kinds[:, :-1][inside]).mean() > 0.99
    assert (shown == MASK).sum() / chosen.sum() == pytest.approx(HIDDEN, abs=0.05)
    assert torch.equal(shown[targets == PAD], tokens[targets == PAD])


def test_spans_depend_on_the_generator_alone(spanned):
    tokens, starts, shown, targets = spanned
    again = mask_tokens(tokens, VOCABULARY, np.random.default_rng(2), "spans", starts)
    assert torch.equal(again[0], shown) and torch.equal(again[1], targets)
    assert not torch.equal(mask_tokens(tokens, VOCABULARY, np.random.default_rng(3), "spans", starts)[1], targets)


# whole words


def test_words_are_masked_whole_and_never_more_than_the_share(spanned):
    tokens, starts, _, _ = spanned
    shown, targets = mask_tokens(tokens, VOCABULARY, np.random.default_rng(2), "words", starts)
    chosen = (targets != PAD).numpy()
    for row, first, length in zip(chosen, starts, (tokens != PAD).sum(1).tolist(), strict=True):
        bounds = [*np.flatnonzero(first[:length]).tolist(), length]
        words = [row[start:end] for start, end in pairwise(bounds)]
        assert all(word.all() or not word.any() for word in words)
        assert sum(map(len, words)) == length and not row[length:].any()
    counts = count_targets((tokens != PAD).sum(1).numpy())
    assert (chosen.sum(1) <= counts).all() and chosen.sum() > 0.97 * counts.sum()
    assert (shown == MASK).sum() / chosen.sum() == pytest.approx(HIDDEN, abs=0.05)
    apart = (shown == MASK).numpy()[:, 1:] != (shown == MASK).numpy()[:, :-1]  # a word's tokens are replaced one by one
    assert (apart & chosen[:, 1:] & chosen[:, :-1] & ~starts[:, 1:]).sum() > 50


def test_an_item_of_one_long_word_has_a_target():
    tokens, starts = np.full((1, 9), VOCABULARY), np.zeros((1, 9), dtype=bool)
    starts[0, 0] = True
    chosen, _ = draw_words(tokens, starts, np.random.default_rng(1))
    assert chosen.sum() == 1


@pytest.mark.parametrize(
    ("tokenizer", "words"),
    [
        (word_pieces(), ["the", "cats", "sat", "mat", "."]),
        (byte_pieces(), ["The", " cat", " caf\u00e9", " sat", "."]),
    ],
)
def test_words_start_where_the_tokenizer_of_an_imported_model_splits_them(tokenizer, words):
    ids = tokenizer.encode(" ".join(word.strip() for word in words).replace(" .", "."))
    starts = WordStarts(tokenizer)(np.array([[SOS, *ids, EOS]]))[0]
    assert starts[[0, 1, -1]].all()
    parts = np.split(np.array(ids), np.flatnonzero(starts[1:-1])[1:])
    assert [tokenizer.decode(part) for part in parts] == words


@pytest.mark.parametrize("masking", ["words", "spans"])
def test_what_stands_around_a_text_is_no_target(masking):
    tokenizer = word_pieces()
    rows = [[SOS, *tokenizer.encode("the cats sat on a mat . " * count), EOS] for count in (1, 5)]
    tokens = torch.tensor([row + [PAD] * (len(rows[1]) - len(row)) for row in rows])
    starts = WordStarts(tokenizer)(tokens.numpy())
    for seed in range(30):
        _, targets = mask_tokens(tokens, tokenizer.vocab_size, np.random.default_rng(seed), masking, starts)
        assert not np.isin(targets.numpy(), (SOS, EOS)).any()
        counts = (targets != PAD).sum(1).tolist()
        assert counts == [1, 6] if masking == "spans" else 0 < counts[0] <= 1 and 0 < counts[1] <= 6
    nothing = torch.tensor([[SOS, EOS, EOS]])
    starts = WordStarts(tokenizer)(nothing.numpy())
    _, targets = mask_tokens(nothing, tokenizer.vocab_size, np.random.default_rng(1), masking, starts)
    assert not targets.any()


@pytest.mark.parametrize("kind", ["word", "character", "byte", "bpe", "unigram"])
def test_words_start_where_the_tokenizer_splits_them(kind):
    text = "Two old cats, not 3: they've d\u00e9j\u00e0-vu"
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind), [f"{text} and more"] * 3, 300)
    ids = tokenizer.encode(text)
    starts = WordStarts(tokenizer)(np.array([ids]))[0]
    firsts = [start for (start, end), first in zip(tokenizer.spans(ids), starts, strict=True) if first]
    ends = [*firsts[1:], len(text)]
    found = [text[start:end] for start, end in zip(firsts, ends, strict=True)]
    assert found == ["Two", " old", " cats", ",", " not", " 3", ":", " they", "'", "ve", " d\u00e9j\u00e0", "-", "vu"]
