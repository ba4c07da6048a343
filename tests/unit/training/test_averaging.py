import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from torch import nn

from regardant.training.averaging import AveragingConfig, EmaConfig, LastConfig, NoAveragingConfig
from regardant.training.checkpoints import load_checkpoint, save_checkpoint

CONFIGS = [NoAveragingConfig(), EmaConfig(decay=0.9), LastConfig(count=3)]


def tied_model(dtype=torch.float32):
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 3), nn.Linear(3, 5))
    model[2].weight = model[0].weight
    return model.to(dtype)


@torch.no_grad()
def move(model, generator):
    for parameter in model.parameters():
        parameter += torch.randn(parameter.shape, generator=generator)


def bits(model):
    return [parameter.detach().clone() for parameter in model.parameters()]


def equal(ours, theirs):
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@given(values=st.lists(st.floats(-10, 10, width=32), min_size=1, max_size=30), decay=st.floats(0.05, 0.99))
@settings(deadline=None)
def test_ema_equals_its_closed_form(values, decay):
    model = nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(1.0)
    average = EmaConfig(decay=decay).build(model)
    for value in values:
        model.weight.data.fill_(value)
        average.update(model)
    # The sum of all weights seen, each times its own share and the decays that came after it.
    decays = [min(decay, (1 + n) / (10 + n)) for n in range(1, len(values) + 1)]
    expected, left = 0.0, 1.0
    for value, d in zip(reversed(values), reversed(decays), strict=True):
        expected += left * (1 - d) * value
        left *= d
    expected += left * 1.0
    with average.averaged(model):
        assert model.weight.item() == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_last_is_the_mean_of_the_last_snapshots():
    model = nn.Linear(1, 1, bias=False)
    average = LastConfig(count=3).build(model)
    for value in (100.0, 1.0, 2.0, 6.0):
        model.weight.data.fill_(value)
        average.snapshot(model)
        model.weight.data.fill_(-1.0)  # a snapshot is a copy
        average.update(model)
    with average.averaged(model):
        assert model.weight.item() == 3.0


@pytest.mark.parametrize("config", [NoAveragingConfig(), LastConfig()], ids=lambda config: config.kind)
def test_with_nothing_to_average_the_model_is_left_as_it_is(config):
    model = tied_model()
    own = bits(model)
    with config.build(model).averaged(model):
        assert equal(bits(model), own)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("config", CONFIGS[1:], ids=lambda config: config.kind)
def test_the_model_gets_its_own_weights_back_bit_for_bit(config, dtype):
    model, generator = tied_model(dtype), torch.Generator().manual_seed(0)
    average = config.build(model)
    for _ in range(4):
        move(model, generator)
        average.update(model)
        average.snapshot(model)
    model[1].bias.data[0] = torch.nan  # a mean would spread it
    own = [parameter.view(torch.uint8) for parameter in bits(model)]
    with pytest.raises(KeyboardInterrupt), average.averaged(model):
        assert not equal([parameter.view(torch.uint8) for parameter in bits(model)], own)
        assert model[2].weight is model[0].weight
        raise KeyboardInterrupt
    assert equal([parameter.view(torch.uint8) for parameter in bits(model)], own)


def test_ema_of_bfloat16_weights_moves_by_less_than_bfloat16_can_tell():
    model = nn.Linear(1, 1, bias=False).to(torch.bfloat16)
    model.weight.data.fill_(1.0)
    average = EmaConfig(decay=0.999).build(model)
    average.updates = 100_000  # past the warm-up of the decay
    model.weight.data.fill_(2.0)
    for _ in range(700):
        average.update(model)
    assert average.weights()[0].item() == pytest.approx(2 - 0.999**700, rel=1e-3)


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_a_tied_weight_is_averaged_once(config):
    model = tied_model()
    average = config.build(model)
    average.update(model)
    average.snapshot(model)
    assert len(average.weights() or list(model.parameters())) == 4


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_resuming_from_a_checkpoint_changes_nothing(config, tmp_path):
    def train(model, average, steps):
        for step in steps:
            move(model, torch.Generator().manual_seed(step))
            average.update(model)
            if step % 2:
                average.snapshot(model)

    torch.manual_seed(0)
    whole = tied_model()
    half = tied_model()
    half.load_state_dict(whole.state_dict())
    uninterrupted, first = config.build(whole), config.build(half)
    train(whole, uninterrupted, range(12))
    train(half, first, range(7))
    path = save_checkpoint(tmp_path, {"model": half.state_dict(), "average": first.state_dict()}, update=7, keep=1)

    state, resumed = load_checkpoint(path), tied_model()
    resumed.load_state_dict(state["model"])
    second = config.build(resumed)
    second.load_state_dict(state["average"])
    train(resumed, second, range(7, 12))
    with uninterrupted.averaged(whole), second.averaged(resumed):
        assert equal(bits(resumed), bits(whole))


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.kind)
def test_kind_tells_averages_apart(config):
    assert TypeAdapter(AveragingConfig).validate_python(config.model_dump()) == config
