"""Cross-attention between two parts of an item: order, lengths, names, and what is refused."""

import pytest
import torch
from torch.testing import assert_close

from regardant.data.vocabulary import PAD
from regardant.models.cross import CrossConfig
from regardant.models.heads import MatchConfig, SequenceClassConfig
from regardant.models.representations import JoinedBuilder, patches, tokens

WORDS = torch.tensor([[5, 6, 7, 8], [8, 9, PAD, PAD]])
CONTEXT = torch.tensor([[5, 9, 6, 10, 7], [7, 5, 10, PAD, PAD]])
IMAGES = torch.rand(2, 4, 4, 1, generator=torch.Generator().manual_seed(0))
SMALL = {"d_model": 16, "num_heads": 2, "d_ff": 32, "dropout": 0.0, "max_length": 16}


def built(of_keys=None, head=None, **fields):
    torch.manual_seed(0)
    parts = JoinedBuilder({"words": tokens(12), "context": of_keys or tokens(12)})
    head = head or SequenceClassConfig(dropout=0.0)
    return CrossConfig(**SMALL, **fields).build(parts, lambda d_model: head.build(d_model, 3)).eval()


NONE = {"positions": {"kind": "none"}}


@pytest.mark.parametrize("memory", [None, {"num_layers": 2}])
def test_keys_and_values_shuffled_together_change_nothing_without_positions(memory):
    order = torch.tensor([3, 0, 4, 1, 2])
    model = built(memory=memory, **NONE)
    assert_close(
        model.scores(words=WORDS[:1], context=CONTEXT[:1, order]), model.scores(words=WORDS[:1], context=CONTEXT[:1])
    )
    placed = built(memory=memory)
    change = placed.scores(words=WORDS[:1], context=CONTEXT[:1, order]) - placed.scores(
        words=WORDS[:1], context=CONTEXT[:1]
    )
    assert change.abs().max() > 1e-3


def test_patches_shuffled_change_nothing_without_positions():
    turned = IMAGES.unflatten(1, (2, 2)).flip(1).flatten(1, 2)  # the lower patches above
    model, placed = built(patches(2, 1), **NONE), built(patches(2, 1))
    assert_close(model.scores(words=WORDS, context=turned), model.scores(words=WORDS, context=IMAGES))
    change = placed.scores(words=WORDS, context=turned) - placed.scores(words=WORDS, context=IMAGES)
    assert change.abs().max() > 1e-3


def test_padding_of_either_part_changes_no_answer():
    model = built()
    together = model.scores(words=WORDS, context=CONTEXT)
    assert_close(model.scores(words=WORDS[1:, :2], context=CONTEXT[1:, :3]), together[1:])


def test_an_element_that_asks_attends_to_later_ones_too():
    model = built(head=SequenceClassConfig(dropout=0.0, pooling="class_token"))
    changed = WORDS.clone()
    changed[0, -1] = 11
    before, after = (model.vectors(words=words, context=CONTEXT).values[0, 0] for words in (WORDS, changed))
    assert (before - after).abs().max() > 1e-4


@pytest.mark.parametrize("queries", [None, "words", "context"])
def test_one_part_asks_and_the_head_reads_its_vectors(queries):
    model = built(queries=queries)
    asking, asked = ("context", "words") if queries == "context" else ("words", "context")
    assert model.inputs == (asking, asked)
    sides = model.attention_kinds["encoder.cross_attention"]
    assert (sides.queries, sides.keys) == (asking, asked)
    found = model.vectors(words=WORDS, context=CONTEXT)
    assert found.values.shape[1] == (WORDS if asking == "words" else CONTEXT).shape[1]


def test_every_parameter_learns():
    model = built(patches(2, 1))
    model(words=WORDS, context=IMAGES, targets=torch.tensor([0, 2])).total.backward()
    assert not [name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()]


@pytest.mark.parametrize(
    ("parts", "fields", "told"),
    [
        (tokens(12), {}, "reads items of two parts, and these have none: set input.kind=joined with two parts"),
        (JoinedBuilder({"a": tokens(12)}), {}, "reads items of two parts, and these have 1"),
        (JoinedBuilder(dict.fromkeys("abc", tokens(12))), {}, "reads items of two parts, and these have 3"),
        (JoinedBuilder(dict.fromkeys("ab", tokens(12))), {"queries": "c"}, "queries: given 'c'; allowed: a, b"),
        (JoinedBuilder({"a": tokens(12), "memory": tokens(12)}), {}, "kind cross has a memory of its own"),
        (JoinedBuilder({"train": tokens(12), "b": tokens(12)}), {}, "kind cross has a train of its own"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, fields, told):
    head = SequenceClassConfig()
    with pytest.raises(ValueError, match=told):
        CrossConfig(**SMALL, **fields).build(parts, lambda d_model: head.build(d_model, 3))


def test_a_head_that_compares_inputs_is_refused():
    with pytest.raises(ValueError, match="Match compares two vectors, and this model has one: use a dual encoder"):
        built(head=MatchConfig())
