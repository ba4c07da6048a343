"""Time of Regardant's own training steps by part, from the operators that are profiled."""

import contextlib
import resource
import sys
import time
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from regardant_training import trainer_of
from serve import Driver
from torch.autograd.profiler_util import FunctionEvent
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile

WARM_UP, UPDATES = 6, 12

FUNCTIONS = {
    "attention": ("_MatmulAttention", "scaled_dot_product"),
    "dropout": ("_Dropout", "native_dropout", "bernoulli"),
    "loss": ("_ProjectedCrossEntropy", "cross_entropy"),
    "optimizer, clipping, average": ("Optimizer.step", "_foreach_", "linalg_vector_norm"),
}
"""Parts, with names of the functions that their operators run in. Backward functions are named after forward ones."""

OPERATORS = {
    "matmul": ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::matmul", "mkldnn"),
    "norms": ("layer_norm",),
    "copies and casts": ("aten::copy_", "_to_copy", "aten::to", "clone", "contiguous", "aten::cat", "index", "split"),
    "embedding": ("embedding",),
}
"""Parts, with names of their operators. All other operators are arithmetic between these."""

LEFT = "residuals, activations and the rest"


def part_of(names: list[str]) -> str:
    """Return the part of an event, from its own name and those of the events around it, the innermost first."""
    for name in names:
        for part, parts_of_names in FUNCTIONS.items():
            if any(one in name for one in parts_of_names):
                return part
    for part, parts_of_names in OPERATORS.items():
        if any(one in names[0] for one in parts_of_names):
            return part
    return LEFT


def names_around(event: FunctionEvent) -> list[str]:
    names = []
    around: FunctionEvent | None = event
    while around is not None:
        names.append(around.name)
        around = around.cpu_parent
    return names


class Enough(Exception):
    """Exception that ends the training."""


class Watch:
    """Hook that lets training warm up, then counts page faults over UPDATES updates, then profiles as many."""

    def __init__(self) -> None:
        self.updates = 0
        self.profile = profile(activities=[ProfilerActivity.CPU])
        register_optimizer_step_post_hook(self.after_update)

    def trained_on(self, tokens: int) -> None:
        """Do nothing: the profile counts no tokens."""

    def after_update(self, *optimizer_and_arguments: Any) -> None:
        self.updates += 1
        if self.updates == WARM_UP:
            self.begun, self.before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        elif self.updates == WARM_UP + UPDATES:
            self.seconds, self.after = time.perf_counter() - self.begun, resource.getrusage(resource.RUSAGE_SELF)
            self.profile.start()
            self.begun = time.perf_counter()
        elif self.updates == WARM_UP + 2 * UPDATES:
            self.profiled_seconds = time.perf_counter() - self.begun
            self.profile.stop()
            raise Enough

    def parts(self) -> dict[str, float]:
        """Return the profiled seconds of each part, the largest first."""
        seconds: dict[str, float] = defaultdict(float)
        for event in self.profile.events():
            seconds[part_of(names_around(event))] += event.self_cpu_time_total / 1e6
        seconds["outside of operators"] = self.profiled_seconds - sum(seconds.values())
        return dict(sorted(seconds.items(), key=lambda entry: -entry[1]))


def main() -> None:
    driver = Driver()
    watch = Watch()
    with TemporaryDirectory(prefix="regardant-") as run:
        trainer, decisions = trainer_of(Path(sys.argv[1]), sys.argv[2], Path(run), watch)
        with contextlib.suppress(Enough):
            trainer.fit()
    faults, system = (getattr(watch.after, field) - getattr(watch.before, field) for field in ("ru_minflt", "ru_stime"))
    driver.answer(
        versions={"torch": str(torch.__version__)},
        decided=decisions.as_dict(),
        updates=UPDATES,
        seconds=watch.seconds,
        profiled_seconds=watch.profiled_seconds,
        page_faults=faults,
        system_seconds=system,
        parts=watch.parts(),
        slowest=[
            (one.key, one.count, one.self_cpu_time_total / 1e6)
            for one in sorted(watch.profile.key_averages(), key=lambda one: -one.self_cpu_time_total)[:20]
        ],
    )


if __name__ == "__main__":
    main()
