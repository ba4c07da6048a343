"""Classifiers of digits as baselines of the recipe `digits-clip`: they learn from labels, the recipe does not.

.venv/bin/python -m benchmarks.baselines.digits_clip
"""

from . import digits


def measure() -> dict[str, dict[str, float]]:
    """Return the accuracies by classifier, under the name of the matcher's score."""
    return {name: {"zero_shot_accuracy": scores["accuracy"]} for name, scores in digits.measure().items()}


if __name__ == "__main__":
    print(measure())
