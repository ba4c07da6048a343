import numpy as np
import pytest
import torch

from regardant.data.masking import HIDDEN, MASKED_SHARE, REPLACED, count_targets, mask_tokens
from regardant.data.vocabulary import MASK, PAD, SPECIAL_TOKENS

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
