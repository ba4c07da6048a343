"""Comparison of what a run folder keeps (weights, encoded data, exports) with what is computed from it."""

from collections.abc import Callable

import torch
from torch import Tensor

from regardant.checks.agreement.comparison import Compared, KeptCase, compare_scores
from regardant.checks.doctor.case import LeftOut

SAMPLES = 16
"""Items of the validation data that are encoded anew or decoded by exports."""

OF_EXPORTS = {"float32": 0.01, "int16": 0.05}
"""Bound of the difference of log-probabilities of a token in nats, by the type of an export's weights."""

OF_OTHER_EXPORTS = 0.5
"""The same of int8, float16 and bfloat16."""


def reloaded(case: KeptCase) -> Compared:
    """Compare the scores of the open model with those of the run opened anew."""
    again = case.open_anew().model
    with torch.inference_mode():
        if again.head.compares_inputs:
            vectors = again.vectors(**case.probe.inputs).values.float()
            scores: Tensor = torch.nn.functional.normalize(vectors, dim=-1)
        else:
            scores = again.scores(**case.probe.inputs).float()
    return compare_scores(case, scores, case.answers, bound=0.0)


def encoded(case: KeptCase) -> Compared:
    """Compare tokens that training read with those of the same texts encoded now."""
    pairs = case.trained.encoded_twice(SAMPLES)
    if not pairs:
        raise LeftOut("the run keeps no text beside its tokens")
    different = [number for number, (kept, now) in enumerate(pairs, 1) if list(kept) != list(now)]
    where = f"text {different[0]}" if different else ""
    return Compared(len(different), 0.0, f"of {len(pairs)} texts", where)


def exported(case: KeptCase) -> Compared:
    """Compare the log-probabilities that exports give to what they write with those of the model."""
    found = []
    for name, (difference, where) in case.trained.export_differences(SAMPLES).items():
        bound = OF_EXPORTS.get(name.rpartition("-")[2], OF_OTHER_EXPORTS)
        found.append(Compared(difference, bound, "nats a token", f"{name}, {where}"))
    if not found:
        raise LeftOut("nothing was exported into RUN/engines")
    return max(found, key=lambda one: one.difference / one.bound)


FILES: dict[str, Callable[[KeptCase], Compared]] = {
    "reload = original": reloaded,
    "tokens kept = encoded now": encoded,
    "exports = original": exported,
}
