import pytest
import torch
from torch.testing import assert_close

from regardant.layers.feed_forward import LinearFeedForward

from . import interpreted

pytestmark = pytest.mark.xdist_group("kernels")


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_it_drops_what_is_positive_and_keeps_the_rest_at_zero(interpret, rate):
    x, gradient = torch.randn(2, 9, 1000, generator=torch.Generator().manual_seed(0))  # three blocks
    dropped, to_x = interpret(interpreted.relu_and_dropout, x, rate, 2**61 + 7, gradient)
    kept = dropped > 0
    assert not kept[x <= 0].any()
    assert kept[x > 0].double().mean() == pytest.approx(1 - rate, abs=0.02)  # three deviations of 4,500 draws
    assert_close(dropped, kept * x / (1 - rate))
    assert_close(to_x, kept * gradient / (1 - rate))


def test_numbers_that_are_not_finite_pass_as_in_pytorch(interpret):
    x = torch.tensor([-1.0, torch.nan, 2.0, -torch.inf, torch.inf])
    kept, _ = interpret(interpreted.relu_and_dropout, x, 0.0, 0, torch.ones(5))
    assert_close(kept, torch.relu(x), equal_nan=True)


def test_no_two_blocks_draw_alike(interpret):
    x = torch.ones(16, 1024)  # four blocks
    dropped, _ = interpret(interpreted.relu_and_dropout, x, 0.5, 7, x)
    blocks = (dropped > 0).view(4, -1)
    for first in range(4):
        for shift in range(8):  # of the eight draws of a call
            for second in range(first + (shift == 0), 4):
                same = blocks[first].roll(shift) == blocks[second]
                assert same.double().mean() == pytest.approx(0.5, abs=0.04)  # five deviations of 4,096 draws


def test_without_dropout_the_network_is_the_one_of_pytorch(interpret):
    network, x = LinearFeedForward(8, 32, 0.0), torch.randn(2, 5, 8)
    assert_close(interpret(interpreted.feed_forward, network, x), network(x).detach())
