import json

import pytest
import torch

from regardant.attention import KERNELS, ScaledDotProduct
from regardant.errors import ConfigError
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.planning import probes
from regardant.planning.probes import HINDRANCE, SIMPLEST_KERNEL_FIRST, Decisions, Steps, decide, use_kernel
from regardant.training.config import TrainingConfig
from tests.models import over_pairs

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
    return over_pairs(EncoderDecoderConfig(preset=None, **sizes, **stacks), 9)


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
    return TrainingConfig.model_validate({"max_minutes": 10, **fields})


def decided_where(model, seconds, *, threads=2, device=CPU, **asked):
    """A step takes `seconds` of what runs and how many processes share a batch; by default it stays in one process."""

    def train_step(processes):
        assert torch.get_num_threads() == max(1, threads // processes)
        CLOCK.sleep(seconds(running(model), processes))

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        decided = decide(Steps(model, train_step, device), asking(**{"processes": 1, **asked}), 100)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    return decided


def only(fast):
    """Everything but `fast` takes ten milliseconds."""
    return lambda way, processes: 0.001 if way == fast else 0.01


@pytest.mark.parametrize("fast", sorted(ALL))
def test_the_fastest_precision_and_kernel_are_taken(model, fast):
    decided = decided_where(model, only(fast))
    assert f"{decided.precision}/{decided.kernel}" == fast
    assert decided.seconds.keys() == ALL
    assert min(decided.seconds, key=decided.seconds.get) == fast


def test_a_step_that_something_else_held_up_does_not_decide(model):
    """Two of three are slow; ways are timed in turn, so that each has its share of what comes between."""
    steps = []

    def seconds(way, processes):
        steps.append(way)
        held_up = way == "bfloat16/matmul" and steps.count(way) in (2, 4)
        return 1.0 if held_up else 0.01 if way == "bfloat16/matmul" else 0.02

    decided = decided_where(model, seconds, attention_kernel="matmul")
    assert decided.precision == "bfloat16"
    assert steps == ["float32/matmul", "bfloat16/matmul"] * 4


def test_measuring_ends_when_its_time_is_over_and_is_announced_if_it_is_long(model):
    made, said = [], []

    def train_step(processes):
        made.append(running(model))
        CLOCK.sleep(7.0 if made[-1] == "bfloat16/sdpa" else 8.0)

    steps = Steps(model, train_step, CPU, CLOCK.now + 40, said.append)
    decided = decide(steps, asking(processes=1), 100)
    assert steps.without_cold(decided.seconds) == decided.seconds
    assert len(made) == 2 * len(ALL) and made[: len(ALL)] == made[len(ALL) :]  # warming up, and the round begun in time
    assert (decided.precision, decided.kernel) == ("bfloat16", "sdpa")
    counted = [f"measuring ways of computing a step: {number} of 4" for number in (2, 3, 4)]
    assert said == [*counted, "measuring 4 ways of computing a step: about 9 s"]
    made.clear()
    steps = Steps(model, train_step, CPU, CLOCK.now, said.append)
    decided = decide(steps, asking(processes=1), 100)
    assert decided.kernel == "sdpa" and steps.without_cold({**decided.seconds, "other": 1.0}) == {"other": 1.0}
    assert len(made) == len(ALL) and said[4:] == counted


def test_measuring_takes_a_share_of_the_minutes_of_a_training():
    assert probes.time_to_measure(asking(max_minutes=10)) == 20
    assert probes.time_to_measure(asking(max_minutes=60)) == 120
    assert probes.time_to_measure(asking(max_minutes="auto")) == 20
    assert probes.time_to_measure(asking(max_minutes=None, max_updates=9)) == 20


def test_the_least_of_three_is_taken_and_of_one_when_time_is_over():
    found = iter([5.0, 3.0, 4.0, 9.0])
    assert probes.least(found.__next__, CLOCK.now + 1) == 3
    assert probes.least(found.__next__, CLOCK.now) == 9


def test_what_would_have_to_be_converted_is_not_tried(model, monkeypatch):
    monkeypatch.setattr(probes, "multiplies_bfloat16", lambda device: False)
    decided = decided_where(model, only("float32/sdpa"))
    assert decided.precision == "float32"
    assert decided.seconds.keys() == {"float32/matmul", "float32/sdpa"}


def test_a_near_tie_goes_to_the_simplest_so_that_two_runs_decide_alike(model):
    decided = decided_where(model, lambda way, _: 0.02 if way.endswith("sdpa") else 0.0205, precision="float32")
    assert decided.kernel == "matmul"


def test_a_precision_that_was_asked_for_is_the_only_one_timed(model):
    decided = decided_where(model, only("float32/sdpa"), precision="bfloat16")
    assert decided.precision == "bfloat16"
    assert all(name.startswith("bfloat16/") for name in decided.seconds)


def test_a_kernel_that_was_asked_for_is_the_only_one_timed(model):
    decided = decided_where(model, only("float32/matmul"), attention_kernel="sdpa")
    assert decided.kernel == "sdpa"
    assert decided.seconds.keys() == {"float32/sdpa", "bfloat16/sdpa"}


def test_where_all_is_asked_for_nothing_is_timed(model):
    decided = decided_where(model, only(None), precision="bfloat16", attention_kernel="matmul")
    assert (decided.precision, decided.kernel, decided.seconds) == ("bfloat16", "matmul", {})


def test_an_accelerator_is_not_timed_and_has_one_process(model):
    cuda = torch.device("cuda")
    decided = decided_where(model, None, device=cuda, processes="auto")
    assert (decided.precision, decided.kernel, decided.processes) == ("bfloat16", "sdpa", 1)
    assert decided_where(model, None, device=cuda, precision="float32").precision == "float32"
    with pytest.raises(ConfigError, match=r"^training.processes divides the cores of a CPU, .*: leave it out$"):
        decided_where(model, None, device=cuda, processes=2)


ONE = {"precision": "float32", "attention_kernel": "matmul", "processes": "auto"}


def part_takes(seconds):
    """A whole batch takes 20 milliseconds."""
    return lambda way, processes: 0.02 if processes == 1 else seconds


def test_a_batch_is_divided_among_processes_where_that_is_faster(model):
    decided = decided_where(model, part_takes(0.01), **ONE)
    assert decided.processes == 2
    assert decided.seconds["float32/matmul in 2 processes"] == pytest.approx(0.01 * HINDRANCE)
    assert "2 threads in 2 processes" in decided.summary()


def test_a_precision_that_gains_by_dividing_is_found_though_the_other_is_faster_alone(model):
    def seconds(way, processes):
        return 0.02 if way.startswith("float32") else 0.022 if processes == 1 else 0.011

    decided = decided_where(model, seconds, processes="auto")
    assert (decided.precision, decided.processes) == ("bfloat16", 2)
    divided = {name for name in decided.seconds if "processes" in name}
    assert divided == {"float32/matmul in 2 processes", "bfloat16/matmul in 2 processes"}


def test_a_near_tie_is_trained_in_one_process(model):
    assert decided_where(model, part_takes(0.0178), **ONE).processes == 1


@pytest.mark.parametrize("budget", [{"max_updates": 100}, {"max_epochs": 1}, {"max_minutes": 0.9}])
def test_a_short_training_is_not_worth_another_process(model, budget):
    assert decided_where(model, part_takes(0.001), **ONE, **budget).processes == 1


def test_minutes_still_to_be_chosen_are_not_short(model):
    assert decided_where(model, part_takes(0.001), **ONE, max_minutes="auto").processes == 2


def test_one_thread_is_not_divided(model):
    assert decided_where(model, part_takes(0.001), threads=1, **ONE).processes == 1


def test_processes_that_were_asked_for_are_taken_and_precisions_timed_as_they_will_run(model):
    decided = decided_where(model, part_takes(9.0), **{**ONE, "processes": 3})
    assert (decided.processes, decided.seconds) == (3, {})
    decided = decided_where(model, only("bfloat16/sdpa"), processes=2)
    assert (decided.precision, decided.processes) == ("bfloat16", 2)
    assert all(name.endswith(" in 2 processes") for name in decided.seconds)


def test_what_was_measured_before_is_not_timed_and_decides_the_same(model):
    first = decided_where(model, part_takes(0.0123456), **ONE)
    steps = Steps(model, lambda processes: pytest.fail("timed"), CPU, known=first.seconds)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert decide(steps, asking(**ONE), 100) == first
    finally:
        torch.set_num_threads(before)


def test_a_candidate_without_a_known_time_has_all_of_its_round_timed(model):
    timed = []
    steps = Steps(model, lambda processes: timed.append(running(model)), CPU, known={"float32/matmul": 1e-9})
    decide(steps, asking(processes=1, precision="float32"), 100)
    assert set(timed) == {"float32/matmul", "float32/sdpa"}


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
    told = Decisions("float32", "matmul", 2, {"float32/sdpa": 0.02, "float32/matmul": 0.0124}).summary()
    assert "float32" in told and "matmul" in told and "2 threads" in told and "12 ms" in told
    assert "\n" not in told
    assert "measured" not in Decisions("bfloat16", "sdpa", 1).summary()
