import weakref

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.attention import KERNELS, PassView, ScaledDotProductConfig
from regardant.layers import residual as module
from regardant.layers.dropout import share_key
from regardant.layers.multi_head import HeadShape, SelfAttention
from regardant.layers.norms import LayerNormConfig
from regardant.layers.observed import observing
from regardant.layers.residual import EagerTwoStreams, FusedStream, PlainStream, Residual, TwoStreams
from regardant.positions.none import NoPositions


def residual(norm_place, dropout=0.0, adds=True):
    torch.manual_seed(0)
    layer = Residual(6, norm_place, dropout, adds=adds, normalisation=LayerNormConfig())
    torch.nn.init.normal_(layer.norm.weight)
    torch.nn.init.normal_(layer.norm.bias)
    return layer


def test_pre_norm_gives_the_sublayer_normed_input_and_leaves_the_stream_alone():
    layer, x = residual("pre"), torch.randn(2, 3, 6)
    assert_close(layer(x, lambda h: h**2), x + layer.norm(x) ** 2)


def test_post_norm_gives_the_sublayer_the_stream_and_norms_the_sum():
    layer, x = residual("post"), torch.randn(2, 3, 6)
    assert_close(layer(x, lambda h: h**2), layer.norm(x + x**2))


@pytest.mark.parametrize("norm_place", ["pre", "post"])
def test_dropout_falls_on_what_is_written_and_never_on_the_stream(norm_place):
    layer, x = residual(norm_place, dropout=0.5), torch.randn(200, 6)
    written = torch.full_like(x, 100.0)
    seen = []
    layer.dropout.register_forward_hook(lambda module, inputs, dropped: seen.append((inputs[0], dropped)))
    after = layer(x, lambda h: written)
    ((given, dropped),) = seen
    assert given is written and 0.3 < (dropped == 0).float().mean() < 0.7
    assert_close(after, x + dropped if norm_place == "pre" else layer.norm(x + dropped))


@pytest.mark.parametrize("norm_place", ["pre", "post"])
def test_without_adding_the_input_is_replaced(norm_place):
    layer, x = residual(norm_place, adds=False), torch.randn(2, 3, 6)
    assert_close(layer(x, lambda h: h**2), layer.norm(x) ** 2 if norm_place == "pre" else layer.norm(x**2))


def add_and_norm(x, written, dropout, norm, dtype):
    """Return what the fused kernel does, without a call of the norm."""
    added = x + dropout(written)
    return added, nn.functional.layer_norm(added, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


@pytest.mark.parametrize("norm_place", ["pre", "post"])
def test_a_fused_stream_calls_a_norm_that_is_observed(monkeypatch, norm_place):
    monkeypatch.setattr(module, "_add_and_norm", add_and_norm)
    layers, x, calls, ends = [residual(norm_place) for _ in range(3)], torch.randn(2, 3, 6), [], []
    layers[1].norm.register_forward_hook(lambda norm, inputs, normed: calls.append((inputs[0], normed)))
    for kind in (PlainStream, FusedStream):
        stream = kind(x)
        with observing(layers[1].norm):
            for layer in layers:
                stream.write(layer, torch.sin)
        ends.append(stream.close())
    assert_close(*ends)
    assert len(calls) == 2
    assert_close(*calls)


class Pair(nn.Module):
    """Two sublayers, the second of which reads a memory as well."""

    def __init__(self, dropout=0.0, keyed=True):
        super().__init__()
        self.residuals = nn.ModuleList(residual("pre", dropout) for _ in range(4))
        self.linears = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        if keyed:
            share_key(self)

    def forward(self, stream, memory):
        for number, (layer, linear) in enumerate(zip(self.residuals, self.linears, strict=True)):
            if number % 2:
                stream.write(layer, lambda h, m, linear=linear: torch.tanh(linear(h)) * m, memory)
            else:
                stream.write(layer, lambda h, linear=linear: torch.tanh(linear(h)))
        return stream.close()


def gradients(model, kind, x, memory):
    model.zero_grad()
    torch.manual_seed(5)
    said = model(kind(x), memory)
    torch.manual_seed(6)  # whoever draws between the passes
    (said * torch.linspace(-1, 1, said.numel()).view_as(said)).sum().backward()
    found = [x.grad, memory.grad, *(p.grad for p in model.parameters())]
    found = [gradient.clone() for gradient in found]
    x.grad = memory.grad = None
    return said, found


@pytest.mark.parametrize(("dropout", "keyed"), [(0.0, True), (0.5, True), (0.5, False)])
def test_two_streams_forget_and_remember(dropout, keyed):
    torch.manual_seed(0)
    model = Pair(dropout, keyed).train()
    x, memory = (torch.randn(2, 3, 6, requires_grad=True) for _ in range(2))
    kept, with_graph = gradients(model, EagerTwoStreams, x, memory)
    forgotten, recomputed = gradients(model, TwoStreams, x, memory)
    assert torch.equal(kept, forgotten)
    assert_close(with_graph, recomputed, rtol=1e-4, atol=1e-5)


def test_two_streams_learn_from_an_input_that_needs_no_gradient():
    torch.manual_seed(0)
    model, x, memory = Pair().train(), torch.randn(2, 3, 6), torch.randn(2, 3, 6)
    found = []
    for kind in (EagerTwoStreams, TwoStreams):
        model.zero_grad()
        model(kind(x), memory).square().sum().backward()
        found.append([p.grad.clone() for p in model.parameters()])
    assert_close(*found, rtol=1e-4, atol=1e-5)
    assert x.grad is None and not x.requires_grad


def test_computing_again_draws_no_random_number_that_others_would_have_drawn():
    model, x = Pair(0.5, keyed=False).train(), torch.randn(2, 3, 6, requires_grad=True)
    said = model(TwoStreams(x), torch.randn(2, 3, 6)).sum()
    before = torch.get_rng_state()
    said.backward()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_second_derivative_through_two_streams_is_refused_and_not_wrong():
    model, x = Pair(), torch.randn(2, 3, 6, requires_grad=True)
    said = model(TwoStreams(x), torch.randn(2, 3, 6)).square().sum()
    (gradient,) = torch.autograd.grad(said, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_two_streams_keep_no_activations_between_sublayers():
    torch.manual_seed(0)
    model, saved = Pair(), []
    x, memory = torch.randn(2, 3, 6, requires_grad=True), torch.randn(2, 3, 6)

    def save(tensor):
        alone = tensor.detach()  # an output that knows its function would keep it
        saved.append(weakref.ref(alone))
        return alone

    with torch.autograd.graph.saved_tensors_hooks(save, lambda tensor: tensor):
        said = model(TwoStreams(x), memory)
    kept = [one for one in saved if one() is not None]
    assert said.requires_grad and len(kept) == 4  # both streams at the end, the memory of two sublayers that read it


@pytest.mark.parametrize("length", [20, 80, 300], ids=["products in float32", "narrow products", "tiles"])
def test_in_bfloat16_two_streams_undo_the_very_write_that_they_made(length):
    """Kernels of attention round differently, and are chosen by whether a gradient is recorded."""
    torch.manual_seed(0)
    attention = SelfAttention(HeadShape(16, 2, 2, 8, 8), ScaledDotProductConfig(), NoPositions(), causal=True)
    attention.mechanism.kernel = KERNELS["matmul"]
    layer = Residual(16, "pre", 0.0, adds=True, normalisation=LayerNormConfig())
    writes = []
    layer.written.register_forward_hook(lambda module, given, written: writes.append(written.detach()))
    stream = TwoStreams(torch.randn(2, length, 16, requires_grad=True))
    with torch.autocast("cpu", torch.bfloat16):
        stream.write(layer, attention, PassView(causal=True, recomputed=True))
        said = stream.close()
    said.sum().backward()
    added, subtracted = writes
    assert torch.equal(added, subtracted)
