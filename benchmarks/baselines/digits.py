"""Classifiers of scikit-learn on pixels of digits: the baselines of `digits-vit` and `digits-clip`, on the same images.

    .venv/bin/python -m benchmarks.baselines.digits

The inverse regularisation strength of logistic regression is chosen on validation images.
"""

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid

from regardant.data.digits import DigitsConfig

INVERSE_STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

Images = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Pixels [N, 64] and labels [N]."""


def images(seed: int) -> dict[str, Images]:
    """Return the images of all splits."""
    sets = DigitsConfig().read(seed)
    return {
        name: (np.array([image.ravel() for image, _ in items]), np.array([label for _, label in items]))
        for name, items in sets.items()
    }


def accuracies(sets: dict[str, Images]) -> dict[str, dict[str, float]]:
    """Return the accuracy on the test images, and the inverse strength C that was chosen."""
    fitted = [LogisticRegression(C=strength, max_iter=5000).fit(*sets["train"]) for strength in INVERSE_STRENGTHS]
    best = max(fitted, key=lambda model: model.score(*sets["validation"]))
    centroid = NearestCentroid().fit(*sets["train"])
    return {
        "nearest centroid": {"accuracy": round(centroid.score(*sets["test"]), 4)},
        "logistic regression": {"accuracy": round(best.score(*sets["test"]), 4), "C": best.C},
    }


def measure() -> dict[str, dict[str, float]]:
    """Return the scores on the test images by classifier."""
    return accuracies(images(1))


if __name__ == "__main__":
    print(measure())
