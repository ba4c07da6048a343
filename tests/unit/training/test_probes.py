import json

import pytest
import torch

from regardant.attention import KERNELS, ScaledDotProduct
from regardant.errors import ConfigError
from regardant.models.config import EncoderDecoderConfig
from regardant.models.encoder_decoder import EncoderDecoder
from regardant.training import probes
from regardant.training.config import TrainingConfig
from regardant.training.probes import SIMPLEST_KERNEL_FIRST, Decisions, decide, divide, use_kernel

CPU = torch.device("cpu")
ALL = {f"{precision}/{kernel}" for precision in ("float32", "bfloat16") for kernel in SIMPLEST_KERNEL_FIRST}


class Clock:
    """Stands where time is read, so that no other load of the machine decides a test."""

    now = 0.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


CLOCK = Clock()


@pytest.fixture(autouse=True)
def a_machine_that_multiplies_bfloat16(monkeypatch):
    monkeypatch.setattr(probes, "time", CLOCK)
    monkeypatch.setattr(probes, "multiplies_bfloat16", lambda device: True)


@pytest.fixture
def model():
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 8}
    stacks = {"encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}}
    return EncoderDecoder(EncoderDecoderConfig(preset=None, **sizes, **stacks), 9, 9)


def kernels_of(model):
    found = [module.kernel for module in model.modules() if isinstance(module, ScaledDotProduct)]
    assert len(found) == 3  # encoder, decoder, cross-attention
    return set(found)


def running(model):
    """The precision and the kernel in use."""
    precision = "bfloat16" if torch.is_autocast_enabled("cpu") else "float32"
    (kernel,) = kernels_of(model)
    return next(f"{precision}/{name}" for name, known in KERNELS.items() if known is kernel)


def asking(**fields):
    return TrainingConfig(max_updates=1, **fields)


def decide_where_one_is_fast(model, fast, **asked):
    """Every candidate but `fast` takes ten milliseconds."""
    return decide(model, lambda: CLOCK.sleep(0 if running(model) == fast else 0.01), asking(**asked), CPU)


@pytest.mark.parametrize("fast", sorted(ALL))
def test_the_fastest_precision_and_kernel_are_taken(model, fast):
    decided = decide_where_one_is_fast(model, fast)
    assert f"{decided.precision}/{decided.kernel}" == fast
    assert decided.seconds.keys() == ALL
    assert min(decided.seconds, key=decided.seconds.get) == fast


def test_what_would_have_to_be_converted_is_not_tried(model, monkeypatch):
    monkeypatch.setattr(probes, "multiplies_bfloat16", lambda device: False)
    decided = decide_where_one_is_fast(model, "float32/sdpa")
    assert decided.precision == "float32"
    assert decided.seconds.keys() == {"float32/matmul", "float32/sdpa"}


def test_a_near_tie_goes_to_the_simplest_so_that_two_runs_decide_alike(model):
    asked = asking(precision="float32")
    decided = decide(model, lambda: CLOCK.sleep(0.02 if running(model).endswith("sdpa") else 0.021), asked, CPU)
    assert decided.kernel == "matmul"


def test_a_precision_that_was_asked_for_is_the_only_one_timed(model):
    decided = decide_where_one_is_fast(model, "float32/sdpa", precision="bfloat16")
    assert decided.precision == "bfloat16"
    assert all(name.startswith("bfloat16/") for name in decided.seconds)


def test_a_kernel_that_was_asked_for_is_the_only_one_timed(model):
    decided = decide_where_one_is_fast(model, "float32/matmul", attention_kernel="sdpa")
    assert decided.kernel == "sdpa"
    assert decided.seconds.keys() == {"float32/sdpa", "bfloat16/sdpa"}


def test_where_both_are_asked_for_nothing_is_timed(model):
    decided = decide_where_one_is_fast(model, None, precision="bfloat16", attention_kernel="matmul")
    assert (decided.precision, decided.kernel, decided.seconds) == ("bfloat16", "matmul", {})


def test_an_accelerator_is_not_timed(model):
    steps = []
    decided = decide(model, lambda: steps.append(1), asking(), torch.device("cuda"))
    assert (decided.precision, decided.kernel, steps) == ("bfloat16", "sdpa", [])
    assert decide(model, lambda: None, asking(precision="float32"), torch.device("cuda")).precision == "float32"


def divide_where_a_part_takes(seconds, *, threads=2, device=CPU, **asked):
    """A whole batch takes 20 milliseconds."""

    def train_step(parts):
        assert torch.get_num_threads() == max(1, before // parts)
        CLOCK.sleep(0.02 if parts == 1 else seconds)

    before = torch.get_num_threads()
    decided = divide(Decisions("float32", "matmul", threads), train_step, TrainingConfig(**asked), 100, device)
    assert torch.get_num_threads() == before
    return decided


def test_a_batch_is_divided_among_processes_where_that_is_faster():
    decided = divide_where_a_part_takes(0.01, max_minutes=10)
    assert decided.processes == 2
    assert decided.seconds["2 processes"] == pytest.approx(0.011, rel=0.3)
    assert "2 threads in 2 processes" in decided.told()


def test_a_near_tie_is_trained_in_one_process():
    assert divide_where_a_part_takes(0.0175, max_minutes=10).processes == 1


@pytest.mark.parametrize("budget", [{"max_updates": 100}, {"max_epochs": 1}, {"max_minutes": 0.9}])
def test_a_short_training_is_not_worth_another_process(budget):
    assert divide_where_a_part_takes(0.0, **budget).processes == 1


def test_minutes_still_to_be_chosen_are_not_short():
    assert divide_where_a_part_takes(0.0, max_minutes="auto").processes == 2


def test_one_thread_is_not_divided():
    assert divide_where_a_part_takes(0.0, threads=1, max_minutes=10).processes == 1


def test_processes_that_were_asked_for_are_taken_untimed():
    decided = divide_where_a_part_takes(9.0, max_updates=1, processes=3)
    assert (decided.processes, decided.seconds) == (3, {})


def test_an_accelerator_has_one_process():
    cuda = torch.device("cuda")
    assert divide_where_a_part_takes(0.0, device=cuda, max_minutes=10).processes == 1
    with pytest.raises(ConfigError, match=r"^training.processes divides the cores of a CPU, .*: leave it out$"):
        divide_where_a_part_takes(0.0, device=cuda, max_minutes=10, processes=2)


@pytest.mark.parametrize("kernel", KERNELS)
def test_all_attention_of_a_model_uses_the_kernel(model, kernel):
    use_kernel(model, kernel)
    assert kernels_of(model) == {KERNELS[kernel]}


def test_decisions_are_applied_and_come_back_from_run_yaml(model):
    decided = Decisions("float32", "matmul", torch.get_num_threads(), {"float32/matmul": 0.0125})
    again = Decisions.from_dict(json.loads(json.dumps(decided.as_dict())))
    assert again == decided
    again.apply(model)
    assert kernels_of(model) == {KERNELS["matmul"]}
    assert torch.get_num_threads() == decided.threads


def test_decisions_are_told_in_a_line():
    told = Decisions("float32", "matmul", 2, {"float32/sdpa": 0.02, "float32/matmul": 0.0124}).told()
    assert "float32" in told and "matmul" in told and "2 threads" in told and "12 ms" in told
    assert "\n" not in told
    assert "measured" not in Decisions("bfloat16", "sdpa", 1).told()
