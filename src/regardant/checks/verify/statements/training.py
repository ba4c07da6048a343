"""Statements about training, compute, memory and data."""

from typing import Any

import torch
from torch import Tensor

from regardant.checks.verify import cost, counts, layers, scaling, shapes
from regardant.checks.verify.check import COURSE, WALKTHROUGH, Claim

SHIFTED = Claim(
    "E-27",
    "Inputs and targets of teacher forcing",
    COURSE,
    lecture={"tokens read and said": "4 5"},
    true={},
    verdict="wrong",
    note="Five of each: the inputs are target[:, :-1], the targets target[:, 1:]. `target[:-1]` leaves out a sentence "
    "of the batch. Gradients must be zeroed before each backward pass.",
).shown_by(shapes.teacher_forcing)


@Claim(
    "E-37",
    "Mixed precision and stability",
    COURSE,
    lecture="mixed precision fixes loss spikes",
    true={
        "70,000 in float16": "inf",
        "in bfloat16": "70144",
        "a gradient of 1e-8 in float16": "0",
        "in bfloat16, above": ">1e-9",
    },
    verdict="wrong",
    note="Mixed precision saves memory and time, and float16 can cause spikes: it overflows at 65,504 and loses small "
    "gradients. Use bfloat16 or float32, a lower rate, clipping, a larger batch.",
).measured
def narrow_numbers() -> dict[str, Any]:
    large, small = torch.tensor(70_000.0), torch.tensor(1e-8)
    return {
        "70,000 in float16": float(large.half()),
        "in bfloat16": large.bfloat16().float(),
        "a gradient of 1e-8 in float16": small.half().float(),
        "in bfloat16, above": small.bfloat16().float(),
    }


FORWARD = Claim(
    "E-38",
    "FLOPs of a forward pass of GPT-3",
    COURSE,
    lecture={"FLOPs": "700e9"},
    true={},
    verdict="wrong",
    note="717 TFLOP over 2,048 tokens: the lecture's number is a thousand times too small.",
).shown_by(cost.gpt_3_inference, "FLOPs")

HUNGER = Claim(
    "E-39",
    "FLOPs and bytes of training data",
    COURSE,
    lecture={"FLOPs": "1e20 3e23", "gigabytes of text": "10 300"},
    true={},
    verdict="partly",
    note="6 N D of 110 million parameters and 10 billion tokens is 6.6e18; the FLOPs of the large model are right. "
    "That a token has 4 bytes is an assumption.",
).shown_by(cost.data_hunger, "FLOPs", "gigabytes of text")

STEP_0 = Claim(
    "E-41",
    "The learning rate of step 0",
    COURSE,
    lecture="get_lr(0)",
    true={},
    verdict="wrong",
    note="0 to the power of -0.5 raises ZeroDivisionError: updates count from 1.",
).shown_by(cost.schedule, "update 0")

VARIANCE = Claim(
    "E-42",
    "Variance of a dot product",
    COURSE,
    lecture="q · k ~ N(0, d_k); E and Var are lost from the formulas",
    true={},
    verdict="partly",
    note="Mean 0 and variance d_k are exact for independent numbers with mean 0 and variance 1. The Normal shape is "
    "approximate and needs a large d_k.",
).shown_by(scaling.variance)

BASE_MODEL = Claim(
    "E-51",
    "The base model and recurrent models",
    WALKTHROUGH,
    lecture="the base model beats recurrent models",
    true={},
    verdict="partly",
    note="True in English-German, 27.3 against 24.6 of GNMT + RL, but not in English-French, 38.1 against 39.92 "
    "(https://arxiv.org/abs/1706.03762, table 2).",
).shown_by(cost.published, "base model less RNNs: En-De, En-Fr")

ALIASES = Claim(
    "E-54",
    "Sound at every hundredth sample",
    COURSE,
    lecture="audio[::100] is the coarse scale",
    true={},
    verdict="wrong",
    note="Without a low-pass filter 440 Hz becomes 40 Hz. `input.kind=waveform` filters first.",
).shown_by(shapes.subsampled)

TRUNCATED = Claim(
    "E-55",
    "Truncated back-propagation",
    COURSE,
    lecture="the last T states contribute, T being the length too",
    true={},
    verdict="wrong",
    note="The last K < T steps contribute. The formula also drops signs of derivatives.",
).shown_by(layers.truncated, "its gradient in w, all steps", "the last 1, 3, 5 and 10 steps")

THOUSANDS = Claim(
    "E-58",
    "Sizes of attention matrices",
    COURSE,
    lecture={"": "16K 65K 262K 1M 4M 16M"},
    true={},
    verdict="partly",
    note="All six are rounded down: 65,536 is nearer to 66K, and 16,777,216 to 17M. State the numbers, or bytes.",
).shown_by(counts.weight_counts)


@Claim(
    "E-59",
    "Memory of attention matrices",
    COURSE,
    lecture="~33 MB a layer",
    true={
        "bytes of one copy, 8 heads, 1,024 tokens": "33554432",
        "that training keeps of scores and weights, at least": ">33554432",
    },
    verdict="partly",
    note="One copy, one sequence, forward alone. With explicit weights training keeps the weights for the backward "
    "pass, and more if dropout is applied to them. Measured at 256 tokens, which take a sixteenth of the memory.",
).measured
def kept_for_backward() -> dict[str, int]:
    heads, length = 8, 256
    kept = 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal kept
        if tensor.shape[-2:] == (length, length):
            kept += tensor.numel() * tensor.element_size()
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        q, k, v = torch.randn(3, 1, heads, length, 16, requires_grad=True).unbind()
        weights = torch.softmax(q @ k.mT / 4, -1)
        _ = torch.dropout(weights, 0.1, train=True) @ v
    return {
        "bytes of one copy, 8 heads, 1,024 tokens": heads * 1024**2 * 4,
        "that training keeps of scores and weights, at least": 16 * kept,
    }


STATEMENTS = (
    SHIFTED,
    narrow_numbers,
    FORWARD,
    HUNGER,
    STEP_0,
    VARIANCE,
    BASE_MODEL,
    ALIASES,
    TRUNCATED,
    THOUSANDS,
    kept_for_backward,
)
