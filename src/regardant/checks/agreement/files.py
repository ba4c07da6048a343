"""Comparisons of the contents of a run folder (weights, encoded data, exports) with the open model and its texts."""

from collections.abc import Callable
from dataclasses import replace

from regardant.checks.agreement.comparison import Compared, KeptCase, compare_scores
from regardant.checks.doctor.case import LeftOut, worst
from regardant.errors import ConfigError

SAMPLES = 16
"""Number of validation items that are encoded anew or decoded by exports."""

OF_EXPORTS = {"float32": 0.01, "int16": 0.05}
"""Bound of the difference in log-probability, in nats per token, by the type of an export's weights."""

OF_OTHER_EXPORTS = 0.5
"""Bound for all other types: int8, float16 and bfloat16."""


def loaded_again(case: KeptCase) -> Compared:
    """Compare the scores of the open model with those of the model loaded from the run folder once more.

    A difference means that a part of the model is drawn at random on loading and not saved with the weights, or that
    the open model was changed since it was loaded. Changed weights in the folder make no difference: both sides load
    them, unless loading is refused because their fingerprint in run.yaml does not match.
    """
    again = replace(case, open=case.open_anew)
    return compare_scores(case, again.scores(case.probe.inputs), case.answers, bound=0.0)


def encoded(case: KeptCase) -> Compared:
    """Compare the tokens that training read with the tokens of the same texts encoded now."""
    pairs = case.trained.encoded_twice(SAMPLES)
    if not pairs:
        raise LeftOut("the run keeps tokens without their text")
    different = [number for number, (kept, now) in enumerate(pairs, 1) if list(kept) != list(now)]
    where = f"text {different[0]}" if different else ""
    return Compared(len(different), 0.0, f"of {len(pairs)} texts", where)


def exported(case: KeptCase) -> Compared:
    """Compare the log-probabilities that exports give to their own output with those of the model.

    The place names the exports without a finished translation. Raises LeftOut if no export has one.
    """
    try:
        differences = case.trained.export_differences(SAMPLES)
    except ConfigError as error:  # the engine of the exports is not installed
        raise LeftOut(str(error)) from error
    found = []
    for name, (difference, where) in differences.items():
        bound = OF_EXPORTS.get(name.rpartition("-")[2], OF_OTHER_EXPORTS)
        if where:
            found.append(Compared(difference, bound, "nats a token", f"{name}, {where}"))
    unscored = ", ".join(name for name, (_, where) in differences.items() if not where)
    note = f"no translation by {unscored} ended" if unscored else ""
    if not found:
        raise LeftOut(note or "nothing was exported into RUN/engines")
    largest = worst(found, lambda one: one.difference / one.bound)
    return replace(largest, where=f"{largest.where}; {note}") if note else largest


FILES: dict[str, Callable[[KeptCase], Compared]] = {
    "loaded = loaded again": loaded_again,
    "tokens kept = encoded now": encoded,
    "exports = original": exported,
}
