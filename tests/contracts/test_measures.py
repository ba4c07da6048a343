"""Every model there is, with every mechanism, can be measured; and a head of it can be taught alignments."""

from functools import partial

import pytest
import torch

from regardant.errors import ConfigError
from regardant.inspection import Attended, attention_places, capture, measure_heads
from regardant.inspection.importance import by_gradient
from regardant.tasks.translation.config import AlignmentGuidance
from regardant.tasks.translation.learn.guidance import Guidance, GuidedBatch
from tests.models import loss_of_pairs

from .test_models import MODELS, SOURCE, TARGET

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

CROSS = "decoder.cross_attention"
OWN = ("writing", "reading", "going on")
"""Parts of names of models that differ in what attends to itself."""


MEASURED = [name for name in MODELS if "going on" not in name or name == "going on, post-norm"]
"""Models that go on with a text have the mechanisms of those that write."""


def made(name):
    torch.manual_seed(0)
    return MODELS[name]().eval()


@pytest.mark.parametrize("name", MEASURED)
def test_the_numbers_of_every_head_are_within_their_bounds(name):
    model = made(name)
    for kind, attentions in attention_places(model).items():
        with torch.inference_mode(), capture(model, [f"{name}.weights" for name in attentions]) as records:
            model.scores(SOURCE[:1], TARGET[:1, :-1])
        weights = torch.stack([records.whole(f"{name}.weights")[0] for name in attentions])
        causal = "encoder" not in kind and "cross" not in kind
        found = measure_heads([Attended(weights, torch.zeros(weights.shape[-1], dtype=torch.bool))], causal=causal)
        shares = [found.previous, found.own, found.next, found.first, found.last, found.idle, found.coverage]
        for share in [*shares, found.entropy_share, found.distances]:
            assert ((share >= -1e-6) & (share <= 1 + 1e-6)).all(), kind
        mask = torch.stack([records.mask(name)[0] for name in attentions])
        assert not weights[~mask].any(), kind
        share = measure_heads([Attended(weights, torch.zeros(weights.shape[-1], dtype=torch.bool), mask)]).entropy_share
        assert share.isnan().logical_or((share >= -1e-6) & (share <= 1 + 1e-6)).all(), kind
        torch.testing.assert_close(found.distances, found.distances.T)
        assert not found.distances.diagonal().any()
        importance = by_gradient(model, [partial(loss_of_pairs, model, SOURCE[:1], TARGET[:1])], attentions[-1:])
        assert len(importance) == 1 and importance.isfinite().all() and (importance >= 0).all(), kind


@pytest.mark.parametrize("name", [name for name in MODELS if not any(part in name for part in OWN)])
def test_a_head_of_the_cross_attention_is_taught_with_finite_gradients(name):
    model = made(name)
    if CROSS not in attention_places(model):
        with pytest.raises(ConfigError, match="and the model has none: leave it out"):
            Guidance(AlignmentGuidance(), None, model)
        return
    guidance = Guidance(AlignmentGuidance(weight=1.0), None, model.train())
    real = (SOURCE != 0)[:, None] & (TARGET[:, 1:] != 0)[:, :, None]
    batch = GuidedBatch(SOURCE, TARGET, real / real.sum(-1, keepdim=True).clamp(min=1))

    def run():
        torch.manual_seed(1)
        return loss_of_pairs(model, SOURCE, TARGET)

    loss, plain = guidance.loss(batch, run), run()
    assert float(loss.total.detach()) > float(plain.total.detach())
    loss.total.backward()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert gradients and all(gradient.isfinite().all() for gradient in gradients)
