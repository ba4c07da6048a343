"""Every model there is: each trains, and decodes as it scores."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from regardant.attention import KERNELS, AttentionConfig, ScaledDotProduct, View
from regardant.attention.linear import LinearAttentionConfig
from regardant.attention.window import WindowConfig
from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.generation.config import GenerationConfig
from regardant.generation.length_penalty import Hypothesis
from regardant.generation.search import generate
from regardant.generation.teacher_forcing import score_pairs
from regardant.layers import convolution, dense
from regardant.layers.feed_forward import ActivationAloneConfig, ConvolutionalFeedForwardConfig, GatedFeedForwardConfig
from regardant.models.base import CausalModel, SequenceToSequenceModel
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig, widen
from regardant.models.heads import Loss
from regardant.models.one_to_one import OneToOneConfig
from regardant.models.recurrent import RecurrentConfig, RecurrentLanguageModelConfig
from regardant.models.recurrent.decoders import (
    BahdanauConfig,
    ChoConfig,
    LuongConfig,
    SutskeverConfig,
)
from regardant.positions import PositionsConfig
from regardant.positions.rotary import RotaryConfig
from regardant.positions.t5 import T5Config
from tests.models import loss_of_pairs, over_pairs, over_text

from . import plugins  # noqa: F401  which adds a mechanism

VOCAB_SIZE, SMOOTHING = 12, 0.1
SOURCE = torch.tensor([[5, 6, 7, 8, 9, EOS], [9, 5, 6, EOS, PAD, PAD], [10, 10, EOS, PAD, PAD, PAD]])
TARGET = torch.tensor([[SOS, 9, 8, 7, 6, 5, EOS], [SOS, 6, 5, 9, EOS, PAD, PAD], [SOS, 10, 10, EOS, PAD, PAD, PAD]])
LONG = torch.randint(5, VOCAB_SIZE, (3, 25), generator=torch.Generator().manual_seed(0))
"""More tokens than the first buffer of a cache holds."""


def smoothed(config) -> SequenceToSequenceModel:
    return over_pairs(config, VOCAB_SIZE, label_smoothing=SMOOTHING)


def transformer(attention=None, *, encoder=None, cross=None, **fields) -> EncoderDecoder:
    """Two layers each; a mechanism for the decoder's self-attention, the encoder's, the cross-attention."""
    sizes = {"d_model": 16, "num_heads": 4, "d_ff": 32, "dropout": 0, "max_length": 32}
    stacks = {"encoder": {"num_layers": 2}, "decoder": {"num_layers": 2}}
    for stack, place, mechanism in (
        ("decoder", "self_attention", attention),
        ("encoder", "self_attention", encoder),
        ("decoder", "cross_attention", cross),
    ):
        if mechanism is not None:
            stacks[stack][place] = mechanism
    return smoothed(EncoderDecoderConfig(preset=None, **sizes, **stacks, **fields))


def recurrent(decoder, **fields) -> EncoderDecoder:
    sizes = {"embedding_size": 16, "hidden_size": 24, "dropout": 0.0, "max_length": 32}
    return smoothed(RecurrentConfig(decoder=decoder, **sizes, **fields))


class Unconditioned(SequenceToSequenceModel):
    """A model that goes on with a text, as one that writes the same target whatever the source is."""

    def __init__(self, model: CausalModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, source, target, *, targets):
        rows = zip(target.split(1), targets.split(1), (targets != PAD).sum(1).tolist(), strict=True)
        losses = [self.model(text[:, :end], targets=said[:, :end]) for text, said, end in rows]  # a text has no padding
        return Loss(*(sum(parts) for parts in zip(*(loss[:3] for loss in losses), strict=True)))

    def scores(self, source, target):
        return self.model.scores(target)

    def encode(self, source):
        return source

    def start(self, memory, beam_size, max_length):
        return self.model.start(beam_size, max_length)

    def step(self, tokens, state):
        widen(state, tokens)
        return self.model.step(tokens.reshape(-1, 1), state).view(*tokens.shape, -1)


def causal(attention=None, **fields) -> Unconditioned:
    """Two layers, with a mechanism."""
    sizes = {"d_model": 16, "num_heads": 4, "d_ff": 32, "num_layers": 2, "max_length": 32} | fields
    mechanism = {} if attention is None else {"self_attention": attention}
    return Unconditioned(over_text(DecoderOnlyConfig(**sizes, **mechanism), VOCAB_SIZE, label_smoothing=SMOOTHING))


def recurrent_text(**fields) -> Unconditioned:
    sizes = {"embedding_size": 16, "hidden_size": 24, "max_length": 32} | fields
    return Unconditioned(over_text(RecurrentLanguageModelConfig(**sizes), VOCAB_SIZE, label_smoothing=SMOOTHING))


def can(kind, **demands):
    """Whether a mechanism honours a view."""
    attention = AttentionConfig.kinds()[kind]().build(num_heads=4, head_size=4)
    try:
        attention.check(View(**demands))
    except ValueError:
        return False
    return True


def at_positions(kind):
    positions = PositionsConfig.kinds()[kind]()
    beside = positions.width(16, 32)
    return causal(positions=positions, tie_embeddings="none" if beside else "all", d_model=48 if beside else 16)


KINDS = AttentionConfig.kinds()
WRITERS = [kind for kind in KINDS if can(kind, causal=True)]
ASKERS = [kind for kind in KINDS if not KINDS[kind]().build(num_heads=4, head_size=4).shares_query_and_key]

MODELS = {
    **{f"{kind} writing": lambda k=kind: transformer(KINDS[k]()) for kind in WRITERS},
    **{f"{kind} reading": lambda k=kind: transformer(encoder=KINDS[k]()) for kind in KINDS},
    **{f"{kind} asking": lambda k=kind: transformer(cross=KINDS[k]()) for kind in ASKERS},
    **{f"{kind} in a luong decoder": lambda k=kind: recurrent(LuongConfig(attention=KINDS[k]())) for kind in ASKERS},
    "bahdanau": lambda: recurrent(BahdanauConfig()),
    "bahdanau, lstm, two layers, directions added": lambda: recurrent(
        BahdanauConfig(), cell="lstm", num_layers=2, combine="add"
    ),
    "bahdanau, short gradients": lambda: recurrent(BahdanauConfig(), bptt=2),
    "show, attend and tell": lambda: recurrent(
        BahdanauConfig(),
        cell="lstm",
        num_layers=2,
        encoder="none",
        positions={"kind": "sinusoidal"},
        tie_embeddings="target",
    ),
    "luong without input feeding": lambda: recurrent(LuongConfig(input_feeding=False), cell="lstm"),
    "luong without input feeding, short gradients": lambda: recurrent(LuongConfig(input_feeding=False), bptt=2),
    "sutskever": lambda: recurrent(SutskeverConfig(), cell="lstm", num_layers=2, bidirectional=False),
    "sutskever, vanilla cells": lambda: recurrent(SutskeverConfig(), cell="rnn"),
    "sutskever, short gradients": lambda: recurrent(SutskeverConfig(), cell="lstm", bptt=2),
    "cho": lambda: recurrent(ChoConfig(), bidirectional=False),
    "cho, short gradients": lambda: recurrent(ChoConfig(), bptt=2),
    "one to one": lambda: smoothed(OneToOneConfig(embedding_size=16, hidden_size=24, dropout=0.0)),
    "fewer key heads": lambda: transformer(num_key_heads=2),
    "linear, fewer key heads": lambda: transformer(LinearAttentionConfig(), num_key_heads=2),
    "window of one": lambda: transformer(WindowConfig(window=1), encoder=WindowConfig(window=1)),
    "t5, fewer key heads": lambda: transformer(positions=T5Config(), num_key_heads=2),
    "rotary and linear": lambda: transformer(LinearAttentionConfig(), positions=RotaryConfig()),
    "sizes of one's own": lambda: transformer(key_size=3, value_size=5),
    "one matrix for query and key": lambda: transformer(projections="query_key"),
    "one matrix for key and value": lambda: transformer(projections="key_value"),
    "one matrix": lambda: transformer(projections="all"),
    "no matrix": lambda: transformer(projections="none"),
    "convolutions": lambda: transformer(
        convolution.ConvolutionMixerConfig(), encoder=convolution.ConvolutionMixerConfig()
    ),
    "dense over positions": lambda: transformer(dense.DenseMixerConfig(), encoder=dense.DenseMixerConfig()),
    "convolutional feed-forward": lambda: transformer(feed_forward=ConvolutionalFeedForwardConfig(kernel=3)),
    "gated feed-forward": lambda: transformer(feed_forward=GatedFeedForwardConfig()),
    "post-norm": lambda: transformer(norm="post"),
    "root mean square norm": lambda: transformer(normalisation="rms_norm"),
    "no norm": lambda: transformer(normalisation="none"),
    "activations alone": lambda: transformer(feed_forward=ActivationAloneConfig()),
    "deviation norm": lambda: transformer(normalisation="layer_norm_sigma"),
    "no residuals": lambda: transformer(residual="none"),
    "reversible": lambda: transformer(residual="reversible"),
    "memory of every layer": lambda: transformer(memory="per_layer"),
    **{f"{kind} going on": lambda k=kind: causal(KINDS[k]()) for kind in WRITERS},
    **{f"going on at {kind} positions": lambda k=kind: at_positions(k) for kind in PositionsConfig.kinds()},
    "going on, two matrices": lambda: causal(tie_embeddings="none", scale_embeddings=True),
    "going on, fewer key heads": lambda: causal(num_key_heads=2),
    "going on, post-norm": lambda: causal(norm="post"),
    "going on, root mean square norm": lambda: causal(normalisation="rms_norm"),
    "going on, gated feed-forward": lambda: causal(feed_forward=GatedFeedForwardConfig()),
    "going on, convolutions": lambda: causal(
        convolution.ConvolutionMixerConfig(), feed_forward=ConvolutionalFeedForwardConfig(kernel=3)
    ),
    "going on, dense over positions": lambda: causal(dense.DenseMixerConfig()),
    "going on, reversible": lambda: causal(residual="reversible"),
    "going on, recurrent": lambda: recurrent_text(),
    "going on, recurrent, gru, two layers, two matrices": lambda: recurrent_text(
        cell="gru", num_layers=2, tie_embeddings="none"
    ),
    "going on, recurrent, vanilla cells, one size": lambda: recurrent_text(cell="rnn", hidden_size=16),
}

ASKING = {
    f"decoder.layers.{layer}.{asker}.{part}"
    for layer in (0, 1)
    for asker in ("cross_attention.query", "after_cross_attention.norm")
    for part in ("weight", "bias")
}
"""Who asks, where the answer is not weighed by it."""

IDLE = {
    "hard asking": ASKING,  # a choice has no gradient
    "mean asking": ASKING,  # it weighs nothing
    "strided asking": ASKING,  # of a short source a comb sees one token
}
"""Parameters that never get a gradient: none of any other model."""

LEARNS_LESS = {
    "hard writing": "a choice has no gradient",
    "hard reading": "a choice has no gradient",
    "hard asking": "a choice has no gradient",
    "mean writing": "it weighs nothing",
    "mean reading": "it weighs nothing",
    "mean asking": "it weighs nothing",
    "hard in a luong decoder": "a choice has no gradient",
    "hard going on": "a choice has no gradient",
    "mean going on": "it weighs nothing",
    "mean in a luong decoder": "it weighs nothing",
    "location in a luong decoder": "it does not see the source",
    "location asking": "it does not see the source",
    "one to one": "it cannot tell a reversed target",
    "strided asking": "of a short source a comb sees one token",
    "strided in a luong decoder": "of a short source a comb sees one token",
    "no residuals": "depth costs what it costs",
    "bahdanau, lstm, two layers, directions added": "gates on gates start slowly",
}


@pytest.fixture(params=MODELS)
def name(request) -> str:
    return request.param


@pytest.fixture
def model(name) -> SequenceToSequenceModel:
    torch.manual_seed(0)
    return MODELS[name]().eval()


@pytest.mark.usefixtures("shapes_unchecked")
def test_step_by_step_equals_teacher_forcing(model):
    with torch.no_grad():
        state = model.start(model.encode(SOURCE), 1, LONG.shape[1])
        stepped = torch.cat([model.step(tokens, state) for tokens in LONG.split(1, 1)], 1)
        assert_close(stepped, model.scores(SOURCE, LONG), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("shapes_unchecked")
def test_beams_are_scored_as_teacher_forcing_scores_them(model):
    config = GenerationConfig(beam_size=4, nbest=4, length_penalty=0, max_length_ratio=0, max_length_extra=9)
    for source, hypotheses in zip(SOURCE, generate(model, SOURCE, config), strict=True):
        for found in hypotheses:
            target = torch.tensor([[SOS, *found.tokens, *[EOS] * found.finished]])
            log_probability = score_pairs(model, source[None], target)
            assert found.log_probability == pytest.approx(log_probability.item(), abs=1e-4)


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_sentence_is_decoded_as_if_it_were_alone(model, beam_size):
    config = GenerationConfig(beam_size=beam_size, nbest=beam_size, max_length_ratio=0, max_length_extra=9)
    together = generate(model, SOURCE, config)
    alone = [generate(model, source[source != PAD][None], config)[0] for source in SOURCE]
    for best, best_alone in zip(together, alone, strict=True):
        assert [found.score for found in best] == pytest.approx([found.score for found in best_alone], abs=1e-4)
        assert without_ties(best) == without_ties(best_alone)


def without_ties(best: list[Hypothesis]) -> list[list[int]]:
    """The tokens of those whose rank rounding cannot change; what follows the last one is not known."""
    scores = [math.inf, *(found.score for found in best), -math.inf if len(best) == 1 else best[-1].score]
    return [
        found.tokens
        for before, found, after in zip(scores, best, scores[2:], strict=False)
        if before - found.score > 1e-4 and found.score - after > 1e-4
    ]


@pytest.mark.usefixtures("shapes_unchecked")
def test_it_learns_and_every_parameter_takes_part(model, name):
    optimizer = torch.optim.Adam(model.train().parameters(), lr=0.02)
    losses = []
    for _ in range(20):
        logits = model.scores(SOURCE, TARGET[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), TARGET[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    idle = {part for part, p in model.named_parameters() if p.grad is None or not p.grad.any()}
    assert idle == IDLE.get(name, set())
    assert losses[-1] < losses[0] / (2 if name in LEARNS_LESS else 4)


def gradients_of(model, *, mixed):
    model.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        loss = loss_of_pairs(model, SOURCE, TARGET)
    loss.total.backward()  # outside, as a trainer has it
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.usefixtures("shapes_unchecked")
def test_mixed_precision_learns_what_single_precision_does(model, name):
    if name.startswith("lsh"):
        pytest.skip("a vector near the edge of its bucket is rounded into the next one, and meets other keys")
    exact = [module for module in model.train().modules() if isinstance(module, ScaledDotProduct)]
    wide = gradients_of(model, mixed=False)
    for kernel in ("sdpa", "matmul") if exact else ("none",):
        for module in exact:
            module.kernel = KERNELS[kernel]
        narrow = gradients_of(model, mixed=True)
        assert narrow.isfinite().all()
        assert (narrow - wide).norm() < 0.1 * wide.norm(), kernel


def test_its_loss_is_that_of_its_scores(model):
    with torch.no_grad():
        loss = loss_of_pairs(model, SOURCE, TARGET)
        logits, targets = model.scores(SOURCE, TARGET[:, :-1]).flatten(0, 1), TARGET[:, 1:].flatten()
    assert int(loss.count) == (targets != PAD).sum()
    for found, smoothing in ((loss.total, SMOOTHING), (loss.plain, 0.0)):
        whole = F.cross_entropy(logits, targets, ignore_index=PAD, reduction="sum", label_smoothing=smoothing)
        assert_close(found, whole, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("kind", ["linear", "performer"])
def test_kernelised_attention_decodes_in_constant_memory(kind):
    model = MODELS[f"{kind} writing"]().eval()
    with torch.no_grad():
        state = model.start(model.encode(SOURCE), 2, 20)
        sizes = []
        for _ in range(20):
            model.step(torch.full((3, 2), 7), state)
            sizes.append([part.shape for own, _ in state.caches for part in own.state])
    assert sizes[0] == sizes[-1]


@pytest.mark.parametrize("name", [name for name in MODELS if "going on" in name], indirect=True)
@pytest.mark.parametrize("cuts", [(9,), (4, 5), (1, 8), (2, 1, 3, 3)])
def test_a_text_read_in_pieces_is_read_as_a_whole(model, name, cuts):
    text = TARGET[:1].repeat(1, 2)[:, :9]
    with torch.no_grad():
        state = model.model.start(1, 9)
        read = [model.model.step(piece, state) for piece in text.split(cuts, 1)]
        ends = torch.tensor(cuts).cumsum(0) - 1
        assert_close(torch.stack(read, 1), model.model.scores(text)[:, ends], rtol=1e-4, atol=1e-5)


CARRIERS = [name for name in MODELS if "going on, recurrent" in name]


@pytest.mark.parametrize("name", CARRIERS, indirect=True)
def test_a_state_is_carried_from_window_to_window_without_a_gradient(model):
    carrier, text = model.model, torch.randint(5, VOCAB_SIZE, (3, 13))
    whole = carrier.scores(text=text[:, :-1])
    state, scores, total = carrier.first_state(3), [], 0
    for inputs, targets in zip(text[:, :-1].split(5, 1), text[:, 1:].split(5, 1), strict=True):
        vectors = carrier.vectors(text=inputs, state=state)
        loss = carrier(text=inputs, targets=targets, state=state)
        assert not any(part.requires_grad for part in loss.state)
        assert_close(loss.state, tuple(part.detach() for part in vectors.state))
        scores.append(carrier.head.scores(vectors))
        state, total = loss.state, total + loss.plain
    assert_close(torch.cat(scores, 1), whole, rtol=1e-4, atol=1e-5)
    assert_close(total, carrier(text=text[:, :-1], targets=text[:, 1:]).plain, rtol=1e-4, atol=1e-5)


def test_models_that_carry_a_state_say_so():
    made = {name: build() for name, build in MODELS.items() if "going on" in name}
    assert [name for name, one in made.items() if one.model.carries_state] == CARRIERS
    text = TARGET[:, :4]
    for name, one in made.items():
        with torch.no_grad():
            state = one.model(text=text, targets=text).state
        assert (state is None) == (name not in CARRIERS), name


def test_every_model_is_counted_without_being_allocated():
    for name, build in MODELS.items():
        with torch.device("meta"):
            counted = build()
        sizes = [{part: p.shape for part, p in one.named_parameters()} for one in (counted, build())]
        assert sizes[0] == sizes[1], name
        assert all(p.is_meta for p in counted.parameters()), name
