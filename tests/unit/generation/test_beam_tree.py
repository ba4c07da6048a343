"""The plain search finds what the fast one finds, and says what became of all that it weighed."""

import pytest
import torch

from regardant.data.vocabulary import EOS, SOS
from regardant.generation.beam_tree import beam_tree
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate

CONFIGS = [
    {"beam_size": 1, "length_penalty": 0},
    {"beam_size": 2, "length_penalty": 1},
    {"beam_size": 3, "nbest": 3, "length_penalty": 0.6},
    {"beam_size": 4, "nbest": 2, "length_penalty": 0},
    {"beam_size": 4, "nbest": 4, "length_penalty": 1, "no_repeat_ngram_size": 2},
    {"beam_size": 5, "nbest": 1, "length_penalty": 2, "no_repeat_ngram_size": 1},
]
SOURCES = [[5, EOS], [6, 7, EOS], [8, 5, 6, EOS]]


@pytest.mark.parametrize("options", CONFIGS, ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_it_finds_what_beam_search_finds(table_model, options, seed):
    model = table_model(seed=seed)
    config = GenerationConfig(max_length_ratio=0, max_length_extra=5, **options)
    for source in SOURCES:
        given = torch.tensor([source])
        tree = beam_tree(model, given, 5, config)
        found = []
        for number in tree.best:
            tokens = [tree.candidates[one].token for one in tree.path(number)]
            found.append((tokens, tree.candidates[number].score))
        expected = generate(model, given, config)[0]
        whole = [[*one.tokens, EOS] if one.finished else one.tokens for one in expected]
        assert [tokens for tokens, _ in found] == whole
        assert [score for _, score in found] == pytest.approx([one.score for one in expected], rel=1e-5)


def test_every_candidate_says_what_became_of_it(table_model):
    beam_size = 3
    config = GenerationConfig(beam_size=beam_size, length_penalty=1, max_length_ratio=0, max_length_extra=5)
    tree = beam_tree(table_model(seed=1), torch.tensor([[5, 6, EOS]]), 5, config)
    assert [one.number for one in tree.candidates] == list(range(len(tree.candidates)))
    for step in range(1, tree.candidates[-1].step + 1):
        here = [one for one in tree.candidates if one.step == step]
        totals = [one.log_probability for one in here]
        assert totals == sorted(totals, reverse=True)
        assert len(here) <= 2 * beam_size and sum(one.fate == "kept" for one in here) <= beam_size
        assert all(one.token == EOS for one in here if one.fate == "ended")
        assert SOS not in {one.token for one in here}
    for one in tree.candidates:
        parent = tree.candidates[one.parent] if one.parent != -1 else None
        assert parent is None or (parent.fate == "kept" and parent.step == one.step - 1)
        assert one.log_probability <= (0 if parent is None else parent.log_probability)
        assert one.score == pytest.approx(one.log_probability / one.step)
