"""Blocks of raw sound to vectors: the energies of filters, scale by scale, and padding that changes nothing."""

import pytest
import torch
from torch.testing import assert_close

from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import SequenceClassConfig
from regardant.models.representations import InputShape, WaveformShape, waveform_blocks
from regardant.models.representations.waveform import STRIDE, WIDTH
from regardant.positions.none import NoPositions

SHAPE = WaveformShape(block=50, scales=(4, 2, 1))
BLOCKS, SIZE = 7, 8


@pytest.fixture
def representation():
    torch.manual_seed(0)
    return waveform_blocks(SHAPE)(InputShape(SIZE, NoPositions())).eval()


def blocks(*periods):
    """A batch of recordings of so many periods, padded with NaN."""
    generator = torch.Generator().manual_seed(0)
    batch = torch.full((len(periods), max(periods) * BLOCKS, SHAPE.block), torch.nan)
    for row, count in zip(batch, periods, strict=True):
        row[: count * BLOCKS] = torch.randn(count * BLOCKS, SHAPE.block, generator=generator)
    return batch


def test_a_block_becomes_the_energies_of_the_filters_of_its_scale(representation):
    batch = blocks(2)
    found = representation(batch)
    assert found.values.shape == (1, 2 * BLOCKS, SIZE) and found.real.all()
    for at, block in enumerate(batch[0]):
        scale = SHAPE.order[at % BLOCKS][0]
        weight = representation.filters[scale].weight[:, 0]
        responses = [weight @ block[start : start + WIDTH] for start in range(0, SHAPE.block - WIDTH + 1, STRIDE)]
        energies = torch.stack(responses).square().mean(0).log()
        assert_close(found.values[0, at], representation.projections[scale](energies), atol=1e-5, rtol=1e-5)


def test_padding_changes_no_vector_and_no_answer(representation):
    batch = blocks(1, 3)
    together = representation(batch)
    assert together.real.sum(1).tolist() == [BLOCKS, 3 * BLOCKS]
    assert_close(together.values[0, :BLOCKS], representation(batch[:1, :BLOCKS]).values[0])
    config = EncoderOnlyConfig(d_model=SIZE, num_heads=2, d_ff=8, max_length=64)
    model = config.build(waveform_blocks(SHAPE), lambda size: SequenceClassConfig().build(size, 3)).eval()
    with torch.inference_mode():
        assert_close(model.scores(input=batch)[0], model.scores(input=batch[:1, :BLOCKS])[0], atol=1e-5, rtol=0)


def test_silence_and_padding_have_finite_gradients(representation):
    batch = blocks(1, 2)
    batch[1] = 0
    found = representation(batch)
    (found.values * found.real[..., None]).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in representation.parameters())


def test_the_order_of_blocks_is_that_of_their_starts():
    assert SHAPE.order == [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (2, 2), (2, 3)]
    assert [SHAPE.places(scale) for scale in range(3)] == [[0], [1, 4], [2, 3, 5, 6]] and SHAPE.period == 200
