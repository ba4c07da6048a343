import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import profile
from torch.testing import assert_close

from regardant.layers.feed_forward import GatedFeedForward, LinearFeedForward
from regardant.layers.linear import Linear, keep_rows
from regardant.layers.rounded_rows import apply_to_rows, round_down, round_rows, round_up

ROWS = range(1, 5000)


def test_rows_are_rounded_up_by_an_eighth_at_most_to_few_counts():
    assert all(rows <= round_up(rows) <= max(16, rows * 9 / 8, rows + 15) for rows in ROWS)
    assert all(round_up(round_up(rows)) == round_up(rows) for rows in ROWS)
    assert len({round_up(rows) for rows in ROWS if rows > 1024}) <= 8 * math.log2(5000 / 1024) + 1


def test_rounding_down_finds_the_rounded_number_below():
    rounded = sorted({round_up(rows) for rows in ROWS} | {0})
    for rows in ROWS:
        below = max(one for one in rounded if one <= rows)
        assert round_down(rows) == below


def test_rows_that_are_added_are_zeros():
    x = torch.randn(19, 3)
    more = round_rows(x, torch.bfloat16)
    assert torch.equal(more[:19], x.bfloat16())
    assert len(more) == 32
    assert not more[19:].any()


@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 3, 6), (5, 16, 6), (0, 6)])
@pytest.mark.parametrize("bias", [True, False])
def test_mixed_precision_with_rounded_rows_is_torchs(shape, bias):
    torch.manual_seed(0)
    layer = Linear(6, 10, bias=bias)
    plain = nn.Linear(6, 10, bias=bias)
    plain.load_state_dict(layer.state_dict())
    x, weigh = torch.randn(shape, requires_grad=True), torch.randn(*shape[:-1], 10)
    found = []
    for one in (layer, plain):
        with torch.autocast("cpu", torch.bfloat16):
            said = one(x)
        found.append((said, *torch.autograd.grad((said * weigh).sum(), (x, *one.parameters()))))
    for mine, theirs in zip(*found, strict=True):
        assert mine.dtype == theirs.dtype
        assert_close(mine, theirs, rtol=2**-6, atol=2**-6)  # a sum is rounded to 8 bits here or there


def test_batches_of_like_size_share_the_shapes_of_their_products():
    layer = Linear(6, 10)
    with torch.autocast("cpu", torch.bfloat16), profile(record_shapes=True) as watched:
        for rows in range(1800, 1920):
            layer(torch.randn(rows, 6)).sum().backward()
    names = ("aten::addmm", "aten::mm", "mkldnn::_linear_pointwise")
    shapes = {str(event.input_shapes) for event in watched.events() if event.name in names}
    assert len(shapes) == 2  # forward, and to the weights: nobody asks for the gradient of the input


def by_torch(network, x):
    """The output of a feed-forward network by torch's own mixed precision."""
    widened = F.linear(x, network.widen.weight, network.widen.bias)
    if isinstance(network, GatedFeedForward):
        inner = F.silu(F.linear(x, network.gate.weight, network.gate.bias)) * widened
    else:
        inner = F.relu(widened)
    return F.linear(inner, network.narrow.weight, network.narrow.bias)


@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 3, 6), (4, 16, 6), (3, 50, 6)])
@pytest.mark.parametrize(
    "build", [lambda: LinearFeedForward(6, 10, 0.0), lambda: GatedFeedForward(6, 15, 0.0, "silu")], ids=["two", "gated"]
)
def test_a_network_on_rounded_rows_is_torchs(shape, build):
    torch.manual_seed(0)
    network = build()
    x, weigh = torch.randn(shape, requires_grad=True), torch.randn(shape)
    found = []
    for one in (network, lambda x: by_torch(network, x)):
        with torch.autocast("cpu", torch.bfloat16):
            output = one(x)
        found.append((output, *torch.autograd.grad((output * weigh).sum(), (x, *network.parameters()))))
    for mine, theirs in zip(*found, strict=True):
        assert mine.dtype == theirs.dtype
        assert_close(mine, theirs, rtol=2**-5, atol=2**-5)  # sums of sums that are rounded to 8 bits


def test_the_layers_of_a_network_copy_its_rows_once():
    network = LinearFeedForward(6, 10, 0.0).train()
    with torch.autocast("cpu", torch.bfloat16), profile(record_shapes=True) as watched:
        network(torch.randn(19, 6))
    copies = [event.input_shapes for event in watched.events() if event.name == "aten::copy_"]
    assert [shapes for shapes in copies if shapes[0] in ([19, 6], [19, 10])] == [[[19, 6], [19, 6], []]]


def test_a_function_of_rounded_rows_gets_them_in_their_shape():
    seen = []
    with torch.autocast("cpu", torch.bfloat16):
        for shape in ((4, 8, 6), (33, 6)):
            x = torch.randn(shape)
            output = apply_to_rows(x, lambda rows: seen.append(rows) or rows[..., :2], rounds=True)
            assert torch.equal(output, x.bfloat16()[..., :2])
    assert [(rows.shape, rows.dtype) for rows in seen] == [((4, 8, 6), torch.bfloat16), ((48, 6), torch.bfloat16)]


def test_rows_that_are_kept_are_multiplied_as_they_are():
    network = nn.Sequential(LinearFeedForward(6, 10, 0.0, bias=False), Linear(6, 2, bias=False))
    x = torch.randn(19, 6)
    for kept, rows in ((False, {32}), (True, {19})):
        if kept:
            keep_rows(network)
        with torch.autocast("cpu", torch.bfloat16), profile(record_shapes=True) as watched:
            network(x)
        assert {event.input_shapes[0][0] for event in watched.events() if event.name == "aten::mm"} == rows
