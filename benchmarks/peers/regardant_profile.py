"""Time of Regardant's own training steps by part, from the operators that are profiled."""

import contextlib
import resource
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from profile_parts import PRODUCTS, Parts, slowest
from regardant_training import trainer_of
from serve import Driver
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile

WARM_UP, UPDATES = 6, 12

TRAINING = Parts(
    functions={
        "attention": ("_MatmulAttention", "_NarrowAttention", "scaled_dot_product"),
        "dropout, some with ReLU": ("_Dropout", "_ReluAndDropout", "native_dropout", "bernoulli"),
        "loss": ("_ProjectedCrossEntropy", "cross_entropy"),
        "optimizer, clipping, average": ("Optimizer.step", "_foreach_", "linalg_vector_norm"),
    },
    operators={
        "matmul": PRODUCTS,
        "norms": ("layer_norm",),
        "copies and casts": ("copy_", "_to_copy", "aten::to", "clone", "contiguous", "aten::cat", "index", "split"),
        "embedding": ("embedding",),
    },
    left="residuals, activations and the rest",
)


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
        parts=TRAINING.seconds(watch.profile, watch.profiled_seconds),
        slowest=slowest(watch.profile),
    )


if __name__ == "__main__":
    main()
