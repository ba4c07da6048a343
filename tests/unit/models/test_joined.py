"""Items of several parts as one sequence of vectors, against an explicit loop over rows and parts."""

import pytest
import torch
from torch.testing import assert_close

from regardant.data.vocabulary import PAD
from regardant.layers.norms import LayerNormConfig
from regardant.models.representations import Blocks, InputShape, JoinedBuilder, Representation, patches, tokens
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions
from regardant.positions.sinusoidal import SinusoidalConfig
from regardant.positions.two_dimensional import TwoDimensionalConfig

SIZE = 16
WORDS = torch.tensor([[5, 6, 7], [8, PAD, PAD], [9, 5, PAD]])
IMAGES = torch.rand(3, 4, 4, 1, generator=torch.Generator().manual_seed(0))
BOTH = Blocks([WORDS, IMAGES])
LENGTHS = (3, 1, 2)
PATCHES = 4


def joined(config=None, **fields):
    torch.manual_seed(0)
    shape = {"d_model": SIZE, "num_heads": 2, "head_size": SIZE // 2, "max_length": 12, "causal": False}
    positions = (config or SinusoidalConfig()).build(**shape)
    return JoinedBuilder({"words": tokens(12), "image": patches(2, 1)})(InputShape(SIZE, positions, **fields)).eval()


@pytest.mark.parametrize("config", [SinusoidalConfig(), TwoDimensionalConfig(columns=2)])
@pytest.mark.parametrize("scale", [True, False])
def test_elements_of_all_parts_stand_side_by_side_with_the_marker_of_their_part(config, scale):
    joint = joined(config, scale=scale)
    found = joint(BOTH)
    assert found.values.shape == (3, 3 + PATCHES, SIZE) and found.positions is None
    for row, length in enumerate(LENGTHS):
        words = joint.parts["words"](WORDS[[row], :length]).values[0] + joint.markers[0]
        image = joint.parts["image"](IMAGES[[row]]).values[0] + joint.markers[1]
        assert_close(found.values[row, : length + PATCHES], torch.cat([words, image]))
        assert found.real[row].tolist() == [True] * (length + PATCHES) + [False] * (3 - length)


def test_a_row_alone_has_no_padding_of_others_in_any_part():
    blocks = Blocks([WORDS, IMAGES], [(length, PATCHES) for length in LENGTHS])
    for row, length in enumerate(LENGTHS):
        words, image = blocks.alone(row).parts
        assert torch.equal(words, WORDS[[row], :length]) and torch.equal(image, IMAGES[[row]])


def test_each_part_counts_its_own_positions():
    joint = joined()
    image = joint(BOTH).values[0, 3:] - joint.markers[1]
    assert_close(image, joint.parts["image"](IMAGES[:1]).values[0])
    bare = joined(scale=False).parts["image"].embed(IMAGES[:1]).values[0]
    assert_close(joint.parts["image"](IMAGES[:1]).values[0] - bare, joint.parts["image"].positions.table[:PATCHES])


def test_parts_without_padding_have_none_together():
    torch.manual_seed(0)
    both = JoinedBuilder({"first": patches(2, 1), "second": patches(4, 1)})(InputShape(SIZE, NoPositions()))
    assert both(Blocks([IMAGES, IMAGES])).real is None and both(Blocks([IMAGES, IMAGES])).values.shape[1] == 5


def test_a_class_token_stands_before_all_parts_once_and_dropout_comes_once():
    plain, found = joined(), joined(class_token=True)
    assert not any(hasattr(part, "class_token") for part in found.parts.values())
    assert_close(found(BOTH).values[:, 0], found.class_token.expand(3, -1))
    assert found(BOTH).values.shape[1] == plain(BOTH).values.shape[1] + 1
    assert [part.dropout.rate for part in joined(dropout=0.5).parts.values()] == [0.0, 0.0]
    assert joined(dropout=0.5).dropout.rate == 0.5


def test_elements_are_normalised_once_after_their_parts_are_joined():
    plain, found = joined(), joined(normalisation=LayerNormConfig())
    torch.nn.init.normal_(found.norm.weight)
    assert_close(found(BOTH).values, found.norm(plain(BOTH).values))
    assert not any(name.endswith("norm.weight") for name in found.parts.state_dict())


def test_every_marker_learns():
    joint = joined()
    joint(BOTH).values.square().sum().backward()
    assert (joint.markers.grad.abs().sum(1) > 0).all()


def test_a_part_with_pairs_is_refused():
    class Nodes(Representation):
        unit = "node"

        def embed(self, inputs):
            return Vectors(torch.zeros(*inputs.shape, SIZE), pairs=torch.ones(3, 3, 3, dtype=torch.bool))

    graph = JoinedBuilder({"words": tokens(12), "graph": Nodes})(InputShape(SIZE, NoPositions()))
    with pytest.raises(ValueError, match="a part with pairs or edges among its elements cannot be joined"):
        graph(Blocks([WORDS, WORDS]))


def test_blocks_are_divided_and_moved_as_one_tensor():
    rows = BOTH[1::2]
    assert len(rows) == 1 and torch.equal(rows.parts[0], WORDS[1:2]) and torch.equal(rows.parts[1], IMAGES[1:2])
    moved = BOTH.to(torch.device("meta"))
    assert moved.device.type == "meta" and BOTH.device.type == "cpu" and len(moved) == 3
