"""Trees in brackets are the only texts that a search writes under the constraint, whatever the model prefers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant import config as configuration
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import EOS, SPECIAL_TOKENS
from regardant.errors import ConfigError
from regardant.evaluation.trees import brackets
from regardant.generation.beam_tree import beam_tree
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate
from regardant.generation.trees import TreeTokens
from regardant.tasks import load_recipe

from .conftest import TableModel

CPU = torch.device("cpu")
PIECES = [*SPECIAL_TOKENS, "(S", ")S", "(NP", ")NP", ")", "a", "cat", "(", "((S", "x)"]
TOKENS = TreeTokens.of(PIECES, CPU)


def allowed(text, limit=100):
    written = torch.tensor([[[PIECES.index(piece) for piece in text.split()]]], dtype=torch.int64)
    (row,) = TOKENS.forbidden(written, torch.tensor([limit]))[0]
    return {piece for piece, forbidden in zip(PIECES, row.tolist(), strict=True) if not forbidden}


def test_tokens_of_a_tokenizer_are_brackets_and_words():
    trees = ["(S (NP the cat )NP sat . )S"]
    tokenizer = Tokenizer.train(TokenizerConfig(kind="whitespace"), trees, 100)
    parts = TreeTokens.of(tokenizer.pieces, CPU)
    (ids,) = tokenizer.encode_batch(trees)
    assert parts.depth[torch.tensor(ids)].tolist() == [1, 1, 0, 0, -1, 0, 0, -1]
    assert parts.possible[torch.tensor(ids)].all()


OPENING, WORDS = {"(S", "(NP"}, {"a", "cat"}


@pytest.mark.parametrize(
    ("text", "follow"),
    [
        ("", OPENING),
        ("(S", OPENING | WORDS),
        ("(S a", OPENING | WORDS | {")S", ")"}),
        ("(S (NP", OPENING | WORDS),
        ("(S (NP a", OPENING | WORDS | {")NP", ")"}),
        ("(S (NP a )NP", OPENING | WORDS | {")S", ")"}),
        ("(S (NP a ) (S cat", OPENING | WORDS | {")S", ")"}),
        ("(NP (S a )S )NP", {"<eos>"}),
    ],
)
def test_what_may_follow(text, follow):
    assert allowed(text) == follow


@pytest.mark.parametrize(
    ("text", "limit", "follow"),
    [
        ("", 4, OPENING),  # (S a )S <eos>
        ("(S", 4, WORDS),
        ("(S", 6, OPENING | WORDS),
        ("(S", 5, WORDS),
        ("(S a", 4, {")S", ")"}),
        ("(S a", 5, WORDS | {")S", ")"}),
        ("(S (NP a", 6, {")NP", ")"}),
    ],
)
def test_near_the_limit_only_what_closes_follows(text, limit, follow):
    assert allowed(text, limit) == follow


def test_what_is_no_beginning_of_a_tree_goes_on_freely():
    """A forced prefix may be anything."""
    assert allowed("a cat") == set(PIECES)


@settings(deadline=None)
@given(seed=st.integers(0, 10_000), beam_size=st.integers(1, 4), limit=st.integers(4, 25))
def test_every_text_is_a_tree(seed, beam_size, limit):
    model = TableModel(seed, text_tokens=len(PIECES) - len(SPECIAL_TOKENS))
    config = GenerationConfig(beam_size=beam_size, nbest=beam_size, max_length_ratio=0, max_length_extra=limit)
    source = torch.tensor([[5, 6, EOS], [7, 5, EOS]])
    found = generate(model, source, config, trees=TOKENS)
    for hypotheses in found:
        for one in hypotheses[:1]:
            text = " ".join(PIECES[token] for token in one.tokens)
            assert one.finished and brackets(text) is not None and len(one.tokens) < limit, text
    shown = beam_tree(model, source[:1], limit, config, TOKENS)
    best = [shown.candidates[number].token for number in shown.path(shown.best[0])]
    assert best[-1] == EOS and best[:-1] == found[0][0].tokens


def test_trees_of_pieces_are_refused_in_one_line():
    with pytest.raises(ConfigError, match=r"generation.trees needs tokens that are whole brackets.*'bpe'.*whitespace"):
        load_recipe(configuration.recipe("parse-demo"), ["tokenizer.kind=bpe"])


def test_trees_without_repeated_n_grams_are_refused():
    config = GenerationConfig(trees=True, no_repeat_ngram_size=2)
    with pytest.raises(
        ConfigError, match="no_repeat_ngram_size: given 2, and trees repeat their brackets: set it to 0"
    ):
        generate(TableModel(1), torch.tensor([[5, 6, 2]]), config, trees=TOKENS)
