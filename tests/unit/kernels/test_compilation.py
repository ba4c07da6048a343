import re

import pytest

from . import compiled

pytestmark = pytest.mark.xdist_group("kernels")

SHARED_BYTES = {80: 166_912, 90: 232_448}
"""Most that a block may take, of NVIDIA's A100 and H100 (CUDA C++ Programming Guide, table of compute capabilities)."""

NARROW, WIDE = "*bf16", "*fp32"


def attention(num_keys, head_size, *, causal, masked):
    tensors = ("q", "k", "v", "mixed", "gradient", "to_q", "to_k", "to_v")
    sizes = {"D": head_size, "E": head_size, "BLOCK_D": head_size, "BLOCK_E": head_size}
    blocks = {"BLOCK_Q": min(num_keys, 64), "BLOCK_K": num_keys, "CAUSAL": causal, "MASKED": masked}
    absent = {} if masked else {"real": None}
    return dict.fromkeys(tensors, NARROW) | {"real": "*i1", "scale": "fp32"}, sizes | blocks | absent


def residual(*, drops, adds):
    wide = dict.fromkeys(("x", "weight", "bias", "added", "mean", "inverse", "to_added", "to_x"), WIDE)
    sums = {"sums": WIDE, "seed": "i64", "eps": "fp32", "factor": "fp32"}
    absent = {} if adds else {"to_added": None}
    narrow = {"written": NARROW, "normed": NARROW, "to_written": NARROW, "to_normed": NARROW}
    return wide | sums | narrow, {"BLOCK": 1024, "DROPS": drops, "ADDS": adds} | absent


def cross_entropy(*, gradient):
    types = {"logits": NARROW, "right": "*i64", "normaliser": WIDE, "at_right": WIDE}
    return types | {"share": "fp32", "twice_z": "fp32"}, {"GRADIENT": gradient, "BLOCK": 4096}


def feed_forward(*, drops):
    tensors = dict.fromkeys(("x", "result", "gradient", "to_x"), NARROW)
    return tensors | {"seed": "i64", "factor": "fp32"}, {"DROPS": drops, "BLOCK": 4096}


ATTENTION, RESIDUAL, RELU = (
    tuple(f"_{part}_{way}" for way in ("forward", "backward")) for part in ("attention", "residual", "relu")
)

CASES = {
    "attention, short": ("attention", ATTENTION, *attention(32, 64, causal=True, masked=False)),
    "attention, largest": ("attention", ATTENTION, *attention(128, 128, causal=True, masked=True)),
    "residual, pre": ("residual", RESIDUAL, *residual(drops=True, adds=True)),
    "residual, post": ("residual", RESIDUAL, *residual(drops=False, adds=False)),
    "loss": ("cross_entropy", ("_normalise",), *cross_entropy(gradient=True)),
    "validation": ("cross_entropy", ("_normalise",), *cross_entropy(gradient=False)),
    "feed-forward": ("feed_forward", RELU, *feed_forward(drops=True)),
    "feed-forward, without dropout": ("feed_forward", RELU, *feed_forward(drops=False)),
}


@pytest.mark.parametrize("capability", SHARED_BYTES)
@pytest.mark.parametrize("case", CASES)
def test_an_accelerator_can_run_it(compile_kernel, case, capability):
    module, names, types, constants = CASES[case]
    for name in names:
        assert (
            compile_kernel(compiled.shared_bytes, module, name, types, constants, capability)
            <= SHARED_BYTES[capability]
        )


@pytest.mark.parametrize("capability", SHARED_BYTES)
def test_the_activation_uses_no_maximum_that_turns_nan_into_zero(compile_kernel, capability):
    """NVIDIA's max.f32 does; the interpreter's maximum does not, so that only compiled code shows it."""
    module, (forward, _), types, constants = CASES["feed-forward"]
    code = compile_kernel(compiled.assembly, module, forward, types, constants, capability)
    assert "st.global" in code and not re.search(r"\bmax\.(ftz\.)?b?f\d", code)
