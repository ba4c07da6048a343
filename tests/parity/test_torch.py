"""PyTorch's own layers and ours, with the same weights, give the same answers and gradients."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.attention import KERNELS, ScaledDotProduct, ScaledDotProductConfig, View
from regardant.layers.multi_head import CrossAttention, HeadShape, SelfAttention
from regardant.layers.recurrent import CELLS, RecurrentEncoder, RecurrentStack
from regardant.layers.residual import PlainStream, Residual
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.vectors import Vectors
from regardant.positions import SinusoidalConfig
from tests.models import over_pairs, over_text

D_MODEL, NUM_HEADS, D_FF, NUM_LAYERS = 16, 4, 40, 3
SOURCE_LENGTH, TARGET_LENGTH = 7, 5
REAL = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
FUTURE = torch.ones(TARGET_LENGTH, TARGET_LENGTH).triu(1).bool()
"""True = hidden, as PyTorch has it."""

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_norm = pytest.mark.parametrize("norm", ["pre", "post"])


def assert_equal(found, expected):
    assert_close(found, expected, rtol=1e-5, atol=1e-5)


def vectors(length, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, length, D_MODEL, generator=generator, requires_grad=True)


def with_kernel(module, kernel):
    for part in module.modules():
        if isinstance(part, ScaledDotProduct):
            part.kernel = KERNELS[kernel]
    return module


def assert_equal_with_gradients(found, expected, inputs):
    assert_equal(found, expected)
    weighted = torch.linspace(-1, 1, found.numel()).view_as(found)
    assert_equal(*(torch.autograd.grad(answer, inputs, weighted, retain_graph=True) for answer in (found, expected)))


def randomise(module):
    """Biases and norms too, which start at zeros and ones and would hide an exchange."""
    for parameter in module.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=0.5)


@torch.no_grad()
def copy_linear(ours, theirs):
    ours.weight.copy_(theirs.weight)
    ours.bias.copy_(theirs.bias)


@torch.no_grad()
def copy_self_attention(ours: SelfAttention, theirs: nn.MultiheadAttention):
    ours.query_key_value.weight.copy_(theirs.in_proj_weight)
    ours.query_key_value.bias.copy_(theirs.in_proj_bias)
    copy_linear(ours.output, theirs.out_proj)


@torch.no_grad()
def copy_cross_attention(ours: CrossAttention, theirs: nn.MultiheadAttention):
    for part, rows in ((ours.query, slice(0, D_MODEL)), (ours.key_value, slice(D_MODEL, None))):
        part.weight.copy_(theirs.in_proj_weight[rows])
        part.bias.copy_(theirs.in_proj_bias[rows])
    copy_linear(ours.output, theirs.out_proj)


def copy_layer(ours, theirs):
    """An encoder's layer, or a decoder's, which has one sublayer more."""
    copy_self_attention(ours.self_attention, theirs.self_attn)
    writes = [ours.after_self_attention, ours.after_feed_forward]
    if hasattr(theirs, "multihead_attn"):
        copy_cross_attention(ours.cross_attention, theirs.multihead_attn)
        writes.insert(1, ours.after_cross_attention)
    copy_linear(ours.feed_forward.widen, theirs.linear1)
    copy_linear(ours.feed_forward.narrow, theirs.linear2)
    for i, write in enumerate(writes, start=1):
        assert isinstance(write, Residual)
        copy_linear(write.norm, getattr(theirs, f"norm{i}"))


def copy_stack(ours, theirs):
    for our_layer, their_layer in zip(ours.layers, theirs.layers, strict=True):
        copy_layer(our_layer, their_layer)
    if theirs.norm is not None:
        copy_linear(ours.final_norm, theirs.norm)


def multi_head(kernel, cross=False):
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(D_MODEL, NUM_HEADS, batch_first=True)
    randomise(theirs)
    size = D_MODEL // NUM_HEADS
    shape, config = HeadShape(D_MODEL, NUM_HEADS, NUM_HEADS, size, size), ScaledDotProductConfig()
    if cross:
        crossing = CrossAttention(shape, config)
        copy_cross_attention(crossing, theirs)
        return with_kernel(crossing, kernel), theirs
    heads = {"d_model": D_MODEL, "num_heads": NUM_HEADS, "head_size": size}
    positions = SinusoidalConfig().build(**heads, max_length=SOURCE_LENGTH, causal=False)
    ours = SelfAttention(shape, config, positions, causal=True)
    copy_self_attention(ours, theirs)
    return with_kernel(ours, kernel), theirs


def models(norm, kernel="sdpa"):
    """Ours, and PyTorch's with the same layers. Its stacks end in a norm of their own, which ours have when pre."""
    torch.manual_seed(0)
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "pre"}
    sizes = (D_MODEL, NUM_HEADS, D_FF)
    last_norms = [nn.LayerNorm(D_MODEL) if norm == "pre" else None for _ in range(2)]
    theirs = nn.Transformer(
        D_MODEL,
        NUM_HEADS,
        custom_encoder=nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, **options), NUM_LAYERS, last_norms[0], enable_nested_tensor=False
        ),
        custom_decoder=nn.TransformerDecoder(nn.TransformerDecoderLayer(*sizes, **options), NUM_LAYERS, last_norms[1]),
        batch_first=True,
    )
    randomise(theirs)
    for layers in (theirs.encoder.layers, theirs.decoder.layers):
        for layer in layers:
            nn.init.normal_(layer.linear1.weight, std=0.3)  # the copies of a stack begin alike
    stack = {"num_layers": NUM_LAYERS}
    config = EncoderDecoderConfig(
        preset=None, d_model=D_MODEL, num_heads=NUM_HEADS, d_ff=D_FF, dropout=0, norm=norm, encoder=stack, decoder=stack
    )
    ours = over_pairs(config, 11)
    copy_stack(ours.encoder, theirs.encoder)
    copy_stack(ours.decoder, theirs.decoder)
    return with_kernel(ours, kernel), theirs


@every_kernel
def test_the_decoder_only_model_equals_a_causal_encoder_of_pytorch_s(kernel):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        D_MODEL, NUM_HEADS, D_FF, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
    )
    theirs = nn.TransformerEncoder(layer, NUM_LAYERS, nn.LayerNorm(D_MODEL), enable_nested_tensor=False)
    randomise(theirs)
    for one in theirs.layers:
        nn.init.normal_(one.linear1.weight, std=0.3)  # the copies of a stack begin alike
    sizes = {"d_model": D_MODEL, "num_heads": NUM_HEADS, "d_ff": D_FF, "num_layers": NUM_LAYERS}
    ours = with_kernel(over_text(DecoderOnlyConfig(**sizes, max_length=TARGET_LENGTH), 11), kernel)
    copy_stack(ours.decoder, theirs)
    text = torch.randint(11, (2, TARGET_LENGTH), generator=torch.Generator().manual_seed(2))
    read = ours.head.weight[text] + ours.text.positions.table[None]
    expected = theirs(read, mask=FUTURE) @ ours.head.weight.T
    assert_equal_with_gradients(ours.scores(text), expected, [ours.head.weight, ours.text.positions.table])


@every_kernel
def test_self_attention_equals_multihead_attention(kernel):
    ours, theirs = multi_head(kernel)
    x = vectors(SOURCE_LENGTH)
    assert_equal_with_gradients(ours(x, View()), theirs(x, x, x, need_weights=False)[0], x)


@every_kernel
def test_causal_self_attention_equals_multihead_attention(kernel):
    ours, theirs = multi_head(kernel)
    x = vectors(TARGET_LENGTH)
    expected, _ = theirs(x, x, x, attn_mask=FUTURE, need_weights=False)
    assert_equal_with_gradients(ours(x, View(causal=True)), expected, x)


@every_kernel
def test_padded_self_attention_equals_multihead_attention(kernel):
    ours, theirs = multi_head(kernel)
    x = vectors(SOURCE_LENGTH)
    expected, _ = theirs(x, x, x, key_padding_mask=~REAL, need_weights=False)
    assert_equal_with_gradients(ours(x, View(keys=REAL)), expected, x)


@every_kernel
def test_cross_attention_equals_multihead_attention(kernel):
    ours, theirs = multi_head(kernel, cross=True)
    x, memory = vectors(TARGET_LENGTH), vectors(SOURCE_LENGTH, seed=1)
    expected, _ = theirs(x, memory, memory, key_padding_mask=~REAL, need_weights=False)
    found = ours(x, ours.project(memory), View(keys=REAL))
    assert_equal_with_gradients(found, expected, (x, memory))


def test_the_weights_of_a_mechanism_equal_those_of_multihead_attention():
    ours, theirs = multi_head("sdpa")
    seen = []
    ours.mechanism.register_forward_hook(
        lambda module, inputs, mixed: seen.append(module.weights(*inputs[:2], inputs[3]))
    )
    x = vectors(SOURCE_LENGTH)
    ours(x, View(keys=REAL))
    _, expected = theirs(x, x, x, key_padding_mask=~REAL, average_attn_weights=False)
    assert_equal(seen[0], expected)


@every_norm
def test_one_encoder_layer_equals_its_twin(norm):
    ours, theirs = models(norm)
    x = vectors(SOURCE_LENGTH)
    stream = PlainStream(x)
    ours.encoder.layers[1](stream, View(keys=REAL))
    found = stream.close()
    assert_equal_with_gradients(found, theirs.encoder.layers[1](x, src_key_padding_mask=~REAL), x)


@every_norm
def test_one_decoder_layer_equals_its_twin(norm):
    ours, theirs = models(norm)
    x, memory = vectors(TARGET_LENGTH), vectors(SOURCE_LENGTH, seed=1)
    stream = PlainStream(x)
    ours.decoder.layers[1](stream, View(causal=True), memory, View(keys=REAL))
    found = stream.close()
    expected = theirs.decoder.layers[1](x, memory, tgt_mask=FUTURE, memory_key_padding_mask=~REAL)
    assert_equal_with_gradients(found, expected, (x, memory))


@every_kernel
@every_norm
def test_the_whole_stack_equals_the_transformer(norm, kernel):
    ours, theirs = models(norm, kernel)
    source, target = vectors(SOURCE_LENGTH, seed=1), vectors(TARGET_LENGTH)
    found = ours.decoder(Vectors(target), ours.encoder(Vectors(source, REAL))).values
    expected = theirs(source, target, tgt_mask=FUTURE, src_key_padding_mask=~REAL, memory_key_padding_mask=~REAL)
    assert_equal_with_gradients(found, expected, (source, target))


@every_norm
def test_training_moves_both_alike(norm):
    ours, theirs = models(norm)
    source, target = vectors(SOURCE_LENGTH, seed=1).detach(), vectors(TARGET_LENGTH).detach()
    stacks = nn.ModuleList([ours.encoder, ours.decoder])
    first, second = (torch.optim.SGD(module.parameters(), lr=0.01) for module in (stacks, theirs))
    for _ in range(3):
        found = ours.decoder(Vectors(target), ours.encoder(Vectors(source, REAL))).values
        expected = theirs(source, target, tgt_mask=FUTURE, src_key_padding_mask=~REAL, memory_key_padding_mask=~REAL)
        assert_close(found, expected, rtol=1e-4, atol=1e-4)
        for answer, optimizer in ((found, first), (expected, second)):
            optimizer.zero_grad()
            (answer - 1).abs().mean().backward()
            optimizer.step()


@pytest.mark.parametrize(("preset", "parameters"), [("base", 63_082_496), ("big", 214_245_376)])
def test_the_published_sizes_have_exactly_their_parameters(preset, parameters):
    with torch.device("meta"):
        model = over_pairs(EncoderDecoderConfig(preset=preset), 37_000)
    assert sum(parameter.numel() for parameter in model.parameters()) == parameters


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_recurrent_layers(cell):
    torch.manual_seed(0)
    ours = RecurrentStack(cell, D_MODEL, 12, num_layers=2, dropout=0.0)
    theirs = CELLS[cell](D_MODEL, 12, num_layers=2, batch_first=True)
    with torch.no_grad():
        for layer, module in enumerate(ours.layers):
            for name, parameter in module.named_parameters():
                parameter.copy_(getattr(theirs, name.replace("l0", f"l{layer}")))
    x = vectors(SOURCE_LENGTH)
    said, state = ours(x, ours.start(x))
    expected, last = theirs(x)
    assert_equal_with_gradients(said, expected, x)
    for mine, other in zip(state, last if cell == "lstm" else (last,), strict=True):
        assert_equal(mine, other)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_an_encoder_that_reads_both_ways(cell):
    torch.manual_seed(0)
    ours = RecurrentEncoder(cell, D_MODEL, 12, 2, 0.0, bidirectional=True, combine="concatenate")
    theirs = CELLS[cell](D_MODEL, 6, num_layers=2, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for layer, module in enumerate(ours.layers):
            for name, parameter in module.named_parameters():
                parameter.copy_(getattr(theirs, name.replace("l0", f"l{layer}")))
    x = vectors(SOURCE_LENGTH)
    for row, real in enumerate(REAL):
        said, _ = ours.read(x, REAL)
        expected, _ = theirs(x[row : row + 1, real])
        assert_equal(said[row : row + 1, real], expected)
