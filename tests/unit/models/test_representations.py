"""A class token before all elements, and positions of more than one dimension."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from regardant.models import EncoderDecoderConfig
from regardant.models.representations import InputShape, Representation, tokens
from regardant.models.stacks import Encoder
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions
from regardant.positions.sinusoidal import SinusoidalConfig
from regardant.positions.two_dimensional import TwoDimensionalConfig

SIZE, COLUMNS = 16, 4
REAL = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


class Given(Representation):
    """Elements that are vectors already."""

    unit = "node"

    def embed(self, inputs):
        return inputs


def nodes(**fields):
    return Vectors(torch.randn(2, 5, SIZE, generator=torch.Generator().manual_seed(0)), **fields)


def built(config, **fields):
    shape = {"d_model": SIZE, "num_heads": 2, "head_size": SIZE // 2, "max_length": 12, "causal": False}
    return Given(InputShape(SIZE, config.build(**shape), **fields))


def test_a_class_token_stands_before_all_elements():
    torch.manual_seed(0)
    representation = built(SinusoidalConfig(), class_token=True, scale=True)
    found, plain = representation(nodes()), built(SinusoidalConfig(), scale=True)(nodes())
    assert_close(found.values[:, 0], representation.class_token.expand(2, -1))
    assert_close(found.values[:, 1:], plain.values)  # positions are those of the elements
    assert (found.real, found.pairs, found.edges, found.positions) == (None, None, None, None)
    found.values[:, 0].sum().backward()
    assert (representation.class_token.grad == 2).all()


def test_a_class_token_is_real_and_meets_every_element():
    generator = torch.Generator().manual_seed(1)
    pairs = torch.rand(2, 5, 5, generator=generator) > 0.5
    edges = torch.randn(2, 3, 5, 5, generator=generator)
    x = nodes(real=REAL, pairs=pairs, edges=edges, positions=torch.zeros(5, 2, dtype=torch.int64))
    found = built(SinusoidalConfig(), class_token=True)(x)
    assert found.positions is None  # the class token has none
    assert found.real.dtype == found.pairs.dtype == torch.bool
    assert found.real[:, 0].all() and torch.equal(found.real[:, 1:], REAL)
    assert found.pairs[:, 0].all() and found.pairs[:, :, 0].all() and torch.equal(found.pairs[:, 1:, 1:], pairs)
    assert not found.edges[:, :, 0].any() and not found.edges[..., 0].any()
    assert torch.equal(found.edges[:, :, 1:, 1:], edges)


def test_a_class_token_hears_of_every_real_element_and_of_no_padding():
    config = EncoderDecoderConfig(preset=None, d_model=SIZE, num_heads=2, d_ff=32, dropout=0, encoder={"num_layers": 1})
    torch.manual_seed(0)
    positions = NoPositions()
    encoder = Encoder(config, config.encoder, positions, 12).eval()
    representation = Given(InputShape(SIZE, positions, class_token=True))
    apart = torch.eye(5, dtype=torch.bool).expand(2, -1, -1)
    x = nodes(real=REAL, pairs=apart)
    values = x.values.clone().requires_grad_()
    encoder(representation(replace(x, values=values))).values[:, 0].square().sum().backward()
    assert torch.equal(values.grad.abs().sum(-1) > 0, REAL)


def test_a_class_token_is_written_with_dropout_like_the_elements():
    representation = built(SinusoidalConfig(), class_token=True, dropout=0.5).train()
    seen = []
    representation.dropout.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].shape))
    representation(nodes())
    assert seen == [(2, 6, SIZE)]


def test_tokens_behind_a_class_token_are_padded_as_before():
    representation = tokens(12)(InputShape(SIZE, NoPositions(), class_token=True))
    found = representation(torch.tensor([[5, 6, 0], [7, 0, 0]]))
    assert found.real.tolist() == [[True, True, True, False], [True, True, False, False]]


@pytest.mark.parametrize("combine", ["add", "concatenate"])
def test_rows_and_columns_that_are_given_are_those_of_the_reading_order(combine):
    """Whatever number of columns the scheme was made for."""
    grid = torch.tensor([[row, column] for row in range(3) for column in range(COLUMNS)])
    size = SIZE if combine == "add" else SIZE - SIZE // 4
    values = torch.randn(2, len(grid), size)
    in_order = built(TwoDimensionalConfig(columns=COLUMNS, combine=combine))
    expected = in_order(Vectors(values)).values
    assert expected.shape == (2, len(grid), SIZE)
    other = built(TwoDimensionalConfig(columns=COLUMNS + 3, combine=combine))
    assert not torch.allclose(other(Vectors(values)).values, expected)
    assert_close(other(Vectors(values, positions=grid)).values, expected)
    some = torch.tensor([7, 0, 11])
    assert_close(other(Vectors(values[:, some], positions=grid[some])).values, expected[:, some])


def test_places_in_one_dimension_are_refused():
    """Schemes on queries, keys and scores count elements in order, whatever the representation says."""
    with pytest.raises(ValueError, match="positions of one dimension follow from the order of elements"):
        built(SinusoidalConfig())(nodes(positions=torch.arange(5)[:, None]))


def test_a_sequence_s_scheme_reads_a_grid_in_its_order():
    grid = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]])
    scheme = built(SinusoidalConfig())
    assert_close(scheme(nodes(positions=grid)).values, scheme(nodes()).values)
