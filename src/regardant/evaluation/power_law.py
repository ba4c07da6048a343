"""Power law of loss: loss = A x^-alpha, fitted with its uncertainty, and the same above a floor.

Kaplan et al. 2020, https://arxiv.org/abs/2001.08361, equation 1.1; with a floor: Hoffmann et al. 2022,
https://arxiv.org/abs/2203.15556, equation 2.

Only the exponent of the law without a floor has an interval. The fit with a floor has three parameters and no interval:
it is made from four sizes on, since three would determine its parameters exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, stats

from regardant.errors import DataError

LEAST_POINTS = 4

LEAST_SIZES_WITH_FLOOR = 4
"""Minimum number of different x for the fit with a floor."""

CONFIDENCE = 0.95


@dataclass(frozen=True)
class PowerLaw:
    """Power law, fitted as a line through the logarithms of x and loss."""

    exponent: float
    """alpha."""
    interval: tuple[float, float]
    """95% interval of the exponent, by Student's t over the mean logarithm of each x: points of one x deviate from the
    line together where the law does not hold, so that they are one observation of it."""
    constant: float
    """A."""
    r_squared: float
    """Share of the variance of log(loss) on the line."""
    floor: float | None
    """Loss that no x goes below, of the fit with a floor. None: fewer than four sizes, or that fit did not converge."""
    exponent_above_floor: float | None
    """alpha of the fit with a floor. None without one."""

    def loss(self, x: float) -> float:
        """Return the loss of the line, which has no floor, at x."""
        return float(self.constant * x**-self.exponent)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return vars(self) | {"interval": list(self.interval)}

    def lines(self) -> list[str]:
        """Return the fit as lines for people."""
        low, high = self.interval
        found = [
            f"loss = {self.constant:.4g} x^-{self.exponent:.4f}",
            f"exponent        {self.exponent:.4f}, 95% interval {low:.4f} to {high:.4f}",
            f"R squared       {self.r_squared:.4f}",
        ]
        if self.floor is None:
            return [*found, "with a floor    no fit: fewer than four sizes, or it did not converge"]
        above = f"exponent above it {self.exponent_above_floor:.4f}, without intervals"
        return [*found, f"with a floor    {self.floor:.4g}, {above}"]


def fit_power_law(x: Sequence[float], loss: Sequence[float]) -> PowerLaw:
    """Fit a power law to points, several of which may have the same x, and one with a floor from four different x on.

    Raises DataError for fewer than four points, fewer than three different x, or numbers that are not positive and
    finite.
    """
    if len(x) < LEAST_POINTS or len(set(x)) < LEAST_POINTS - 1:
        raise DataError(f"{len(x)} points at {len(set(x))} sizes are too few for a power law: give four at three sizes")
    if min(*x, *loss) <= 0 or not np.isfinite([*x, *loss]).all():
        raise DataError("a power law needs sizes and losses that are positive and finite")
    line = stats.linregress(np.log(x), np.log(loss))
    half_width = _half_width(np.log(x), np.log(loss))
    floor, above = _above_floor(np.asarray(x, float), np.asarray(loss, float), -line.slope)
    return PowerLaw(
        exponent=float(-line.slope),
        interval=(float(-line.slope - half_width), float(-line.slope + half_width)),
        constant=float(np.exp(line.intercept)),
        r_squared=float(line.rvalue**2),
        floor=floor,
        exponent_above_floor=above,
    )


def _half_width(x: Any, loss: Any) -> float:
    """Return half of the width of the slope's interval, of a line through the mean loss of each x."""
    sizes = np.unique(x)
    line = stats.linregress(sizes, [loss[x == size].mean() for size in sizes])
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, len(sizes) - 2) * line.stderr)


def _above_floor(x: Any, loss: Any, exponent: float) -> tuple[float | None, float | None]:
    """Fit loss = E + A (x / x0)^-alpha; return E and alpha. None for too few sizes, or if the fit does not converge."""
    if len(set(x)) < LEAST_SIZES_WITH_FLOOR:
        return None, None
    x0 = float(np.exp(np.log(x).mean()))

    def curve(x: Any, floor: float, height: float, alpha: float) -> Any:
        return floor + height * (x / x0) ** -alpha

    try:
        (floor, _, alpha), _ = optimize.curve_fit(
            curve,
            x,
            loss,
            p0=(0.5 * loss.min(), 0.5 * loss.mean(), max(exponent, 0.05)),
            bounds=([0, 0, 0], [loss.min(), np.inf, 10]),
        )
    except (RuntimeError, ValueError):
        return None, None
    return float(floor), float(alpha)
