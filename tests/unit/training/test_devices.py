import contextlib
import resource
import subprocess
import sys

import pytest
import torch

from regardant.errors import OutOfMemory
from regardant.training import devices
from regardant.training.devices import available_memory, memory_guard, require_memory, the_device
from regardant.training.strategies import make_fabric

GIB = 1 << 30

PLANS_WITH_LITTLE_MEMORY = """
import sys
from pathlib import Path
from regardant import config, run
from regardant.errors import OutOfMemory
from regardant.tasks.translation.config import TranslationConfig
from regardant.tasks.translation.task import Translation
from regardant.training import devices

overrides = ["model.d_ff=4096", "training.batch_tokens=80000", "data.train_size=10000", "training.max_updates=1"]
recipe = config.load(TranslationConfig, config.recipe("copy"), overrides)
Translation().prepare(recipe, Path(sys.argv[1]), print)  # reading and tokenising need more than the 200 MiB
devices.available_memory = lambda: 200 << 20
try:
    run.plan(recipe, Path(sys.argv[1]), print)
except OutOfMemory as error:
    print(error)
"""

RESIDENT_AFTER_FREED_BLOCKS = """
import resource
import torch
from regardant.training.devices import keep_freed_memory, return_freed_memory

def resident():
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * resource.getpagesize()

torch.ones(4)
return_freed_memory()
print(resident())
torch.ones(4 << 20)  # 16 MiB
print(resident())
keep_freed_memory()
torch.ones(4 << 20)
print(resident())
return_freed_memory()
print(resident())
"""


def test_the_device_is_the_accelerator_if_there_is_one():
    assert the_device().type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize(("precision", "dtype"), [("float32", torch.float32), ("bfloat16", torch.bfloat16)])
def test_fabric_multiplies_in_the_precision_and_keeps_weights_in_float32(precision, dtype):
    fabric, layer = make_fabric(precision), torch.nn.Linear(2, 2)
    model = fabric.setup(layer)
    assert fabric.device.type == the_device().type
    with fabric.autocast():
        assert layer(torch.ones(1, 2, device=fabric.device)).dtype == dtype
    assert next(model.parameters()).dtype == torch.float32


def test_available_memory_is_less_than_there_is():
    with open("/proc/meminfo", encoding="ascii") as lines:
        total = int(next(lines).split()[1]) * 1024
    assert 0 < available_memory() < total


def allocate_a_tensor():
    return torch.empty(2 * GIB, dtype=torch.uint8)


def allocate_bytes():
    return bytearray(2 * GIB)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("allocate", [allocate_a_tensor, allocate_bytes])
def test_running_out_of_memory_is_one_line_with_advice_before_the_system_kills(allocate, monkeypatch):
    monkeypatch.setattr(devices, "available_memory", lambda: GIB)
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(OutOfMemory) as error, memory_guard("the largest batch", "take less"):
        torch.empty(GIB // 4, dtype=torch.uint8)  # fits
        allocate()
    assert str(error.value) == "the largest batch does not fit into memory: take less"
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_other_errors_go_through_the_guard():
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(RuntimeError, match="must match"), memory_guard("the largest batch", "take less"):
        torch.ones(2) + torch.ones(3)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
def test_a_plan_whose_batch_does_not_fit_says_what_to_change(tmp_path):
    command = [sys.executable, "-c", PLANS_WITH_LITTLE_MEMORY, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()[-1]
    assert told.startswith("a batch does not fit into memory: ")
    assert "training.batch_tokens" in told and "training.accumulate" in told


@pytest.mark.skipif(sys.platform != "linux", reason="it is glibc that is told")
def test_freed_memory_is_returned_or_kept_as_told():
    """A new process is asked: an older heap has holes that blocks go into, and stay in, whatever it is told."""
    command = [sys.executable, "-c", RESIDENT_AFTER_FREED_BLOCKS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    before, returned, kept, trimmed = (int(size) / (1 << 20) for size in done.stdout.split())
    assert returned - before < 1
    assert kept - before > 15
    assert trimmed - before < 1


def test_what_a_container_has_read_counts_as_free(tmp_path):
    """The kernel keeps what was read from files until somebody needs the room."""
    for name, text in (("memory.max", "1000\n"), ("memory.current", "990\n")):
        (tmp_path / name).write_text(text, encoding="ascii")
    (tmp_path / "memory.stat").write_text("anon 90\ninactive_file 700\nactive_file 200\n", encoding="ascii")
    assert devices._left_in_group(tmp_path) == 910


def test_a_model_larger_than_memory_is_refused_before_it_is_allocated():
    built = []

    def build():
        built.append(torch.nn.Linear(1 << 20, 1 << 20, bias=False))
        return built[-1]

    with pytest.raises(OutOfMemory) as refusal:
        require_memory(build)
    assert str(refusal.value).startswith("1,099,511,627,776 parameters and their gradients take 8,192.0 GiB, and ")
    assert str(refusal.value).endswith(" GiB are free: take a smaller model")
    assert built[0].weight.is_meta


@pytest.mark.parametrize(("free", "fits"), [(1 << 20, True), ((1 << 20) - 1, False)])
def test_weights_and_gradients_have_to_fit(monkeypatch, free, fits):
    monkeypatch.setattr(devices, "available_memory", lambda: free)
    with contextlib.nullcontext() if fits else pytest.raises(OutOfMemory):
        require_memory(lambda: torch.nn.Linear(1 << 9, 1 << 8, bias=False))
