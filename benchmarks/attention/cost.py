"""Time and memory, forward and backward, of every efficient attention, of exact attention and of residuals."""

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch
from torch import Tensor

from regardant.attention import KERNELS, Attention, AttentionConfig, ScaledDotProductConfig, View, scaled_dot_product
from regardant.attention.cosine import CosineAttentionConfig
from regardant.attention.linear import LinearAttentionConfig
from regardant.attention.linformer import LinformerConfig
from regardant.attention.lsh import LSHConfig
from regardant.attention.performer import PerformerConfig
from regardant.attention.segment import SegmentConfig
from regardant.attention.sparse import SparseConfig
from regardant.attention.strided import StridedConfig
from regardant.attention.window import WindowConfig
from regardant.layers.dropout import share_key
from regardant.models import EncoderDecoderConfig
from regardant.models.stacks import Encoder
from regardant.models.vectors import Vectors
from regardant.training.devices import keep_freed_memory

from .peak_memory import in_a_fresh_process, peak_over_inputs

NUM_HEADS, HEAD_SIZE = 8, 64
LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
LONGEST = LENGTHS[-1]

MECHANISMS: dict[str, AttentionConfig] = {
    "sdpa": ScaledDotProductConfig(),
    "matmul": ScaledDotProductConfig(),
    "cosine": CosineAttentionConfig(),
    "window": WindowConfig(window=256),
    "strided": StridedConfig(),
    "sparse": SparseConfig(),
    "segment": SegmentConfig(),
    "linear": LinearAttentionConfig(),
    "performer": PerformerConfig(),
    "linformer": LinformerConfig(max_length=LONGEST),
    "lsh": LSHConfig(),
}
EXACT = ("sdpa", "matmul")
"""Exact attention by PyTorch's flash kernel, and with its matrix in memory."""

NO_ESTIMATE = (*EXACT, "cosine")
"""Mechanisms without an error: exact attention, and another function of queries and keys altogether."""

LONGEST_MATRIX = 4096
"""Longest length in tokens of matmul: half a GiB a matrix, four of them at once."""

scaled_dot_product.LONGEST_MATMUL = LONGEST_MATRIX  # here sdpa must not replace it

TINY = 256
"""Tokens of the run that warms up a process."""

RESIDUAL_LAYERS = {"reversible": 12, "add": 3}
"""Number of layers that are compared, by kind of residual."""
RESIDUAL_TOKENS, RESIDUAL_LENGTH, D_MODEL = 4096, 1024, 256


@dataclass
class Measured:
    """Measurements of one mechanism, with or without the causal mask."""

    name: str
    causal: bool
    seconds: dict[int, float] = field(default_factory=dict)
    """Median seconds of forward and backward, by length in tokens."""
    mebibytes: dict[int, float] = field(default_factory=dict)
    """Peak MiB of forward and backward beyond q, k, v and the gradient of the output, by length in tokens."""

    @property
    def case(self) -> str:
        return f"{self.name}, causal" if self.causal else self.name

    def lengths(self, lengths: Iterable[int]) -> list[int]:
        """Return the lengths that the mechanism is measured at."""
        return [length for length in lengths if self.name != "matmul" or length <= LONGEST_MATRIX]


def cases() -> list[Measured]:
    """Return every mechanism, and again with the causal mask if it supports one."""
    return [
        Measured(name, causal)
        for name in MECHANISMS
        for causal in (False, True)
        if not causal or "causal" in build(name).honours
    ]


def build(name: str) -> Attention:
    torch.manual_seed(0)
    attention: Any = MECHANISMS[name].build(num_heads=NUM_HEADS, head_size=HEAD_SIZE)
    if name in EXACT:
        attention.kernel = KERNELS[name]
    return attention


def draw(length: int) -> list[Tensor]:
    """Return q, k and v of unit variance and the gradient of the output, each [1, H, n, D]."""
    generator = torch.Generator().manual_seed(length)
    shape = (1, NUM_HEADS, length, HEAD_SIZE)
    *inputs, gradient = (torch.randn(shape, generator=generator) for _ in range(4))
    return [*(x.requires_grad_() for x in inputs), gradient]


def step(attention: Attention, tensors: list[Tensor], causal: bool) -> tuple[Tensor, ...]:
    """Run forward and backward. Return the output, and the gradients of q, k, v and of the parameters."""
    *inputs, gradient = tensors
    mixed = attention(*inputs, View(causal=causal))
    return mixed, *torch.autograd.grad(mixed, (*inputs, *attention.parameters()), gradient)


def measure_time(measured: list[Measured], lengths: list[int]) -> None:
    """Time round after round over all mechanisms, so that other load on the machine affects all alike."""
    keep_freed_memory()  # as in training
    mechanisms = {name: build(name) for name in MECHANISMS}
    for length in lengths:
        tensors = draw(length)
        here = [one for one in measured if length in one.lengths(lengths)]
        taken: dict[str, list[float]] = {one.case: [] for one in here}
        for number in range(1 + _repeats(length)):  # the first is the warm-up
            for one in here:
                start = time.perf_counter()
                step(mechanisms[one.name], tensors, one.causal)
                if number:
                    taken[one.case].append(time.perf_counter() - start)
        for one in here:
            one.seconds[length] = median(taken[one.case])
        progress(f"timed {length:,} tokens")


def _repeats(length: int) -> int:
    return 5 if length <= 4096 else 3


def measure_memory(measured: list[Measured], lengths: list[int]) -> None:
    """Measure the peak memory at each length, each in a process of its own."""
    for one in measured:
        for length in one.lengths(lengths):
            one.mebibytes[length] = in_a_fresh_process(peak, one.name, one.causal, length) / 2**20
        progress(f"memory of {one.case}")


def peak(name: str, causal: bool, length: int) -> int:
    """Return the peak bytes of one mechanism at one length in tokens."""
    attention = build(name)

    def prepare() -> Any:
        tensors = draw(length)
        return lambda: step(attention, tensors, causal)

    return peak_over_inputs(lambda: step(attention, draw(TINY), causal), prepare)


def measure_residuals() -> dict[str, Any]:
    """Return the MiB of activations of a training step by kind of residual, and the ratio of the two kinds."""
    found = {kind: in_a_fresh_process(residual_peak, kind, layers) / 2**20 for kind, layers in RESIDUAL_LAYERS.items()}
    return {
        "d_model": D_MODEL,
        "tokens": RESIDUAL_TOKENS,
        "mebibytes": {f"{RESIDUAL_LAYERS[kind]} layers, {kind}": value for kind, value in found.items()},
        "ratio": found["reversible"] / found["add"],
    }


def residual_peak(kind: str, num_layers: int) -> int:
    """Return the peak bytes of a training step of one encoder."""
    config = EncoderDecoderConfig.model_validate(
        {
            "preset": None,
            "d_model": D_MODEL,
            "num_heads": 4,
            "d_ff": 4 * D_MODEL,
            "dropout": 0.1,
            "residual": kind,
            "max_length": RESIDUAL_LENGTH,
            "encoder": {"num_layers": num_layers},
        }
    )
    positions = config.build_positions(RESIDUAL_LENGTH, causal=False)
    encoder = Encoder(config, config.encoder, positions, RESIDUAL_LENGTH)
    share_key(encoder)

    def prepare(length: int = RESIDUAL_LENGTH) -> Any:
        x = torch.randn(RESIDUAL_TOKENS // RESIDUAL_LENGTH, length, D_MODEL, requires_grad=True)
        gradient, real = torch.randn_like(x), torch.ones(x.shape[:2], dtype=torch.bool)
        return lambda: encoder(Vectors(x, real)).values.backward(gradient)

    # The warm-up run allocates the gradients of the weights, which are no activations; later ones are added to them.
    return peak_over_inputs(prepare(TINY // 8), prepare)


def progress(text: str) -> None:
    """Print progress to stderr."""
    print(text, file=sys.stderr, flush=True)
