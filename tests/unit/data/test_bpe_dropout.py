"""Words in other pieces: the same text, from a seed, in pieces that a merge was made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regardant.data.bpe_dropout import NOT_MERGED, BpeDropout
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
from regardant.errors import ConfigError

CORPUS = ["the lowest newest widest boat", "lower and newer and wider boats", "a low new wide boat"] * 9


@pytest.fixture(scope="module", params=["bpe", "code"])
def tokenizer(request) -> Tokenizer:
    return Tokenizer.train(TokenizerConfig(kind=request.param), CORPUS, 330)


@given(chance=st.floats(0.01, 0.99), seed=st.integers(0, 99), line=st.sampled_from(CORPUS))
def test_pieces_of_a_text_are_those_of_its_tokens(tokenizer, chance, seed, line):
    ids = np.array(tokenizer.encode(line))
    smaller, tokens = BpeDropout(tokenizer, chance)(ids, [seed])
    assert tokenizer.decode(smaller) == tokenizer.decode(ids)
    for number, token in enumerate(ids):
        assert tokenizer.decode([*smaller[tokens == number]]) == tokenizer.decode([token])


def test_a_chance_near_one_spells_in_letters_and_none_at_all_changes_nothing(tokenizer):
    ids = np.array(tokenizer.encode("the lowest boat"))
    drop = BpeDropout(tokenizer, 0.999999)
    letters, _ = drop(ids, [1])
    assert len(letters) > len(ids) and (drop.merged_of[letters] == NOT_MERGED).all()
    unchanged, tokens = BpeDropout(tokenizer, 0.0)(ids, [1])
    assert unchanged.tolist() == ids.tolist() and tokens.tolist() == [*range(len(ids))]


def test_a_seed_decides_and_the_chance_is_that_of_each_piece(tokenizer):
    ids = np.array([one for line in CORPUS for one in tokenizer.encode(line)])
    drop = BpeDropout(tokenizer, 0.3)
    assert drop(ids, [1, 2])[0].tolist() == drop(ids, [1, 2])[0].tolist() != drop(ids, [1, 3])[0].tolist()
    merged = drop.merged_of[ids, 0] >= 0
    kept = np.bincount(drop(ids, [7])[1])[merged] == 1
    assert merged.sum() > 100 and 0.6 < kept.mean() < 0.8


@pytest.mark.parametrize("kind", ["word", "unigram", "byte"])
def test_kinds_without_merges_are_refused_in_one_line(kind):
    plain = Tokenizer.train(TokenizerConfig(kind=kind), CORPUS, 300)
    with pytest.raises(ConfigError, match=f"a vocabulary of kind {kind} has none: set tokenizer.kind=bpe"):
        BpeDropout(plain, 0.1)
