"""Every head on every model that reads one input, and on a dual encoder: padding, batches, losses, gradients."""

import math
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from regardant.data.vocabulary import PAD
from regardant.models import DualEncoderConfig
from regardant.models.encoder_only import BagOfVectorsConfig, EncoderOnlyConfig
from regardant.models.heads import (
    IGNORED,
    ElementClassConfig,
    ForecastConfig,
    HeadConfig,
    MatchConfig,
    NextTokenConfig,
    SequenceClassConfig,
    SpanConfig,
)
from regardant.models.heads.next_token import TransformConfig
from regardant.models.hierarchical import HierarchicalConfig
from regardant.models.recurrent import RecurrentEncoderConfig
from regardant.models.representations import patches, tokens
from regardant.models.vectors import Vectors
from regardant.training.checkpoints import load_into

VOCAB_SIZE, OUTPUTS, HORIZON, SMOOTHING = 12, 3, 4, 0.1
LENGTHS = (6, 4, 1)
ITEMS = torch.tensor([[5, 6, 7, 8, 9, 5], [9, 5, 6, 10, PAD, PAD], [10, PAD, PAD, PAD, PAD, PAD]])
IMAGES = torch.rand(3, 4, 8, 1, generator=torch.Generator().manual_seed(1))

TRANSFORMER = EncoderOnlyConfig(d_model=16, num_heads=2, d_ff=32, num_layers=2, dropout=0.0, max_length=16)
RECURRENT = RecurrentEncoderConfig(embedding_size=16, hidden_size=24, dropout=0.0)
BAG = BagOfVectorsConfig(d_model=16, dropout=0.0)

MODELS = {
    "encoder only": TRANSFORMER,
    "post-norm": TRANSFORMER.model_copy(update={"norm": "post"}),
    "recurrent": RECURRENT,
    "recurrent, one direction": RECURRENT.model_copy(update={"bidirectional": False, "cell": "gru"}),
    "bag": BAG,
    "hierarchical": HierarchicalConfig.model_validate(
        {**TRANSFORMER.model_dump(exclude={"kind"}), "segment": 4, "upper_layers": 1}
    ),
}


@dataclass
class Case:
    """A head and the targets that it is asked for. A target of padding is arbitrary."""

    config: HeadConfig
    targets: torch.Tensor
    per_element: bool = False
    """Whether scores and targets have an entry for each element."""
    first: int = 0
    """Vectors before the first element: of a class token."""
    counted: int | None = None
    """Targets that count, in a whole batch."""
    options: dict[str, Any] = field(default_factory=dict)


CLASSES = torch.tensor([2, 0, 1])
LABELS = torch.tensor([[0, 1, IGNORED, 2, 0, 1], [2, IGNORED, 1, 0, 1, 1], [1, 0, 0, 0, 0, 0]])
SPANS = torch.tensor([[1, 4], [0, IGNORED], [0, 0]])
VALUES = torch.randn(3, 6, OUTPUTS, generator=torch.Generator().manual_seed(2))
VALUES[0, 2, 1] = math.nan
FUTURE = VALUES[:, :HORIZON]
WORDS = torch.tensor([[5, PAD, 7, 8, PAD, 6], [9, 5, PAD, PAD, PAD, PAD], [7, PAD, PAD, PAD, PAD, PAD]])

HEADS = {
    "next token": Case(NextTokenConfig(label_smoothing=SMOOTHING), WORDS, per_element=True, counted=7),
    **{
        f"sequence class, {pooling}": Case(
            SequenceClassConfig(pooling=pooling, dropout=0.0, label_smoothing=SMOOTHING), CLASSES, counted=3
        )
        for pooling in ("mean", "max", "last", "first", "class_token")
    },
    "next token, with all that a head can have": Case(
        NextTokenConfig(label_smoothing=SMOOTHING, bias=True, scale=0.5, transform=TransformConfig()),
        WORDS,
        per_element=True,
        counted=7,
    ),
    "next token, a word absent": Case(NextTokenConfig(absent=(1,)), WORDS, per_element=True, counted=7),
    "sequence class, transformed": Case(SequenceClassConfig(transform=True, dropout=0.0), CLASSES, counted=3),
    "element class": Case(ElementClassConfig(dropout=0.0), LABELS, per_element=True, counted=9),
    "element class, smoothed, behind a class token": Case(
        ElementClassConfig(dropout=0.0, label_smoothing=SMOOTHING, class_token=True),
        LABELS,
        per_element=True,
        counted=9,
    ),
    "span": Case(SpanConfig(), SPANS, per_element=True, counted=2),
    "span or no answer": Case(SpanConfig(no_answer=True), SPANS, per_element=True, first=1, counted=2),
    "forecast of each element": Case(ForecastConfig(), VALUES, per_element=True, counted=11 * OUTPUTS - 1),
    "quantiles of each element": Case(
        ForecastConfig(quantiles=[0.1, 0.5, 0.9]), VALUES, per_element=True, counted=11 * OUTPUTS - 1
    ),
    "forecast of a horizon": Case(ForecastConfig(horizon=HORIZON), FUTURE, counted=3 * HORIZON * OUTPUTS - 1),
    "quantiles of a horizon": Case(
        ForecastConfig(horizon=HORIZON, quantiles=[0.25, 0.75], pooling="class_token"),
        FUTURE,
        counted=3 * HORIZON * OUTPUTS - 1,
    ),
}

REFUSED = {
    **{
        (model, head): "no other element at the class token"
        for model in ("recurrent, one direction",)
        for head in HEADS
        if HEADS[head].config.build(16, 3).reads_class_token
    },
    **{
        ("bag", head): "mixes nothing into the class token"
        for head in HEADS
        if HEADS[head].config.build(16, 3).reads_class_token
    },
    **{
        ("bag", head): "mixes nothing into the last element"
        for head in ("sequence class, last", "forecast of a horizon")
    },
    ("recurrent, one direction", "sequence class, first"): "no other element at the first element",
    ("bag", "sequence class, first"): "mixes nothing into the first element",
    **{(model, "match"): "use a dual encoder" for model in MODELS},
    **{("dual encoder", head): "use head match" for head in HEADS},
}
"""Products that are refused, and why."""

PRODUCTS = [(model, head) for model in MODELS for head in HEADS if (model, head) not in REFUSED]


def head_builder(config, num_outputs=OUTPUTS):
    size = VOCAB_SIZE if config.kind == "next_token" else num_outputs
    return lambda d_model: config.build(d_model, size)


def build(model, head):
    config = MatchConfig() if head == "match" else HEADS[head].config
    torch.manual_seed(0)
    if model == "dual encoder":
        return dual(head=config)
    return MODELS[model].build(tokens(VOCAB_SIZE), head_builder(config)).eval()


def dual(first="encoder only", second="recurrent", head=None, **fields):
    config = DualEncoderConfig(first=MODELS[first], second=MODELS[second], size=8, **fields)
    torch.manual_seed(0)
    return config.build(tokens(VOCAB_SIZE), patches(2, 1), head_builder(head or MatchConfig())).eval()


IDLE = {
    ("recurrent", "sequence class, last"): {"encoder.layers.0.weight_hh_l0_reverse"},
    ("recurrent", "forecast of a horizon"): {"encoder.layers.0.weight_hh_l0_reverse"},
    ("recurrent", "sequence class, class_token"): {"encoder.layers.0.weight_hh_l0"},
    ("recurrent", "sequence class, first"): {"encoder.layers.0.weight_hh_l0"},
    ("recurrent", "quantiles of a horizon"): {"encoder.layers.0.weight_hh_l0"},
}
"""Parameters without a gradient: at the last element the direction from the right has no state before it, at the class
token that from the left."""


@pytest.fixture(params=PRODUCTS, ids=" and ".join)
def names(request):
    return request.param


@pytest.fixture
def product(names):
    model, head = names
    return build(model, head), HEADS[head]


def alone(case, row):
    """Targets of one item without padding."""
    targets = case.targets[row : row + 1]
    return targets[:, : LENGTHS[row]] if case.per_element and case.config.kind != "span" else targets


def test_padding_changes_no_score_and_no_loss(product):
    model, case = product
    with torch.no_grad():
        scores, loss = model.scores(input=ITEMS), model(input=ITEMS, targets=case.targets)
        losses = []
        for row, length in enumerate(LENGTHS):
            item = ITEMS[row : row + 1, :length]
            found = scores[row, : length + case.first] if case.per_element else scores[row]
            assert_close(found, model.scores(input=item)[0], rtol=1e-4, atol=1e-5)
            losses.append(model(input=item, targets=alone(case, row)))
    assert loss.count == sum(one.count for one in losses) == case.counted
    for name in ("total", "plain"):
        assert_close(getattr(loss, name), sum(getattr(one, name) for one in losses), rtol=1e-4, atol=1e-5)


def test_an_item_of_a_batch_is_answered_as_if_it_were_alone(product):
    model, _ = product
    with torch.no_grad():
        scores = model.scores(input=ITEMS)
        for row in range(len(ITEMS)):
            assert_close(scores[row : row + 1], model.scores(input=ITEMS[row : row + 1]), rtol=1e-4, atol=1e-5)


def test_every_parameter_gets_a_gradient(product, names):
    model, case = product
    model.train()(input=ITEMS, targets=case.targets).total.backward()
    idle = {name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()}
    assert idle == IDLE.get(names, set())


def cross_entropy(logits, target, smoothing):
    """Of one list of logits, as written in the definition."""
    normaliser = math.log(sum(math.exp(one) for one in logits))
    shares = [(1 - smoothing) * (number == target) + smoothing / len(logits) for number in range(len(logits))]
    return sum(share * (normaliser - logit) for share, logit in zip(shares, logits, strict=True))


def expected_loss(case, scores, smoothing):
    """The sum over all targets that count, one by one, of the scores as lists."""
    kind, targets, total = case.config.kind, case.targets.tolist(), 0.0
    for row, length in enumerate(LENGTHS):
        if kind == "sequence_class":
            total += cross_entropy(scores[row], targets[row], smoothing)
        elif kind == "span":
            if IGNORED not in targets[row]:
                for side, at in enumerate(targets[row]):
                    logits = [element[side] for element in scores[row][: length + case.first]]
                    total += cross_entropy(logits, at, 0.0)
        elif kind in ("next_token", "element_class"):
            ignored = PAD if kind == "next_token" else IGNORED
            for at in range(length):
                if targets[row][at] != ignored:
                    total += cross_entropy(scores[row][at], targets[row][at], smoothing)
        else:
            steps = length if case.per_element else HORIZON
            for at in range(steps):
                for channel in range(OUTPUTS):
                    value, forecast = targets[row][at][channel], scores[row][at][channel]
                    if not math.isnan(value):
                        total += forecast_loss(value, forecast, case.config.quantiles)
    return total


def forecast_loss(value, forecast, quantiles):
    if not quantiles:
        return (value - forecast) ** 2
    return sum(
        share * (value - one) if value > one else (1 - share) * (one - value)
        for share, one in zip(quantiles, forecast, strict=True)
    )


@pytest.mark.parametrize("head", HEADS)
def test_a_loss_is_the_sum_of_its_definition(head):
    model, case = build("encoder only", head), HEADS[head]
    with torch.no_grad():
        scores, loss = model.scores(input=ITEMS).tolist(), model(input=ITEMS, targets=case.targets)
    for found, smoothing in ((loss.total, getattr(case.config, "label_smoothing", 0.0)), (loss.plain, 0.0)):
        assert float(found) == pytest.approx(expected_loss(case, scores, smoothing), rel=1e-4)
    assert not loss.plain.requires_grad


def test_a_class_token_is_not_labelled():
    plain, behind = (ElementClassConfig(class_token=one).build(4, OUTPUTS).eval() for one in (False, True))
    behind.load_state_dict(plain.state_dict())
    values = torch.randn(2, 5, 4)
    assert_close(behind.scores(Vectors(values)), plain.scores(Vectors(values[:, 1:])))


@pytest.mark.parametrize("given", [[0.5, 0.1], [0.5, 0.5], [0.0, 0.5], [0.5, 1.0]])
def test_quantiles_that_do_not_ascend_between_0_and_1_are_refused(given):
    with pytest.raises(ValueError, match=re.escape(f"given {given}; allowed: numbers between 0 and 1 in ascending")):
        ForecastConfig(quantiles=given)


@pytest.mark.parametrize(("model", "head"), REFUSED)
def test_what_does_not_go_together_is_refused_by_name(model, head):
    with pytest.raises(ValueError, match=REFUSED[model, head]):
        build(model, head)


def test_every_product_is_counted_without_being_allocated():
    for model, head in [*PRODUCTS, ("dual encoder", "match")]:
        with torch.device("meta"):
            counted = build(model, head)
        assert all(one.is_meta for one in counted.parameters()), (model, head)
        sizes = [{name: one.shape for name, one in each.named_parameters()} for each in (counted, build(model, head))]
        assert sizes[0] == sizes[1], (model, head)


BOTH = {"first": ITEMS, "second": IMAGES}

DISTINCT = torch.arange(3)[:, None].expand(3, 2)
"""Three pairs without a common item."""

TOWERS = [("encoder only", "recurrent"), ("bag", "post-norm"), ("recurrent, one direction", "encoder only")]


@pytest.mark.parametrize("towers", TOWERS, ids=" and ".join)
def test_pairs_are_scored_by_their_cosine_whatever_else_is_in_the_batch(towers):
    model = dual(*towers)
    with torch.no_grad():
        scores = model.scores(first=ITEMS, second=IMAGES)
        for row, length in enumerate(LENGTHS):
            first = model.tower("first").scores(input=ITEMS[row : row + 1, :length])
            for column in range(len(IMAGES)):
                second = model.tower("second").scores(input=IMAGES[column : column + 1])
                cosine = torch.cosine_similarity(first, second)[0]
                assert_close(scores[row, column], cosine / 0.07, rtol=1e-4, atol=1e-4)
                single = model.scores(first=ITEMS[row : row + 1, :length], second=IMAGES[column : column + 1])
                assert_close(single[0, 0], scores[row, column], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("towers", TOWERS, ids=" and ".join)
def test_every_parameter_of_both_towers_learns_from_pairs(towers):
    model = dual(*towers).train()
    model(first=ITEMS, second=IMAGES, targets=DISTINCT).total.backward()
    assert not {name for name, one in model.named_parameters() if one.grad is None or not one.grad.any()}


def test_the_loss_of_pairs_is_the_mean_of_both_directions():
    model = dual()
    with torch.no_grad():
        scores = model.scores(first=ITEMS, second=IMAGES).tolist()
        loss = model(first=ITEMS, second=IMAGES, targets=DISTINCT)
    columns = [list(column) for column in zip(*scores, strict=True)]
    both = [cross_entropy(each[row], row, 0.0) for each in (scores, columns) for row in range(3)]
    assert float(loss.total) == pytest.approx(sum(both) / 2, rel=1e-4)
    assert int(loss.count) == 3
    assert not model.head.divisible


@pytest.mark.parametrize("side", [0, 1])
def test_pairs_with_a_common_item_are_partners_and_share_the_target(side):
    model, targets = dual(), DISTINCT.clone()
    targets[2, side] = targets[0, side]
    with torch.no_grad():
        scores = model.scores(first=ITEMS, second=IMAGES)
        found = float(model(first=ITEMS, second=IMAGES, targets=targets).total)
    logs = [each.log_softmax(-1).tolist() for each in (scores, scores.T)]
    partners = {0: [0, 2], 1: [1], 2: [0, 2]}
    expected = -sum(log[row][at] / len(ats) for log in logs for row, ats in partners.items() for at in ats) / 2
    assert found == pytest.approx(expected, rel=1e-4)


def test_a_temperature_at_its_limit_stays_there_and_can_rise_again():
    model = dual()
    with torch.no_grad():
        model.head.log_scale.fill_(9.0)  # 1 / temperature of 8,103
    scores = model.scores(first=ITEMS, second=IMAGES)
    assert 0 < scores.detach().abs().max() <= 100.001
    scores.sum().backward()
    assert model.head.log_scale.grad


def test_a_dual_encoder_names_its_inputs_and_the_attention_of_both_towers():
    model = dual("encoder only", "post-norm")
    assert model.inputs == ("first", "second")
    assert (model.representation("first").unit, model.representation("second").unit) == ("token", "patch")
    sides = {kind: (one.queries, one.keys, one.causal) for kind, one in model.attention_kinds.items()}
    assert sides == {
        "first.encoder.self_attention": ("first", "first", False),
        "second.encoder.self_attention": ("second", "second", False),
    }
    assert dual("bag", "recurrent").attention_kinds == {}


@pytest.mark.parametrize(("towers", "reads_order"), [(("bag", "bag"), False), (("bag", "recurrent"), True)])
def test_a_dual_encoder_reads_in_no_order_if_neither_tower_does(towers, reads_order):
    assert dual(*towers).reads_order == reads_order


def test_dropout_of_both_towers_has_one_key():
    model = dual()
    model.train().dropout_key.update = 7
    keys = {module.key.update for module in model.modules() if hasattr(module, "key") and module.key is not None}
    assert keys == {7}


def test_a_tower_is_taken_over_by_its_name(tmp_path):
    earlier, model = dual(), dual()
    with torch.no_grad():
        for one in earlier.parameters():
            one.add_(1)
    save_file(earlier.state_dict(), tmp_path / "model.safetensors")
    load_into(model, tmp_path / "model.safetensors", ["first"])
    with torch.no_grad():
        vectors = [[one.tower(name).scores(input=x) for one in (earlier, model, dual())] for name, x in BOTH.items()]
    (first_earlier, first, _), (_, second, second_fresh) = vectors
    assert_close(first, first_earlier)
    assert_close(second, second_fresh)


def test_a_transform_that_widens_leaves_the_products_narrow(monkeypatch):
    """As autocast on an accelerator, which computes a norm in float32."""
    head = NextTokenConfig(transform=TransformConfig()).build(16, VOCAB_SIZE)
    monkeypatch.setattr(head.transform.norm, "forward", lambda x: x.float())
    assert head.to(torch.bfloat16).read(torch.ones(2, 16, dtype=torch.bfloat16)).dtype == torch.bfloat16
