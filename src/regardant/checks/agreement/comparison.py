"""The result of a comparison, and the comparison of scores."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from regardant.checks.doctor.case import Case, differences
from regardant.checks.doctor.self_tests import NOTHING
from regardant.tasks.base import Trained


@dataclass(frozen=True)
class KeptCase(Case):
    """Run to be checked that can also be loaded again from its folder."""

    open_anew: Callable[[], Trained]
    """Function that loads the run from its folder as it is now."""


SPREADS = "standard deviations of the scores"


@dataclass(frozen=True)
class Compared:
    """Largest difference between two ways to compute the same result."""

    difference: float
    bound: float
    """Largest allowed difference."""
    unit: str = SPREADS
    where: str = ""
    """Place of the largest difference."""

    @property
    def agrees(self) -> bool:
        """True if the difference is within the bound, which NaN is not."""
        return self.difference <= self.bound


def compare_scores(
    case: Case, before: Tensor, after: Tensor, *, among: Tensor | None = None, bound: float = NOTHING
) -> Compared:
    """Compare scores [N, ...] of the rows of the probe, only at elements where `among` [N, T] is True if given.

    A score that is masked (minus infinity) on one side only makes the difference infinite.
    """
    difference = differences(case, before.float().cpu(), after.float().cpu())
    if among is not None:
        difference = difference.masked_fill(~among.cpu().view(*among.shape, *[1] * (difference.dim() - 2)), 0.0)
    if not difference.any():
        return Compared(0.0, bound)
    if difference.isnan().any():
        return Compared(float("nan"), bound, where="scores that are NaN")
    flat = int(difference.argmax())
    place: list[int] = []
    for size in reversed(difference.shape):
        flat, at = divmod(flat, size)
        place.insert(0, at)
    words = ["row", "element"] if difference.dim() > 2 else ["row"]
    where = ", ".join(f"{word} {at + 1}" for word, at in zip(words, place, strict=False))
    return Compared(float(difference.max()), bound, where=where)
