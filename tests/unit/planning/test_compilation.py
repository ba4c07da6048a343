import pytest
import torch

from regardant import run
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.planning.compilation import compiled, compiling_pays
from regardant.planning.probes import Decisions
from tests.models import over_pairs

CPU = torch.device("cpu")


@pytest.fixture
def model():
    torch.manual_seed(0)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "dropout": 0.3}
    stacks = {"encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}}
    return over_pairs(EncoderDecoderConfig(preset=None, **sizes, **stacks), 30).train()


@pytest.fixture
def decisions():
    return Decisions("float32", "sdpa", torch.get_num_threads())


@pytest.mark.parametrize(
    ("fused", "word"), [(0.1, "compiled in 9 s"), (0.3, "compiled in 9 s: training goes on without it")]
)
def test_what_is_compiled_is_trained_through_where_it_is_faster(model, decisions, fused, word):
    said, seconds = [], iter([9.0, 0.2, *[fused, 0.2] * 3])
    assert compiling_pays(model, lambda processes, through=None: next(seconds), decisions, CPU, said.append) is (
        fused < 0.2
    )
    assert said[-1] == f"torch.compile: {1000 * fused:.0f} ms a step for 200 without it, {word}"


def test_what_cannot_be_compiled_is_told_in_one_line_and_trained_without(model, decisions):
    def train_step(processes, through=None):
        if through is not None:
            raise RuntimeError("no compiler\nand a long story")
        return 0.1

    said = []
    assert not compiling_pays(model, train_step, decisions, CPU, said.append)
    assert said[-1] == "torch.compile failed (RuntimeError: no compiler): training goes on without it"


@pytest.mark.slow  # it traces the whole model before it needs the compiler
def test_a_run_without_a_compiler_says_so_and_trains(configure, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/g++")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    said = []
    outcome = run.train(configure("training.compile=true", "training.max_updates=2"), tmp_path / "run", said.append)
    assert outcome.finished
    assert any(line.startswith("torch.compile failed") for line in said)
    assert not run.Record.read(tmp_path / "run").decided.compiled


@pytest.mark.slow  # compiling takes a minute
@pytest.mark.filterwarnings("ignore::UserWarning")  # the compiler reads gradients of what is no leaf
def test_gradients_and_dropout_are_what_they_are_without(model):
    through = compiled(model)
    for update, length in enumerate((5, 9, 7)):
        model.dropout_key.update = update
        source, target = torch.randint(5, 30, (4, length)), torch.randint(5, 30, (4, length + 1))
        gradients = []
        for one in (model, through):
            model.zero_grad()
            one(source=source, target=target[:, :-1], targets=target[:, 1:]).total.backward()
            gradients.append([parameter.grad.clone() for parameter in model.parameters()])
        for mine, other in zip(*gradients, strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)  # sums in another order
