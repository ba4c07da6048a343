"""Sentences of the grammar with their trees as labelled items."""

from regardant.data.grammar import corpus
from regardant.data.grammar.config import GrammarTreesConfig


def test_sentences_are_split_as_those_to_translate_and_labelled_with_their_trees():
    sizes = {"train_size": 400, "test_size": 20, "heldout_size": 30}
    sets = GrammarTreesConfig(validation_share=0.05, **sizes).read(7)
    written = corpus(seed=7, train=380, validation=20, test=20, heldout=30)
    assert list(sets) == ["train", "validation", "test", "heldout"]
    for name, items in sets.items():
        assert items == [(pair.source, pair.tree) for pair in getattr(written, name)]
    assert all(tree.startswith(("(S ", "(SQ ")) for items in sets.values() for _, tree in items)
