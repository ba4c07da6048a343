"""A beam gets what it would get in a sequence of its own, whatever the mechanism, the positions and the other beams."""

from typing import Any

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import AttentionConfig, View
from regardant.attention.cache import BeamOrigin
from regardant.inspection.capture import capture
from regardant.inspection.interventions import MaskKey, intervene
from regardant.layers.linear import Layouts
from regardant.layers.multi_head import CrossAttention, HeadShape, SelfAttention, SharedBeamLayerCache
from regardant.positions import PositionsConfig

from .mechanisms import NARROW

SENTENCES, BEAMS, STEPS, D_MODEL = 4, 3, 9, 16
CHOOSE_KEYS = {"hard", "lsh", "top_k"}
SHAPES = {"heads": HeadShape(D_MODEL, 4, 4, 4, 4), "grouped": HeadShape(D_MODEL, 4, 2, 4, 4)}


def build(kind: str, positions: str, shape: str = "heads") -> SelfAttention:
    torch.manual_seed(0)
    made = PositionsConfig.kinds()[positions]().build(
        d_model=D_MODEL, num_heads=4, head_size=4, max_length=STEPS, causal=True
    )
    config = AttentionConfig.kinds()[kind](**NARROW.get(kind, {}))
    layer = SelfAttention(SHAPES[shape], config, made, causal=True).eval()
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return layer


def layers() -> list[Any]:
    """Every mechanism that sees the past alone, with every scheme of positions that goes with it."""
    found = []
    for kind in AttentionConfig.kinds():
        for positions in ("none", "rotary", "alibi", "shaw"):
            for shape in SHAPES if positions == "none" else ["heads"]:
                try:
                    build(kind, positions, shape)
                except ValueError:
                    continue
                found.append(pytest.param(kind, positions, shape, id=f"{kind}-{positions}-{shape}"))
    return found


def can_cross(kind: str) -> bool:
    try:
        CrossAttention(SHAPES["heads"], AttentionConfig.kinds()[kind]()).mechanism.check(View())
    except ValueError:
        return False
    return True


class Decoding:
    """Beams of a layer, whose every step is held to a pass over the whole of each sequence."""

    def __init__(self, layer: SelfAttention, sentences: int, capacity: int = STEPS) -> None:
        self.layer = layer
        self.origin = BeamOrigin(BEAMS, capacity)
        self.cache = layer.start(capacity, self.origin)
        self.written = torch.empty(sentences, 1, 0, D_MODEL)

    def step(self, generator: torch.Generator) -> torch.Tensor:
        newest = torch.randn(*self.written.shape[:2], 1, D_MODEL, generator=generator)
        self.written = torch.cat([self.written, newest], 2)
        bias = self.layer.positions.shared_bias()
        said = self.layer(newest.flatten(0, 1), View(causal=True, bias=bias), self.cache)
        anew = self.layer(self.written.flatten(0, 1), View(causal=True, bias=bias))[:, -1:]
        assert_close(said, anew, rtol=1e-4, atol=1e-5)
        return said

    def change_places(self, generator: torch.Generator) -> None:
        num_sentences, num_beams = self.written.shape[:2]
        beams = torch.randint(num_beams, (num_sentences, BEAMS), generator=generator)
        self.written = self.written.gather(1, beams[..., None, None].expand(-1, -1, *self.written.shape[2:]))
        self.origin.reorder(beams)
        self.cache.reorder((torch.arange(num_sentences)[:, None] * num_beams + beams).flatten())

    def keep(self, sentences: torch.Tensor) -> None:
        num_beams = self.written.shape[1]
        self.written = self.written[sentences]
        self.origin.keep(sentences)
        self.cache.keep(sentences, (sentences[:, None] * num_beams + torch.arange(num_beams)).flatten())

    def join(self, other: "Decoding") -> None:
        self.written = torch.cat([self.written, other.written])
        self.origin.join(other.origin)
        self.cache.join(other.cache)


def said_by_beams(layer: SelfAttention, generator: torch.Generator) -> list[torch.Tensor]:
    """Steps of beams that change places, while sentences leave."""
    decoding, said = Decoding(layer, SENTENCES), []
    for step in range(STEPS):
        said.append(decoding.step(generator))
        if step in (2, 5):
            left = len(decoding.written)
            decoding.keep(torch.tensor([2, 0, 3][: left - 1]) % left)
        decoding.change_places(generator)
    return said


@pytest.mark.parametrize(("kind", "positions", "shape"), layers())
def test_beams_are_as_sequences_of_their_own(kind, positions, shape):
    layer = build(kind, positions, shape)
    with torch.inference_mode():
        said = said_by_beams(layer, torch.Generator().manual_seed(1))
        assert said[-1].std() > 0.05, "what is everywhere alike proves nothing"
        shares = isinstance(layer.start(STEPS, BeamOrigin(BEAMS, STEPS)), SharedBeamLayerCache)
    assert shares == (layer.mechanism.shared_beam_cache and not layer.positions.depends_on_query)


@pytest.mark.parametrize(("kind", "positions", "shape"), layers())
def test_sentences_of_two_batches_go_on_in_one(kind, positions, shape):
    layer, generator = build(kind, positions, shape), torch.Generator().manual_seed(3)
    with torch.inference_mode():
        decoding, other = Decoding(layer, 2, capacity=5), Decoding(layer, 3)
        if not decoding.cache.joins:
            assert not layer.mechanism.decodes_with_all_keys
            return
        for step in range(STEPS):
            if step == 4:
                decoding.join(other)
            for one in [decoding, other][: 1 if step >= 4 else 2]:
                said = one.step(generator)
                one.change_places(generator)
    assert len(said) == 5 * BEAMS


def test_exact_attention_shares():
    assert build("scaled_dot_product", "rotary").mechanism.shared_beam_cache


def test_looking_changes_nothing():
    layer = build("scaled_dot_product", "rotary")
    with torch.inference_mode():
        plain = said_by_beams(layer, torch.Generator().manual_seed(2))
        with capture(layer, "*.weights") as records:
            watched = said_by_beams(layer, torch.Generator().manual_seed(2))
    assert all(map(torch.equal, plain, watched))
    (weights,) = records.values()
    steps = weights[::2]  # between them stand the passes that they are held to
    asking = [1] + [BEAMS] * (STEPS - 1)
    assert [tuple(step.shape[2:]) for step in steps] == [(n, BEAMS * (1 + step)) for step, n in enumerate(asking)]
    for number, step in enumerate(steps):
        assert_close(step.sum(-1), torch.ones(step.shape[:-1]))
        assert ((step > 0).sum(-1) == 1 + number).all(), "a beam sees one key of each step"


def test_who_intervenes_meets_each_beam_with_keys_of_its_own():
    layer = build("scaled_dot_product", "rotary")
    plain = said_by_beams(layer, torch.Generator().manual_seed(2))
    with torch.inference_mode(), intervene(layer, MaskKey("mechanism", 1)):
        changed = said_by_beams(layer, torch.Generator().manual_seed(2))
        assert not isinstance(layer.start(STEPS, BeamOrigin(BEAMS, STEPS)), SharedBeamLayerCache)
    assert torch.allclose(changed[0], plain[0])
    assert not torch.allclose(changed[2], plain[2], atol=1e-3)
    assert isinstance(layer.start(STEPS, BeamOrigin(BEAMS, STEPS)), SharedBeamLayerCache)


@pytest.mark.parametrize(("kind", "positions", "shape"), layers())
def test_rounded_products_say_nearly_the_same(kind, positions, shape):
    layer = build(kind, positions, shape)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    x, view = torch.randn(2, STEPS, D_MODEL), View(causal=True, bias=layer.positions.shared_bias())
    with torch.inference_mode():
        exact = layer(x, view)
        with Layouts(torch.bfloat16).in_use():
            rounded = layer(x, view)
            cache = layer.start(STEPS)
            for step in range(STEPS):
                said = layer(x[:, step : step + 1], view, cache)
    for one in (rounded[:, -1:], said):
        assert one.dtype == torch.float32
        if kind in CHOOSE_KEYS:  # where two are nearly as good, rounding decides
            assert one.isfinite().all()
        else:
            assert float((one - exact[:, -1:]).abs().max()) <= 0.05  # eight bits of products of a few tenths


@pytest.mark.parametrize("kind", [kind for kind in AttentionConfig.kinds() if can_cross(kind)])
def test_a_memory_of_rounded_products_is_asked_by_every_mechanism(kind):
    layer, memory = CrossAttention(SHAPES["heads"], AttentionConfig.kinds()[kind]()).eval(), torch.randn(2, 7, D_MODEL)
    view = View(query_positions=torch.arange(3)) if layer.mechanism.reads_positions else View()
    with torch.inference_mode(), Layouts(torch.bfloat16).in_use():
        said = layer(torch.randn(2, 3, D_MODEL), layer.project(memory), view)
    assert said.dtype == torch.float32 and said.isfinite().all()
