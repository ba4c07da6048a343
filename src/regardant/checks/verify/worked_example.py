"""Worked example of the lectures: the words that a decoder attends to when it translates "cat" as "chat".

Four features per word: animal, action, object, definiteness.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from regardant.attention.top_k import TopKConfig
from regardant.checks.verify.check import COURSE, Attend, Claim
from regardant.checks.verify.mechanisms import entropy, exactly, identity, weights

WORDS = ("the", "cat", "sat", "on", "the", "mat")
FEATURES = ("animal", "action", "object", "definiteness")
ANIMAL, ACTION, OBJECT, DEFINITENESS = range(4)
CAT, SAT = 1, 2

KEYS = exactly(
    [0, 0, 0, 1],
    [1, 0, 0.3, 0],
    [0, 1, 0, 0],
    [0, 0, 0, 0],
    [0, 0, 0, 1],
    [0, 0, 1, 0],
)
VALUES = exactly(
    [0.1, 0, 0, 0.8],
    [0.9, 0, 0.1, 0.7],
    [0, 0.9, 0, 0.3],
    [0, 0, 0.5, 0],
    [0, 0, 0, 0.9],
    [0, 0, 0.9, 0.6],
)
QUERY = exactly([[0.9, 0.1, 0.2, 0.3]])
ACTION_QUERY = exactly([[0.1, 0.9, 0.1, 0.2]])
ACTION_QUERY_IN_PROSE = exactly([[0.1, 0.9, 0.1, 0.1]])


def at_temperature(attend: Attend, query: Tensor, temperature: float, values: Tensor = VALUES) -> Tensor:
    """Return the output of attention with scores divided by the temperature instead of sqrt(4)."""
    return attend(query * (2 / temperature), KEYS, values)[0]


def by_size(output: Tensor) -> str:
    """Return the names of the features, largest first."""
    return " ".join(FEATURES[index] for index in output.argsort(descending=True))


def highest_temperature(holds: Callable[[float], bool]) -> float:
    """Return the highest temperature at which `holds`, true at 0.1 and false at 2, is true, by bisection."""
    low, high = 0.1, 2.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@Claim(
    "N-01",
    "Scores of the query for “chat”",
    COURSE,
    lecture="0.30 0.96 0.10 0.00 0.30 0.20",
    true="0.30 0.96 0.10 0.00 0.30 0.20",
    verdict="right",
).measured
def scores() -> Tensor:
    return KEYS @ QUERY[0]


@Claim(
    "N-02",
    "Weights for “chat”, scaled by √4",
    COURSE,
    lecture={
        "weights": "0.16 0.23 0.15 0.14 0.16 0.16",
        "exponentials": "1.16 1.62 1.05 1.00 1.16 1.11",
        "their sum": "7.10",
    },
    true={
        "weights": "0.163727 0.227738 0.148146 0.140921 0.163727 0.155742",
        "exponentials": "1.161834 1.616074 1.051271 1.000000 1.161834 1.105171",
        "their sum": "7.096185",
        "entropy of the weights": "1.778143",
    },
    verdict="rounded",
    note="Nearly uniform: the entropy of six equal weights is 1.791759.",
).attended
def cat_weights(attend: Attend) -> dict[str, Tensor]:
    found = attend(QUERY, KEYS, identity(6))[0]
    exponentials = (KEYS @ QUERY[0] / 2).exp()
    return {
        "weights": found,
        "exponentials": exponentials,
        "their sum": exponentials.sum(),
        "entropy of the weights": entropy(found),
    }


@Claim(
    "N-03",
    "Output for “chat”",
    COURSE,
    lecture={"output": "0.223 0.135 0.237 0.574", "from weights of two decimals": "0.223 0.135 0.237 0.574"},
    true={
        "output": "0.221337 0.133331 0.233402 0.575641",
        "from weights of two decimals": "0.223 0.135 0.237 0.574",
    },
    verdict="wrong",
    note="Computed from weights already rounded to two decimals: three of the four numbers differ at two decimals.",
).attended
def cat_output(attend: Attend) -> dict[str, Tensor]:
    rounded = exactly([0.16, 0.23, 0.15, 0.14, 0.16, 0.16])
    return {"output": attend(QUERY, KEYS, VALUES)[0], "from weights of two decimals": rounded @ VALUES}


@Claim(
    "N-04",
    "The exercise: a query for an action",
    COURSE,
    lecture="left as a question: which word gets most attention, and what does the output emphasise?",
    true={
        "most attention": "sat",
        "output by size": "definiteness object action animal",
        "scores": "0.20 0.13 0.90 0.00 0.20 0.10",
        "weights": "0.160237 0.154726 0.227388 0.144989 0.160237 0.152423",
        "output": "0.155277 0.204649 0.225147 0.540382",
    },
    verdict="unstated",
    note="The answer: “sat” gets most attention, but the output still emphasises definiteness, and action only third.",
).attended
def action(attend: Attend) -> dict[str, Any]:
    found, output = attend(ACTION_QUERY, KEYS, identity(6))[0], attend(ACTION_QUERY, KEYS, VALUES)[0]
    return {
        "most attention": WORDS[int(found.argmax())],
        "output by size": by_size(output),
        "scores": KEYS @ ACTION_QUERY[0],
        "weights": found,
        "output": output,
    }


@Claim(
    "N-05",
    "That query with .1 for definiteness",
    COURSE,
    lecture="attends to “sat”; retrieves action semantics",
    true={
        "most attention": "sat",
        "output by size": "definiteness object action animal",
        "scores": "0.10 0.13 0.90 0.00 0.10 0.10",
        "weights": "0.154843 0.157183 0.230998 0.147291 0.154843 0.154843",
        "output": "0.156949 0.207898 0.228722 0.535466",
    },
    verdict="partly",
    note="The query attends to “sat”, but at this scale action is third in the output.",
).attended
def action_in_prose(attend: Attend) -> dict[str, Any]:
    query = ACTION_QUERY_IN_PROSE
    found, output = attend(query, KEYS, identity(6))[0], attend(query, KEYS, VALUES)[0]
    return {
        "most attention": WORDS[int(found.argmax())],
        "output by size": by_size(output),
        "scores": KEYS @ query[0],
        "weights": found,
        "output": output,
    }


@Claim(
    "N-06",
    "What “mostly animal” would need",
    COURSE,
    lecture="22% animal features; mostly animal",
    true={
        "output by size at √4": "definiteness object animal action",
        "sum of that output": "1.163711",
        "weight of cat at 1, .5, .2, .1": "0.3024 0.4811 0.8945 0.9965",
        "output at 1, .5, .2, .1": "0.2877 0.1151 0.2154 0.6005; 0.4458 0.0775 0.1781 0.6442; "
        "0.8084 0.0109 0.1111 0.6979; 0.8970 0.0002 0.1001 0.7002",
        "output in the limit 0": "0.900000 0.000000 0.100000 0.700000",
        "animal passes object below": "1.735",
        "animal is the largest below": "0.277",
        "action query at .2: weight of sat": "0.900",
        "action query at .2: output": "0.0200 0.8100 0.0218 0.3395",
        "action query: action is the largest below": "0.456",
    },
    verdict="wrong",
    note="Definiteness is largest, then object, then animal; the numbers sum to 1.16, so they are no percentages.",
).attended
def temperatures(attend: Attend) -> Mapping[str, Any]:
    output = attend(QUERY, KEYS, VALUES)[0]

    def largest(query: Tensor, feature: int) -> float:
        return highest_temperature(lambda t: int(at_temperature(attend, query, t).argmax()) == feature)

    def animal_passes_object(temperature: float) -> bool:
        mixed = at_temperature(attend, QUERY, temperature)
        return bool(mixed[ANIMAL] > mixed[OBJECT])

    return {
        "output by size at √4": by_size(output),
        "sum of that output": output.sum(),
        "weight of cat at 1, .5, .2, .1": [
            at_temperature(attend, QUERY, t, identity(6))[CAT] for t in (1, 0.5, 0.2, 0.1)
        ],
        "output at 1, .5, .2, .1": torch.stack([at_temperature(attend, QUERY, t) for t in (1, 0.5, 0.2, 0.1)]),
        "output in the limit 0": at_temperature(attend, QUERY, 0.01),
        "animal passes object below": highest_temperature(animal_passes_object),
        "animal is the largest below": largest(QUERY, ANIMAL),
        "action query at .2: weight of sat": at_temperature(attend, ACTION_QUERY, 0.2, identity(6))[SAT],
        "action query at .2: output": at_temperature(attend, ACTION_QUERY, 0.2),
        "action query: action is the largest below": largest(ACTION_QUERY, ACTION),
    }


@Claim(
    "N-09",
    "Top-k attention on the example",
    COURSE,
    lecture="most Transformer architectures use some form of top-k",
    true={
        "output, k = 1": "0.900000 0.000000 0.100000 0.700000",
        "weights, k = 3": "0.294901 0.410198 0.000000 0.000000 0.294901 0.000000",
        "output, k = 3": "0.398668 0.000000 0.041020 0.788470",
        "weights, k = 4": "0.230298 0.320337 0.000000 0.000000 0.230298 0.219066",
        "output, k = 4": "0.311333 0.000000 0.229193 0.747183",
        "output, k = 6": "0.221337 0.133331 0.233402 0.575641",
        "keys kept, k = 2": "3",
    },
    verdict="wrong",
    note="Standard attention is dense; top-k is a variant. Both “the” tie for second place; ties are kept here.",
).measured
def top_k() -> dict[str, Any]:
    of = {k: weights(TopKConfig(k=k), QUERY, KEYS)[0] for k in (1, 2, 3, 4, 6)}
    return {
        "output, k = 1": of[1] @ VALUES,
        "weights, k = 3": of[3],
        "output, k = 3": of[3] @ VALUES,
        "weights, k = 4": of[4],
        "output, k = 4": of[4] @ VALUES,
        "output, k = 6": of[6] @ VALUES,
        "keys kept, k = 2": int((of[2] > 0).sum()),
    }
