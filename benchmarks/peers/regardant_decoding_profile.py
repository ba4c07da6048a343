"""Time of Regardant's own search on one core by part, from the operators that are profiled.

Arguments: the run, the sentences, the precision of matrix products (float32 or bfloat16).
"""

import sys
import time
from typing import Any

import torch
from decoding_loop import Translate, sentences
from profile_parts import PRODUCTS, Parts, slowest
from regardant_decoding import translating
from serve import Driver
from torch.profiler import ProfilerActivity, profile

DECODING = Parts(
    functions={"attention": ("scaled_dot_product",)},
    operators={
        "products": PRODUCTS,
        "log-softmax": ("softmax", "logsumexp"),
        "choice of continuations": ("topk", "max", "sort"),
        "moved keys, beams and sentences": ("index", "gather", "copy", "cat", "clone", "contiguous"),
        "norms": ("layer_norm",),
        "embedding": ("embedding",),
    },
    left="residuals, masks and the rest",
)


def time_search(translate: Translate, sources: list[list[int]], request: dict[str, Any]) -> float:
    """Translate the batches of a request and return the seconds that it took."""
    start = time.perf_counter()
    for batch in request["batches"]:
        translate([sources[index] for index in batch], request)
    return time.perf_counter() - start


def main() -> None:
    driver, sources = Driver(), sentences()
    torch.set_num_threads(1)
    translate = translating(sys.argv[3], workers=1)
    driver.answer(versions={"torch": str(torch.__version__)})
    for request in driver.requests():
        time_search(translate, sources, request)  # kernels are compiled and memory is mapped
        seconds = time_search(translate, sources, request)
        with profile(activities=[ProfilerActivity.CPU]) as profiled:
            profiled_seconds = time_search(translate, sources, request)
        driver.answer(
            sentences=sum(map(len, request["batches"])),
            seconds=seconds,
            profiled_seconds=profiled_seconds,
            parts=DECODING.seconds(profiled, profiled_seconds),
            slowest=slowest(profiled),
        )


if __name__ == "__main__":
    main()
