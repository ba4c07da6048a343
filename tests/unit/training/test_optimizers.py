import pytest
import torch
from pydantic import ValidationError
from torch import nn

from regardant.training.optimizers import OptimizerConfig, build_optimizer


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 4)
        self.norm = nn.LayerNorm(4)
        self.hidden = nn.Linear(4, 4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.output = nn.Linear(4, 7)
        self.output.weight = self.embedding.weight

    def forward(self, tokens):
        return self.output(self.norm(self.hidden(self.embedding(tokens))))


def names_in(model, group):
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [names[parameter] for parameter in group["params"]]


def test_only_matrices_that_are_no_embedding_decay():
    model = Tied()
    decayed, kept = build_optimizer(model, OptimizerConfig(weight_decay=0.1)).param_groups
    assert (names_in(model, decayed), decayed["weight_decay"]) == (["hidden.weight"], 0.1)
    assert kept["weight_decay"] == 0.0
    # Their order is the model's; the tied matrix comes once, and what is frozen not at all.
    assert names_in(model, kept) == ["embedding.weight", "norm.weight", "norm.bias", "hidden.bias", "output.bias"]


def test_the_config_reaches_the_optimizer_and_nothing_moves_before_a_rate_is_set():
    model = Tied()
    optimizer = build_optimizer(model, OptimizerConfig(betas=(0.8, 0.95), eps=1e-7, weight_decay=0.1))
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    model(torch.arange(7)).square().sum().backward()
    optimizer.step()
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert [(group["betas"], group["eps"]) for group in optimizer.param_groups] == [((0.8, 0.95), 1e-7)] * 2


@pytest.mark.parametrize("wrong", [{"betas": (0.9, 1.0)}, {"eps": 0}, {"weight_decay": -0.1}])
def test_a_config_that_cannot_train_is_refused(wrong):
    with pytest.raises(ValidationError):
        OptimizerConfig(**wrong)


def test_a_step_is_adamw_by_hand():
    model = nn.Linear(1, 1)
    optimizer = build_optimizer(model, OptimizerConfig(weight_decay=0.5))
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    with torch.no_grad():
        model.weight.fill_(2.0)
        model.bias.fill_(3.0)
    model(torch.ones(1, 1)).backward()
    optimizer.step()
    # The first step of Adam is the sign of the gradient times the rate; decay takes 0.1 * 0.5 * 2 more.
    assert model.weight.item() == pytest.approx(2.0 - 0.1 - 0.1)
    assert model.bias.item() == pytest.approx(3.0 - 0.1)


def test_a_saved_state_goes_on_exactly_in_another_build(tmp_path):
    def train(model, optimizer, steps):
        for step in steps:
            for group in optimizer.param_groups:
                group["lr"] = 0.01
            optimizer.zero_grad()
            model(torch.tensor([step, step + 1])).square().sum().backward()
            optimizer.step()

    torch.manual_seed(0)
    whole, config = Tied(), OptimizerConfig(weight_decay=0.1)
    half = Tied()
    half.load_state_dict(whole.state_dict())
    train(whole, build_optimizer(whole, config), range(4))

    first = build_optimizer(half, config)
    train(half, first, range(2))
    torch.save({"model": half.state_dict(), "optimizer": first.state_dict()}, tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    resumed = Tied()
    resumed.load_state_dict(state["model"])
    second = build_optimizer(resumed, config)
    second.load_state_dict(state["optimizer"])
    train(resumed, second, range(2, 4))
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name
