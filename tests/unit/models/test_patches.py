"""Patches of images: which numbers a patch has, and where it stands."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from regardant.layers.linear import Linear
from regardant.models import EncoderDecoderConfig, next_token, tokens
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads.sequence_class import SequenceClassConfig
from regardant.models.representations import InputShape, patches
from regardant.positions.learned import LearnedConfig
from regardant.positions.none import NoPositions
from regardant.positions.sinusoidal import SinusoidalConfig
from regardant.positions.two_dimensional import TwoDimensionalConfig

SIZE, SIDE, CHANNELS = 16, 2, 3
ROWS, COLUMNS = 3, 5


def images(height=SIDE * ROWS, width=SIDE * COLUMNS):
    return torch.randn(2, height, width, CHANNELS, generator=torch.Generator().manual_seed(0))


def built(positions=None, **fields):
    scheme = NoPositions()
    if positions is not None:
        scheme = positions.build(d_model=SIZE, num_heads=2, head_size=8, max_length=ROWS * COLUMNS, causal=False)
    torch.manual_seed(0)
    return patches(SIDE, CHANNELS)(InputShape(SIZE, scheme, **fields))


def pixels_by_loops(batch):
    """Return the numbers of each patch [B, T, P * P * C], read row by row, channel last."""
    found = []
    for image in batch.tolist():
        found.append([])
        for top in range(0, len(image), SIDE):
            for left in range(0, len(image[0]), SIDE):
                numbers = []
                for row in range(top, top + SIDE):
                    for column in range(left, left + SIDE):
                        numbers.extend(image[row][column])
                found[-1].append(numbers)
    return torch.tensor(found)


def test_patches_are_read_row_by_row_with_the_channel_last():
    representation = built()
    expected = pixels_by_loops(images()) @ representation.projection.weight.T + representation.projection.bias
    found = representation(images())
    assert found.values.shape == (2, ROWS * COLUMNS, SIZE)
    assert found.real is None
    assert_close(found.values, expected)


def test_patches_stand_in_rows_and_columns():
    expected = [[row, column] for row in range(ROWS) for column in range(COLUMNS)]
    assert built().embed(images()).positions.tolist() == expected


def test_a_scheme_of_two_dimensions_has_the_row_and_the_column_of_each_patch():
    """Whatever number of columns it was made for."""
    config = TwoDimensionalConfig(columns=COLUMNS + 2)
    representation = built(config)
    added = representation(images()).values - built()(images()).values
    table = representation.positions.embed(torch.tensor([[row, column] for row in range(3) for column in range(5)]))
    assert_close(added, table.expand(2, -1, -1), atol=1e-5, rtol=0)
    assert_close(added[0, 0, : SIZE // 2], added[0, COLUMNS - 1, : SIZE // 2], atol=1e-5, rtol=0)  # of one row
    assert not torch.allclose(added[0, 0], added[0, COLUMNS], atol=1e-2)


@pytest.mark.parametrize("config", [SinusoidalConfig(), LearnedConfig()], ids=lambda config: config.kind)
def test_a_scheme_of_one_dimension_counts_in_reading_order(config):
    representation = built(config)
    added = representation(images()).values - built()(images()).values
    expected = representation.positions.embed(torch.arange(ROWS * COLUMNS))
    assert_close(added, expected.expand(2, -1, -1), atol=1e-5, rtol=0)


def test_positions_beside_patches_leave_them_the_rest():
    found = built(TwoDimensionalConfig(combine="concatenate", size=4), class_token=True)
    assert found.projection.out_features == SIZE - 4
    assert found(images()).values.shape == (2, 1 + ROWS * COLUMNS, SIZE)


@pytest.mark.parametrize("size", [(7, 10), (6, 9)])
def test_sides_that_are_no_multiple_of_the_patch_are_refused(size):
    with pytest.raises(ValueError, match=rf"^images of {size[0]} x {size[1]} pixels cannot be cut into patches of 2 x"):
        built()(images(*size))


def test_patches_share_no_matrix_with_the_output():
    with pytest.raises(ValueError, match=r"^a patch has no embedding matrix"):
        built().tie(torch.nn.Parameter(torch.zeros(10, SIZE)))


def classifier(grid):
    config = EncoderOnlyConfig(d_model=SIZE, num_heads=2, d_ff=24, num_layers=1, max_length=ROWS * COLUMNS)
    return config.build(patches(SIDE, CHANNELS, grid), partial(SequenceClassConfig().build, num_outputs=3))


def captioner(grid):
    sizes = {"d_model": SIZE, "num_heads": 2, "d_ff": 24, "max_length": ROWS * COLUMNS}
    sizes |= {"encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}, "tie_embeddings": "target"}
    config = EncoderDecoderConfig.model_validate({"preset": None, **sizes})
    return config.build(patches(SIDE, CHANNELS, grid), tokens(10), next_token(10))


@pytest.mark.parametrize("grid", [(ROWS, COLUMNS), None])
@pytest.mark.parametrize("build", [classifier, captioner])
def test_an_encoder_of_images_of_one_size_multiplies_as_many_rows_as_there_are(build, grid):
    model = build(grid)
    layers = [layer for layer in model.encoder.modules() if isinstance(layer, Linear)]
    assert len(layers) == 4 and all(layer.rounds_rows == (grid is None) for layer in layers)
