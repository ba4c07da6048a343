from copy import deepcopy

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from regardant.errors import ConfigError
from regardant.positions.learned import LearnedConfig
from regardant.positions.relative_bias import RelativeBiasConfig
from regardant.training.optimizers import AdamConfig, AdamWConfig, Muon, MuonConfig, orthogonalise, step_where


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


def adamw(model, config):
    (optimizer,) = config.build(model)
    return optimizer


def names_in(model, group):
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [names[parameter] for parameter in group["params"]]


def test_only_matrices_that_are_no_embedding_decay():
    model = Tied()
    decayed, kept = adamw(model, AdamWConfig(weight_decay=0.1)).param_groups
    assert (names_in(model, decayed), decayed["weight_decay"]) == (["hidden.weight"], 0.1)
    assert kept["weight_decay"] == 0.0
    # Their order is the model's; the tied matrix comes once, and what is frozen not at all.
    assert names_in(model, kept) == ["embedding.weight", "norm.weight", "norm.bias", "hidden.bias", "output.bias"]


@pytest.mark.parametrize("config", [LearnedConfig(), RelativeBiasConfig()], ids=lambda config: config.kind)
def test_tables_of_positions_decay(config):
    model = Tied()
    model.positions = config.build(d_model=4, num_heads=2, head_size=2, max_length=5, causal=False)
    decayed, _ = adamw(model, AdamWConfig(weight_decay=0.1)).param_groups
    assert names_in(model, decayed) == ["hidden.weight", "positions.table"]


def test_the_weight_decay_of_adam_is_an_l2_penalty_on_the_matrices():
    torch.manual_seed(0)
    ours, theirs = Tied(), Tied()
    theirs.load_state_dict(ours.state_dict())
    optimizer = adamw(ours, AdamConfig(weight_decay=0.1, betas=(0.9, 0.999), eps=1e-8))
    trainable = [one for one in theirs.parameters() if one.requires_grad]
    other = torch.optim.Adam(trainable, lr=0.01, betas=(0.9, 0.999), eps=1e-8)
    for _ in range(3):
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        for model, chosen, penalty in ((ours, optimizer, 0.0), (theirs, other, 0.05)):
            loss = model(torch.arange(7)).square().sum() + penalty * theirs.hidden.weight.square().sum()
            loss.backward()
            chosen.step()
            chosen.zero_grad()
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


def test_the_config_reaches_the_optimizer_and_nothing_moves_before_a_rate_is_set():
    model = Tied()
    optimizer = adamw(model, AdamWConfig(betas=(0.8, 0.95), eps=1e-7, weight_decay=0.1))
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    model(torch.arange(7)).square().sum().backward()
    optimizer.step()
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert [(group["betas"], group["eps"]) for group in optimizer.param_groups] == [((0.8, 0.95), 1e-7)] * 2


@pytest.mark.parametrize(
    "wrong", [{"betas": (0.9, 1.0)}, {"eps": 0}, {"weight_decay": -0.1}, {"rate_factors": {"head": -1}}]
)
def test_a_config_that_cannot_train_is_refused(wrong):
    with pytest.raises(ValidationError):
        AdamWConfig(**wrong)


@pytest.mark.parametrize("config", [AdamWConfig, MuonConfig])
def test_parts_have_factors_of_their_own_and_inner_ones_count(config):
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 3)), nn.Linear(3, 1))
    found = {}
    for optimizer in config(rate_factors={"0.1": 0.5, "0": 0.1}).build(model):
        for group in optimizer.param_groups:
            found |= dict.fromkeys(names_in(model, group), group["factor"])
    assert found == {
        **dict.fromkeys(["0.0.weight", "0.0.bias"], 0.1),
        **dict.fromkeys(["0.1.weight", "0.1.bias"], 0.5),
        **dict.fromkeys(["1.weight", "1.bias"], 1.0),
    }


def test_a_factor_of_a_part_that_is_not_there_is_one_line():
    told = r"the model has no part 'hiden'; it has embedding, norm, hidden, frozen, output and parts of these; did you "
    with pytest.raises(ConfigError, match=told):
        AdamWConfig(rate_factors={"hiden": 0.1}).build(Tied())


def test_a_step_is_adamw_by_hand():
    model = nn.Linear(1, 1)
    optimizer = adamw(model, AdamWConfig(weight_decay=0.5))
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
    whole, config = Tied(), AdamWConfig(weight_decay=0.1)
    half = Tied()
    half.load_state_dict(whole.state_dict())
    train(whole, adamw(whole, config), range(4))

    first = adamw(half, config)
    train(half, first, range(2))
    torch.save({"model": half.state_dict(), "optimizer": first.state_dict()}, tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    resumed = Tied()
    resumed.load_state_dict(state["model"])
    second = adamw(resumed, config)
    second.load_state_dict(state["optimizer"])
    train(resumed, second, range(2, 4))
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name


def test_muon_steps_linear_matrices_and_adamw_all_else():
    model = Tied()
    others, muon = MuonConfig(weight_decay=0.1).build(model)
    assert names_in(model, muon.param_groups[0]) == ["hidden.weight"]
    assert [names_in(model, group) for group in others.param_groups] == [
        [],
        ["embedding.weight", "norm.weight", "norm.bias", "hidden.bias", "output.bias"],
    ]
    assert muon.param_groups[0]["weight_decay"] == 0.1


def test_a_model_without_linear_layers_is_adamw_s_alone():
    assert [type(one) for one in MuonConfig().build(nn.Embedding(3, 2))] == [torch.optim.AdamW]


@pytest.mark.parametrize("shape", [(6, 6), (12, 4), (4, 12)])
def test_singular_values_become_about_one(shape):
    torch.manual_seed(0)
    found = torch.linalg.svdvals(orthogonalise(torch.randn(3, *shape), (3.4445, -4.7750, 2.0315), 5, 1e-7).float())
    assert float(found.min()) > 0.5  # between them, as the coefficients promise
    assert float(found.max()) < 1.35


def test_many_matrices_step_as_pytorch_s_muon_steps_each():
    torch.manual_seed(0)
    shapes = [(4, 4), (8, 4), (4, 8), (4, 4)]
    ours = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    theirs = [nn.Parameter(matrix.detach().clone()) for matrix in ours]
    mine = Muon(ours, momentum=0.9, weight_decay=0.1)
    reference = torch.optim.Muon(theirs, lr=0.05, momentum=0.9, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    mine.param_groups[0]["lr"] = 0.05
    for _ in range(3):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        mine.step()
        reference.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=2e-3)  # steps of 0.05 in bfloat16


@pytest.mark.parametrize("config", [AdamWConfig(weight_decay=0.1), AdamConfig(), MuonConfig(weight_decay=0.1)])
@pytest.mark.parametrize("earlier", [0, 1], ids=["first step", "second step"])
@pytest.mark.parametrize("finite", [True, False])
def test_a_step_that_is_not_waited_for_is_made_where_the_gradient_is_finite(config, earlier, finite):
    model = Tied()
    optimizers = config.build(model)
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["lr"] = 0.1

    def step(*, finite):
        model.zero_grad()
        model(torch.arange(7)).square().sum().backward()
        if not finite:
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad.fill_(torch.nan)
        for optimizer in optimizers:
            step_where(optimizer, torch.tensor(finite))

    for _ in range(earlier):
        step(finite=True)
    before = deepcopy((model.state_dict(), [optimizer.state_dict()["state"] for optimizer in optimizers]))
    step(finite=finite)
    moved = {name for name, one in model.named_parameters() if not one.equal(before[0][name])}
    assert moved == ({name for name, one in model.named_parameters() if one.requires_grad} if finite else set())
    if earlier and not finite:
        after = [optimizer.state_dict()["state"] for optimizer in optimizers]
        torch.testing.assert_close(after, before[1], rtol=0, atol=0)
