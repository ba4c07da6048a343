"""A Vision Transformer reads images of other sizes than it was trained on, with positions for their patches."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import SequenceClassConfig
from regardant.models.representations import patches
from regardant.positions import PositionsConfig

SIDE, ROWS, COLUMNS = 2, 4, 3

INPUT_KINDS = [kind for kind, config in PositionsConfig.kinds().items() if "combine" in config.model_fields]


def images(rows, columns):
    return torch.randn(2, SIDE * rows, SIDE * columns, 1, generator=torch.Generator().manual_seed(0))


def vit(kind, pooling="mean", grid=(ROWS, COLUMNS), **scheme):
    torch.manual_seed(0)
    config = EncoderOnlyConfig(
        d_model=80,
        num_heads=2,
        num_layers=2,
        d_ff=16,
        max_length=64,
        dropout=0.0,
        positions=PositionsConfig.kinds()[kind](**scheme),
    )
    head = SequenceClassConfig(pooling=pooling)
    return config.build(patches(SIDE, 1, grid), lambda d_model: head.build(d_model, 3)).eval()


@torch.inference_mode()
@pytest.mark.parametrize("pooling", ["mean", "class_token"])
@pytest.mark.parametrize("kind", PositionsConfig.kinds())
@pytest.mark.parametrize("size", [(8, 6), (2, 3), (4, 7), (3, 2)])
def test_images_of_every_size_have_finite_scores(kind, pooling, size):
    assert vit(kind, pooling).scores(images(*size)).isfinite().all()


@torch.inference_mode()
@pytest.mark.parametrize("kind", INPUT_KINDS)
def test_images_of_the_trained_size_have_the_positions_that_were_trained(kind):
    model, plain = vit(kind), vit(kind, grid=None)
    at_rest = plain.scores(images(ROWS, COLUMNS))
    assert torch.equal(model.scores(images(ROWS, COLUMNS)), at_rest)
    model.scores(images(2 * ROWS, 2 * COLUMNS))
    assert torch.equal(model.scores(images(ROWS, COLUMNS)), at_rest)


@torch.inference_mode()
@pytest.mark.parametrize("beside", [{}, {"combine": "concatenate", "size": 4}])
def test_learned_positions_are_interpolated_over_rows_and_columns(beside):
    """They are a function of the place: twice as many rows and columns have it at half the distance."""
    model = vit("learned", **beside)
    table = model.input.positions.table
    rows, columns = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    table.zero_()
    model.input.grid = (8, 8)
    table[:, 0], table[:, 1] = rows.flatten(), columns.flatten()
    at = (torch.arange(16) - 0.5) / 2  # the middle of a patch half as large
    found = model.input.positions.interpolate((8, 8), (16, 16))[:, :2].unflatten(0, (16, 16))
    inner = slice(4, 12)  # beyond the edge there is nothing to interpolate
    expected = torch.stack(torch.meshgrid(at, at, indexing="ij"), -1)
    assert_close(found[inner, inner], expected[inner, inner], atol=0.06, rtol=0)  # a cubic is no line


@torch.inference_mode()
def test_patches_of_another_size_get_the_interpolated_positions():
    """The representation adds to each patch the positions of its own part of the image."""
    model = vit("learned")
    table = model.input.positions.table[: ROWS * COLUMNS].unflatten(0, (ROWS, COLUMNS)).permute(2, 0, 1)[None]
    larger = F.interpolate(table, (8, 6), mode="bicubic", align_corners=False)[0].flatten(1).T
    block = images(8, 6)
    with_positions = model.input(block).values
    own = model.input.embed(block).values * model.input.scale
    assert_close(with_positions - own, larger.expand(2, -1, -1))
