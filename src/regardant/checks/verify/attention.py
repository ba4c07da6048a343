"""Attention itself: softmax, masks, tables, symmetries and scores other than the dot product."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regardant.attention import View
from regardant.attention.additive import Additive
from regardant.attention.linear import LinearAttention
from regardant.attention.scaled_dot_product import ScaledDotProductConfig
from regardant.checks.verify.check import COURSE, MISSAOUI, PITIE, WALKTHROUGH, Attend, Claim
from regardant.checks.verify.mechanisms import entropy, exactly, identity, weights
from regardant.positions.relative_bias import RelativeBiasConfig

SENTENCE = ("YOUR", "CAT", "IS", "A", "LOVELY", "CAT")
TABLE = exactly(
    [0.268, 0.119, 0.134, 0.148, 0.179, 0.152],
    [0.124, 0.278, 0.201, 0.128, 0.154, 0.115],
    [0.147, 0.132, 0.262, 0.097, 0.218, 0.145],
    [0.210, 0.128, 0.206, 0.212, 0.119, 0.125],
    [0.146, 0.158, 0.152, 0.143, 0.227, 0.174],
    [0.195, 0.114, 0.203, 0.103, 0.157, 0.229],
)
"""The weights that the walk-through prints for its sentence."""


def largest(difference: Tensor) -> Tensor:
    """Return the largest absolute value."""
    return difference.abs().max()


@Claim(
    "N-07",
    "Softmax of [2.1, 0.3, -0.5, 1.8]",
    COURSE,
    lecture="0.58 0.10 0.04 0.28",
    true={
        "weights": "0.504951 0.083468 0.037505 0.374077",
        "exponentials": "8.166170 1.349859 0.606531 6.049647",
        "their sum": "16.172207",
        "log ratios to the second, of the lecture's weights": "1.758 -0.916 1.030",
        "of the true weights": "1.800 -0.800 1.500",
    },
    verdict="wrong",
    note="No temperature gives the lecture's weights either: their log ratios are not in proportion to the true ones.",
).attended
def softmax(attend: Attend) -> dict[str, Tensor]:
    scores = exactly([2.1, 0.3, -0.5, 1.8])
    found = attend(exactly([[1.0]]), scores[:, None], identity(4))[0]

    def log_ratios(weights: Tensor) -> Tensor:
        return (weights / weights[1]).log()[[0, 2, 3]]

    return {
        "weights": found,
        "exponentials": scores.exp(),
        "their sum": scores.exp().sum(),
        "log ratios to the second, of the lecture's weights": log_ratios(exactly([0.58, 0.10, 0.04, 0.28])),
        "of the true weights": log_ratios(found),
    }


@Claim(
    "N-08",
    "A dictionary, as temperature goes to 0",
    COURSE,
    lecture="can implement any dictionary lookup",
    true={
        "weights where two keys tie": "0.500000 0.500000 0.000000",
        "weights of [1, 0] on the keys [1, 0] and [2, 0]": "0.000000 1.000000",
        "what [1, 0, 0], [0, 1, 0], [2, 2, 2] find of themselves": "3 3 3",
    },
    verdict="partly",
    note="The best key must be unique, and each key must match itself best, for example by equal norms.",
).attended
def dictionary(attend: Attend) -> dict[str, Any]:
    cold = 40.0
    tied, longer = exactly([[1, 1, 0]]), exactly([1, 0], [2, 0])
    keys = exactly([1, 0, 0], [0, 1, 0], [2, 2, 2])
    found = attend(cold * keys, keys, identity(3))
    return {
        "weights where two keys tie": attend(cold * tied, identity(3), identity(3))[0],
        "weights of [1, 0] on the keys [1, 0] and [2, 0]": attend(cold * longer[:1], longer, identity(2))[0],
        "what [1, 0, 0], [0, 1, 0], [2, 2, 2] find of themselves": found.argmax(-1) + 1,
    }


@Claim(
    "N-12",
    "Weight table of a six-word sentence",
    WALKTHROUGH,
    lecture={"sums of rows": "1 1 1 1 1 1"},
    true={
        "sums of rows": "1.000 1.000 1.001 1.000 1.000 1.001",
        "sums of columns": "1.090 0.929 1.158 0.831 1.054 0.940",
        "rows whose diagonal is largest": "6",
        "entropies of rows": "1.7526 1.7372 1.7377 1.7584 1.7778 1.7516",
    },
    verdict="rounded",
    note="Two rows sum to 1.001. The entropies are near that of six equal weights, 1.7918.",
).measured
def table() -> dict[str, Any]:
    return {
        "sums of rows": TABLE.sum(1),
        "sums of columns": TABLE.sum(0),
        "rows whose diagonal is largest": int((TABLE.argmax(1) == torch.arange(6)).sum()),
        "entropies of rows": entropy(TABLE / TABLE.sum(1, keepdim=True)),
    }


@Claim(
    "N-13",
    "The table under a causal mask",
    WALKTHROUGH,
    lecture="prints the unmasked table again",
    true={
        "rows": "1.0000; 0.3085 0.6915; 0.2717 0.2440 0.4843; 0.2778 0.1693 0.2725 0.2804; "
        "0.1768 0.1913 0.1840 0.1731 0.2748; 0.1948 0.1139 0.2028 0.1029 0.1568 0.2288",
        "weight on the future": "0.000000",
        "sums of rows zeroed and not normalised": "0.268 0.402 0.541 0.756 0.826 1.001",
    },
    verdict="wrong",
    note="Scores are masked before the softmax, so every row of the lower triangle sums to one.",
).attended
def masked_table(attend: Attend) -> dict[str, Any]:
    past = torch.ones(6, 6, dtype=torch.bool).tril()
    found = attend(TABLE.log() * 6**0.5, identity(6), identity(6), past)  # the softmax of a logarithm is the row itself
    return {
        "rows": [row[: number + 1] for number, row in enumerate(found)],
        "weight on the future": found.triu(1).abs().sum(),
        "sums of rows zeroed and not normalised": TABLE.tril().sum(1),
    }


@Claim(
    "N-14",
    "Whether Q = K = X gives that table",
    WALKTHROUGH,
    lecture="“Q, K and V are input sentence”: the table is softmax(QKᵀ/√512)",
    true={
        "how far three words are from a symmetric score": "1.2975",
        "those words": "IS A LOVELY",
        "what rounding can explain": "0.031",
        "the same of Q = K = X": "<1e-12",
        "the two CATs differ, without positions": "<1e-12",
        "√512": "22.627417",
    },
    verdict="wrong",
    note="With symmetric scores a_ij a_jk a_ki = a_ji a_kj a_ik. The two CATs differ, so positions are in the table.",
).attended
def symmetric_scores(attend: Attend) -> dict[str, Any]:
    def asymmetry(weights: Tensor) -> Tensor:
        """Return log a_ij + log a_jk + log a_ki - (log a_ji + log a_kj + log a_ik), for all i, j, k."""
        a = weights.log() - weights.log().T
        return a[:, :, None] + a[None] + a.T[:, None]

    of_table = asymmetry(TABLE).abs()
    worst = np.unravel_index(int(of_table.argmax()), of_table.shape)
    x = torch.randn(6, 512, dtype=torch.float64) / 4
    x[5] = x[1]
    found = attend(x, x, identity(6))
    return {
        "how far three words are from a symmetric score": of_table.max(),
        "those words": " ".join(SENTENCE[index] for index in sorted(worst)),
        "what rounding can explain": 6 * 0.0005 / TABLE.min(),
        "the same of Q = K = X": largest(asymmetry(found)),
        "the two CATs differ, without positions": torch.maximum(
            largest(found[5] - found[1]), largest(found[:, 5] - found[:, 1])
        ),
        "√512": 512**0.5,
    }


def four_words(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the queries, keys and values [4, 2] that the lecture's program would compute with this seed."""
    words = exactly([1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1])
    random = np.random.RandomState(seed)
    q, k, v = (words @ torch.from_numpy(random.randn(3, 2)) for _ in range(3))
    return q, k, v


@Claim(
    "N-15",
    "Self-attention of four words in NumPy",
    PITIE,
    lecture="prints attention_1 of unseeded weights",
    true={
        "weights_1, seed 0": "0.347353 0.109452 0.343014 0.200181",
        "attention_1, seed 0": "1.025315 0.193908",
        "weights_1, seed 42": "0.350570 0.174511 0.281920 0.193000",
        "attention_1, seed 42": "-0.829742 -1.406125",
        "scores_1, seed 0": "1.615439 -0.017780 1.597660 0.836038",
        "score_3 less score_1 + score_2": "<1e-12",
        "value_3 less value_1 + value_2": "<1e-12",
        "sums of weights, all four words": "1.000000 1.000000 1.000000 1.000000",
        "the same by the lecture's softmax": "0.131614 0.249169 0.509067 0.110150",
    },
    verdict="partly",
    note="The lecture's softmax divides by the sum over all entries: right for one vector, wrong for a matrix. `array` "
    "and `dot` lack their `np.`.",
).attended
def numpy_example(attend: Attend) -> dict[str, Any]:
    (q, k, v), (q42, k42, v42) = four_words(0), four_words(42)
    scores = k @ q[0]
    exponentials = (q @ k.T / 2**0.5).exp()
    return {
        "weights_1, seed 0": attend(q, k, identity(4))[0],
        "attention_1, seed 0": attend(q, k, v)[0],
        "weights_1, seed 42": attend(q42, k42, identity(4))[0],
        "attention_1, seed 42": attend(q42, k42, v42)[0],
        "scores_1, seed 0": scores,
        "score_3 less score_1 + score_2": largest(scores[2] - scores[0] - scores[1]),
        "value_3 less value_1 + value_2": largest(v[2] - v[0] - v[1]),
        "sums of weights, all four words": attend(q, k, identity(4)).sum(-1),
        "the same by the lecture's softmax": (exponentials / exponentials.sum()).sum(-1),
    }


@Claim(
    "N-17",
    "An additive score, v · tanh(s + h)",
    COURSE,
    lecture=None,
    true={
        "scores": "0.761594 0.964028 0.761594",
        "weights": "0.310137 0.379725 0.310137",
        "context": "0.069588 0.310137",
    },
    verdict="unstated",
    note="The lecture gives only the formula; v = [1, 1], identity matrices, s = [1, 0] and three states are ours.",
).measured
def additive() -> dict[str, Tensor]:
    mechanism = Additive(num_heads=1, head_size=2)
    mechanism.weight.fill_(1)
    state, states = exactly([[1, 0]])[None, None], exactly([0, 0], [1, 0], [-1, 1])[None, None]
    return {
        "scores": mechanism.scores(state, states).flatten(),
        "weights": mechanism.weights(state, states).flatten(),
        "context": mechanism(state, states, states).flatten(),
    }


@Claim(
    "N-21",
    "Self-attention of shuffled words",
    f"{MISSAOUI}; {PITIE}; {COURSE}",
    lecture="permutation invariant; shuffling keys and values together changes nothing; identical outputs",
    true={
        "attention of shuffled words, less shuffled attention": "<1e-12",
        "less the attention of words in order": ">0.1",
        "keys and values shuffled together": "<1e-12",
    },
    verdict="partly",
    note="Self-attention is equivariant: its outputs are shuffled like its inputs. Keys and values may be shuffled "
    "together.",
).attended
def shuffled(attend: Attend) -> dict[str, Tensor]:
    x, q = torch.randn(6, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    in_order, out_of_order = attend(x, x, x), attend(x[order], x[order], x[order])
    return {
        "attention of shuffled words, less shuffled attention": largest(out_of_order - in_order[order]),
        "less the attention of words in order": largest(out_of_order - in_order),
        "keys and values shuffled together": largest(attend(q, x[order], x[order]) - attend(q, x, x)),
    }


@Claim(
    "N-43",
    "Masking by -1e9",
    COURSE,
    lecture="masked positions get 0 after the softmax",
    true={
        "one key of three masked": "0.268941 0.731059 0.000000",
        "the same, filled with -1e9 in float32": "0.268941 0.731059 0.000000",
        "all masked, filled with -1e9": "0.3333 0.3333 0.3333",
        "all masked, filled with -inf": "nan nan nan",
        "-1e9 in float16": "-inf",
        "step of float32 at 1e9": "64",
    },
    verdict="partly",
    note="Unless every key is masked: then the weights become equal, where this package returns zeros. If -1e9 is "
    "added instead of filled in, it also absorbs the scores.",
).attended
def masked(attend: Attend) -> dict[str, Any]:
    query, keys, values = exactly([[1.0]]), exactly([1.0], [2.0], [5.0]), identity(3)
    big = torch.tensor(1e9)
    return {
        "one key of three masked": attend(query, keys, values, torch.tensor([[True, True, False]]))[0],
        "the same, filled with -1e9 in float32": torch.softmax(torch.tensor([1.0, 2.0, -1e9]), -1),
        "all masked, filled with -1e9": torch.softmax(torch.full((3,), -1e9), -1),
        "all masked, filled with -inf": torch.softmax(torch.full((3,), -torch.inf), -1),
        "-1e9 in float16": (-big).half(),
        "step of float32 at 1e9": torch.nextafter(big, 2 * big) - big,
    }


@Claim(
    "N-50",
    "Relative bias, in or out of the scale",
    COURSE,
    lecture="softmax((q·k + r) / √d): a formula only",
    true={
        "inside": "0.163579 0.163579 0.672842; 0.074320 0.305695 0.619985; 0.087949 0.178370 0.733681",
        "outside": "0.102782 0.137758 0.759460; 0.046514 0.256432 0.697054; 0.053464 0.145331 0.801205",
    },
    verdict="unstated",
    note="Both conventions exist; these inputs, with r = j - i, tell them apart.",
).measured
def relative_bias() -> dict[str, Tensor]:
    x = exactly([1, 0], [0, 1], [1, 1])

    def biased(*, scaled: bool) -> Tensor:
        config = RelativeBiasConfig(max_distance=2, scaled=scaled)
        positions = config.build(d_model=2, num_heads=1, head_size=2, max_length=3, causal=False).double()
        positions.table.copy_(torch.arange(-2, 3)[None])
        return weights(ScaledDotProductConfig(), x, x, View(bias=positions.bias))

    return {"inside": biased(scaled=True), "outside": biased(scaled=False)}


@Claim(
    "N-56",
    "Linear attention, φ(Q) (φ(K)ᵀ V)",
    COURSE,
    lecture="written without a normaliser",
    true={
        "sums of weights less one, as the lecture has them": ">1",
        "sums of weights less one, normalised": "<1e-12",
        "φ(Q) (φ(K)ᵀ V) less (φ(Q) φ(K)ᵀ) V": "<1e-12",
    },
    verdict="wrong",
    note="Divide by φ(Q) (φ(K)ᵀ 1): without it the weights do not sum to 1.",
).measured
def linear() -> dict[str, Tensor]:
    q, k, v = torch.randn(3, 1, 1, 6, 4, dtype=torch.float64)
    mechanism = LinearAttention()
    found = mechanism.weights(q, k)
    matches = mechanism.query_features(q) @ mechanism.key_features(k).mT
    return {
        "sums of weights less one, as the lecture has them": (matches.sum(-1) - 1).abs().min(),
        "sums of weights less one, normalised": largest(found.sum(-1) - 1),
        "φ(Q) (φ(K)ᵀ V) less (φ(Q) φ(K)ᵀ) V": largest(mechanism(q, k, v) - found @ v),
    }


@Claim(
    "N-60",
    "The entropy of weights",
    COURSE,
    lecture=None,
    true={
        "equal weights on eight keys": "2.079442",
        "all weight on one key": "0.000000",
        "of 100 random queries, outside 0 to ln 8": "0",
    },
    verdict="unstated",
    note="The entropy ranges from 0, all weight on one key, to ln n, equal weights on n keys.",
).attended
def entropies(attend: Attend) -> dict[str, Any]:
    keys = identity(8)
    queries = 5 * torch.randn(100, 8, dtype=torch.float64)
    found = entropy(attend(queries, keys, identity(8)))
    return {
        "equal weights on eight keys": entropy(attend(torch.zeros_like(keys[:1]), keys, identity(8))),
        "all weight on one key": entropy(attend(400 * keys[:1], keys, identity(8))),
        "of 100 random queries, outside 0 to ln 8": int(((found < 0) | ~(found < np.log(8) + 1e-6)).sum()),
    }
