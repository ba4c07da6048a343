"""Rank correlations by SciPy. None if a tensor has fewer than two distinct values, or one that is not finite."""

from torch import Tensor


def spearman(one: Tensor, other: Tensor) -> float | None:
    """Return Spearman's rho of the values of two tensors of one shape."""
    if not _ordered(one, other):
        return None
    from scipy.stats import spearmanr  # here and below: the import takes a second

    return float(spearmanr(one.flatten(), other.flatten()).statistic)


def kendall(one: Tensor, other: Tensor) -> float | None:
    """Return Kendall's tau-b, which counts concordant and discordant pairs and corrects for ties."""
    if not _ordered(one, other):
        return None
    from scipy.stats import kendalltau

    return float(kendalltau(one.flatten(), other.flatten()).statistic)


def _ordered(*several: Tensor) -> bool:
    return all(x.numel() > 1 and bool((x != x.flatten()[0]).any()) and bool(x.isfinite().all()) for x in several)
