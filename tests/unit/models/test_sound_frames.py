"""Frames of sound to vectors: the convolutions, and padding that changes nothing."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import SequenceClassConfig
from regardant.models.recurrent.encoder_only import RecurrentEncoderConfig
from regardant.models.representations import InputShape, sound_frames
from regardant.positions.none import NoPositions

SIZE, MELS = 8, 5


def built(subsampling):
    torch.manual_seed(0)
    representation = sound_frames(MELS, subsampling)(InputShape(SIZE, NoPositions()))
    torch.nn.init.normal_(representation.first.bias)  # a bias of zero would hide what padding becomes
    torch.nn.init.normal_(representation.second.bias)
    return representation.eval()


def elements(subsampling, *lengths):
    """A batch of recordings of so many elements, padded with NaN."""
    generator = torch.Generator().manual_seed(0)
    block = torch.full((len(lengths), max(lengths), subsampling * MELS), torch.nan)
    for row, length in zip(block, lengths, strict=True):
        row[:length] = torch.randn(length, subsampling * MELS, generator=generator)
    return block


def convolved(frames, convolution, stride):
    """Return the convolution of frames [T, K] by an explicit loop, with a zero frame at both ends."""
    padded = torch.cat([torch.zeros(1, frames.shape[1]), frames, torch.zeros(1, frames.shape[1])])
    rows = [
        sum(convolution.weight[:, :, place] @ padded[start + place] for place in range(3)) + convolution.bias
        for start in range(0, len(frames), stride)
    ]
    return F.gelu(torch.stack(rows))


@pytest.mark.parametrize("subsampling", [2, 4])
def test_two_convolutions_make_one_vector_of_each_element(subsampling):
    representation, block = built(subsampling), elements(subsampling, 6)
    frames = block[0].view(-1, MELS)
    inner = convolved(frames, representation.first, subsampling // 2)
    found = representation(block)
    assert found.values.shape == (1, 6, SIZE) and found.real.all()
    assert_close(found.values[0], convolved(inner, representation.second, 2), atol=1e-5, rtol=0)


@pytest.mark.parametrize("subsampling", [2, 4])
def test_padding_changes_no_vector(subsampling):
    representation, block = built(subsampling), elements(subsampling, 3, 7, 1)
    together = representation(block)
    assert together.real.tolist() == [[place < length for place in range(7)] for length in (3, 7, 1)]
    for row, length in enumerate((3, 7, 1)):
        alone = representation(block[row : row + 1, :length])
        assert_close(together.values[row, :length], alone.values[0], atol=1e-6, rtol=0)
    assert together.values.isfinite().all()


@pytest.mark.parametrize("config", [EncoderOnlyConfig(d_model=SIZE, num_heads=2, d_ff=8), RecurrentEncoderConfig()])
@pytest.mark.parametrize("pooling", ["mean", "max", "last"])
def test_padding_changes_no_answer(config, pooling):
    torch.manual_seed(1)
    model = config.build(sound_frames(MELS, 4), lambda size: SequenceClassConfig(pooling=pooling).build(size, 3)).eval()
    torch.nn.init.normal_(model.input.first.bias)
    block = elements(4, 3, 7, 1)
    with torch.inference_mode():
        together = model.scores(input=block)
        for row, length in enumerate((3, 7, 1)):
            assert_close(model.scores(input=block[row : row + 1, :length])[0], together[row], atol=1e-5, rtol=0)


def test_gradients_are_finite_where_there_is_padding():
    representation = built(4)
    found = representation(elements(4, 2, 5))
    (found.values * found.real[..., None]).sum().backward()
    assert all(parameter.grad.isfinite().all() and parameter.grad.any() for parameter in representation.parameters())


def test_frames_share_no_matrix_with_the_output():
    with pytest.raises(ValueError, match=r"^a frame has no embedding matrix"):
        built(2).tie(torch.nn.Parameter(torch.zeros(10, SIZE)))
