"""Parts of a computation, and the time of each by torch.profiler."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import profile

PRODUCTS = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear", "aten::matmul", "mkldnn")
"""Names of the operators that multiply matrices."""

SLOWEST = 20
"""Number of operators that a profile lists."""


class Parts(NamedTuple):
    """Parts by the names of what is profiled."""

    functions: Mapping[str, tuple[str, ...]]
    """Parts, with names of the functions that operators run in. Backward functions are named after forward ones."""
    operators: Mapping[str, tuple[str, ...]]
    """Parts, with names of their operators."""
    left: str
    """The part of all other operators."""

    def part_of(self, names: list[str]) -> str:
        """Return the part of an event, from its own name and those of the events around it, the innermost first."""
        for name in names:
            for part, parts_of_names in self.functions.items():
                if any(one in name for one in parts_of_names):
                    return part
        for part, parts_of_names in self.operators.items():
            if any(one in names[0] for one in parts_of_names):
                return part
        return self.left

    def seconds(self, profiled: profile, whole: float) -> dict[str, float]:
        """Return the seconds of each part, the largest first. `whole` is the time that was profiled."""
        seconds: dict[str, float] = defaultdict(float)
        for event in profiled.events():
            seconds[self.part_of(names_around(event))] += event.self_cpu_time_total / 1e6
        seconds["outside of operators"] = whole - sum(seconds.values())
        return dict(sorted(seconds.items(), key=lambda entry: -entry[1]))


def names_around(event: FunctionEvent) -> list[str]:
    """Return the name of an event and those of the events around it, the innermost first."""
    names = []
    around: FunctionEvent | None = event
    while around is not None:
        names.append(around.name)
        around = around.cpu_parent
    return names


def slowest(profiled: profile) -> list[tuple[str, int, float]]:
    """Return the name, the number of calls and the seconds of the operators that take longest."""
    averages: list[Any] = sorted(profiled.key_averages(), key=lambda one: -one.self_cpu_time_total)
    return [(one.key, one.count, one.self_cpu_time_total / 1e6) for one in averages[:SLOWEST]]
