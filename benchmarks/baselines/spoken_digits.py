"""Logistic regression of scikit-learn on spoken digits: the baseline of the recipe `spoken-digits`, on the same files.

    .venv/bin/python -m benchmarks.baselines.spoken_digits

A recording is represented by the mean and the standard deviation of each mel band over its frames, so the order of the
frames is lost. The strength of the penalty is chosen by cross-validation on the training recordings.
"""

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regardant import config
from regardant.data.labelled import Labelled
from regardant.modalities.sound import SoundCodec
from regardant.tasks import load_recipe

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
"""Inverse penalties C to choose from."""

FOLDS = 5
"""Number of folds of the cross-validation on training recordings."""


def features(codec: SoundCodec, items: Sequence[Labelled]) -> NDArray[np.float32]:
    """Return mean and standard deviation of each mel band over the frames of each recording [items, 2 * bands]."""
    frames = (codec.frames([one])[0].numpy() for one in codec.encode([item for item, _ in items]))
    return np.array([np.concatenate([one.mean(0), one.std(0)]) for one in frames])


def measure() -> dict[str, dict[str, Any]]:
    """Return the accuracy on the test recordings, the chosen penalty and the number of features."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    recipe = load_recipe(config.recipe("spoken-digits"))
    sets = recipe.data.read(recipe.seed)
    train = sets["train"] + sets["validation"]
    codec = recipe.input.fit([item for item, _ in train])
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    search = GridSearchCV(pipeline, {"logisticregression__C": STRENGTHS}, cv=FOLDS)
    search.fit(features(codec, train), [label for _, label in train])
    tested = features(codec, sets["test"])
    accuracy = float(search.score(tested, [label for _, label in sets["test"]]))
    return {
        "mean and deviation of mel bands, logistic regression": {
            "accuracy": round(accuracy, 4),
            "C": search.best_params_["logisticregression__C"],
            "features": tested.shape[1],
        }
    }


if __name__ == "__main__":
    if "REGARDANT_DATA" not in os.environ:
        sys.exit("this benchmark reads free_spoken_digits: set REGARDANT_DATA to the folder that holds it")
    print(measure())
