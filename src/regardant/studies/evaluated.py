"""Runs of a study that need no other evaluation when the study is resumed."""

from pathlib import Path

from regardant.run.fingerprints import EVALUATION, SUMS, WEIGHTS


def is_evaluated(run: Path) -> bool:
    """Return whether a run was evaluated to the end after its weights were written.

    Test sets are written one after the other, and the sums of all of them last.
    """
    weights, sums = run / WEIGHTS, run / EVALUATION / SUMS
    return weights.is_file() and sums.is_file() and sums.stat().st_mtime >= weights.stat().st_mtime
