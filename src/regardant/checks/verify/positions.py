"""Positions: sinusoids, their waves, shifts and similarities, and the grid."""

import math
from typing import Any

import torch
from torch import Tensor

from regardant.checks.verify.check import COURSE, MISSAOUI, PITIE, WANG, Claim
from regardant.positions.sinusoidal import sinusoids
from regardant.positions.two_dimensional import TwoDimensionalConfig


def frequencies(size: int, first: int = 0) -> Tensor:
    """Return the angles in radians by which one position rotates each pair, read from the code of position 1."""
    sine, cosine = sinusoids(torch.tensor([1]), size, first)[0].double().unflatten(0, (-1, 2)).unbind(-1)
    return torch.atan2(sine, cosine)


def codes(count: int, size: int) -> Tensor:
    """Return sinusoidal codes [count, size] in float64, with the precision of the project's float32."""
    return sinusoids(torch.arange(count), size).double()


@Claim(
    "N-23",
    "Sinusoidal codes, first positions",
    f"{MISSAOUI}; {COURSE}",
    lecture="a formula only",
    true={
        "d = 4, positions 0 to 3": "0.000000 1.000000 0.000000 1.000000; 0.841471 0.540302 0.010000 0.999950; "
        "0.909297 -0.416147 0.019999 0.999800; 0.141120 -0.989992 0.029996 0.999550",
        "d = 8, position 1": "0.841471 0.540302 0.099833 0.995004 0.010000 0.999950 0.001000 1.000000",
    },
    verdict="right",
).measured
def first_codes() -> dict[str, Tensor]:
    return {"d = 4, positions 0 to 3": codes(4, 4), "d = 8, position 1": codes(2, 8)[1]}


@Claim(
    "N-24",
    "Frequencies counted from 1",
    PITIE,
    lecture="what the original paper proposed: ω_k = 1 / 10000^(2k/d), k = 1 to d/2",
    true={
        "d = 4, position 1": "0.010000 0.999950 0.000100 1.000000",
        "d = 512: first and last frequency": "0.964662 0.000100",
        "d = 512: first and last wavelength": "6.513 62831.85±0.02",
    },
    verdict="wrong",
    note="The paper counts from 0, so that the first frequency is 1.",
).measured
def counted_from_one() -> dict[str, Any]:
    ends = frequencies(512, first=1)[[0, -1]]
    return {
        "d = 4, position 1": sinusoids(torch.tensor([1]), 4, first=1)[0],
        "d = 512: first and last frequency": ends,
        "d = 512: first and last wavelength": 2 * math.pi / ends,
    }


@Claim(
    "N-25",
    "Waves and shifts of sinusoids, d = 512",
    f"{WANG}; {MISSAOUI}; {COURSE}",
    lecture={"longest wavelength": "10000 · 2π", "shift": "PE(p + k) = T_k PE(p)"},
    true={
        "longest wavelength": "60611.48±0.02",
        "10000 · 2π": "62831.85",
        "first and last frequency": "1.000000 1.0366e-4",
        "PE(p + 7) less T_7 PE(p)": "<1e-5",
        "similarity at offsets 0, 1, 2, 5, 10, 50, 99": "256.00 249.10 231.73 189.60 173.79 131.09 111.86",
        "similarities of equal offsets differ by": "<1e-4",
        "different codes of 10,000": "10000",
        "largest number": "1.000000",
    },
    verdict="partly",
    note="A shift is a rotation of each pair. 10000 · 2π is a limit that no wave reaches: the longest one is 3.5 % "
    "shorter. Bounds are those of float32, in which the project keeps the table.",
).measured
def waves() -> dict[str, Any]:
    table, omega = codes(10_000, 512), frequencies(512)
    near = table[:100]
    similarities = near @ near.T
    equal_offsets = [similarities.diagonal(offset) for offset in range(100)]
    return {
        "longest wavelength": 2 * math.pi / omega[-1],
        "10000 · 2π": 10000 * 2 * math.pi,
        "first and last frequency": omega[[0, -1]],
        "PE(p + 7) less T_7 PE(p)": (table[7:100] - rotated(table[:93], 7 * omega)).abs().max(),
        "similarity at offsets 0, 1, 2, 5, 10, 50, 99": similarities[0, [0, 1, 2, 5, 10, 50, 99]],
        "similarities of equal offsets differ by": max(float(line.max() - line.min()) for line in equal_offsets),
        "different codes of 10,000": len({code.tobytes() for code in table.numpy()}),
        "largest number": table.abs().max(),
    }


def rotated(code: Tensor, angles: Tensor) -> Tensor:
    """Return T_k times a code: each pair (sin, cos) times [[cos β, sin β], [-sin β, cos β]]."""
    sine, cosine = code.unflatten(-1, (-1, 2)).unbind(-1)
    turned = (sine * angles.cos() + cosine * angles.sin(), cosine * angles.cos() - sine * angles.sin())
    return torch.stack(turned, -1).flatten(-2)


@Claim(
    "N-26",
    "Sinusoids beside the RBF kernel",
    PITIE,
    lecture="the sinusoids are the RBF kernel's series, truncated",
    true={
        "λ that agrees at offset 1": "0.0302",
        "sinusoids at offsets 2, 5, 10, 30": "0.897 0.737 0.669 0.566",
        "RBF kernel": "0.886 0.470 0.049 0.000",
        "offset after which similarity first rises, d = 512 and 64": "43 5",
        "least similarity of 10,000 offsets, d = 512": "-32.4",
    },
    verdict="wrong",
    note="d = 128, exp(-λ (i - j)²). Sinusoids have another kernel: similarity falls slowly and not monotonically.",
).measured
def rbf_kernel() -> dict[str, Any]:
    similarity = codes(31, 128) @ codes(1, 128)[0] / 64
    rate = -similarity[1].log()
    offsets = torch.tensor([2, 5, 10, 30])

    def first_rise(size: int) -> int:
        of_offsets = codes(200, size) @ codes(1, size)[0]
        return int((of_offsets.diff() > 0).nonzero()[0])

    return {
        "λ that agrees at offset 1": rate,
        "sinusoids at offsets 2, 5, 10, 30": similarity[offsets],
        "RBF kernel": (-rate * offsets.square()).exp(),
        "offset after which similarity first rises, d = 512 and 64": [first_rise(512), first_rise(64)],
        "least similarity of 10,000 offsets, d = 512": (codes(10_000, 512) @ codes(1, 512)[0]).min(),
    }


@Claim(
    "N-27",
    "Codes of a grid of 2 rows, 3 columns",
    COURSE,
    lecture={"shape": "6 8"},
    true={
        "shape": "6 8",
        "places 0, 1 and 3": "0.000000 1.000000 0.000000 1.000000 0.000000 1.000000 0.000000 1.000000; "
        "0.000000 1.000000 0.000000 1.000000 0.841471 0.540302 0.010000 0.999950; "
        "0.841471 0.540302 0.010000 0.999950 0.000000 1.000000 0.000000 1.000000",
    },
    verdict="right",
    note="d = 8. d must be a multiple of 4.",
).measured
def grid() -> dict[str, Any]:
    positions = TwoDimensionalConfig(columns=3).build(d_model=8, num_heads=1, head_size=8, max_length=6, causal=False)
    table = positions.embed(torch.arange(6))
    return {"shape": list(table.shape), "places 0, 1 and 3": table[[0, 1, 3]]}
