import json

import pytest

from regardant.cli.training import PUBLISHED_NAMES
from regardant.planning.published import PUBLISHED


@pytest.mark.parametrize(
    ("name", "parameters", "flops"),
    [
        ("base", 63_082_496 + 37_000, 9.47e17),  # the head has a bias of each word
        ("big", 214_245_376 + 37_000, 9.64e18),
        ("bert", 108_891_648 - 1536 + 30_522, 8.6e19),  # without segments
        ("gpt3", 174_604_259_328 + 50_257, 3.14e23),
    ],
)
def test_published_models_have_their_parameters_and_compute(name, parameters, flops):
    cost = PUBLISHED[name].cost()
    assert abs(cost.parameters - parameters) <= 51_000
    assert cost.training_flops == pytest.approx(flops, rel=0.01)


@pytest.mark.parametrize(("name", "attentions"), [("base", 18), ("big", 18), ("bert", 12), ("gpt3", 96)])
def test_a_forward_pass_counts_every_attention_of_a_model(name, attentions):
    published, cost = PUBLISHED[name], PUBLISHED[name].cost()
    attention = 4 * attentions * published.d_model * published.length
    assert cost.forward_flops_per_token == 2 * cost.parameters + attention


def test_plan_prints_a_published_model_by_name(regardant):
    assert set(PUBLISHED_NAMES) == set(PUBLISHED)
    said = regardant("plan", "gpt3")
    assert said.code == 0 and "174,604," in said.out and "3.14e+23 FLOP" in said.out
    assert json.loads(regardant("plan", "bert", "--json").out)["tokens"] == 131_072_000_000
