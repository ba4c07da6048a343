"""TF-IDF and logistic regression of scikit-learn on SST-2: the baseline of the recipe `sst2`, on the same files.

    .venv/bin/python -m benchmarks.baselines.sst2

Features are words and bigrams; the strength of the penalty is chosen by cross-validation on the training file.
"""

import os
import sys
from pathlib import Path
from typing import Any

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Inverse penalties C to choose from."""

FOLDS = 5
"""Number of folds of the cross-validation on the training file."""


def folder() -> Path:
    """Return the folder of the data."""
    if "REGARDANT_DATA" not in os.environ:
        sys.exit("this benchmark reads SST-2: set REGARDANT_DATA to the folder that holds sst2")
    return Path(os.environ["REGARDANT_DATA"]) / "sst2"


def read(file: Path) -> tuple[list[str], list[str]]:
    """Return the texts and the labels of a TSV file without a header."""
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [text for text, _ in rows], [label for _, label in rows]


def measure() -> dict[str, dict[str, Any]]:
    """Return the accuracy on dev.tsv, the chosen penalty and the number of features."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    texts, labels = read(folder() / "train.tsv")
    features = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+")
    pipeline = make_pipeline(features, LogisticRegression(max_iter=1000))
    search = GridSearchCV(pipeline, {"logisticregression__C": STRENGTHS}, cv=FOLDS)
    search.fit(texts, labels)
    accuracy = float(search.score(*read(folder() / "dev.tsv")))
    return {
        "TF-IDF, logistic regression": {
            "accuracy": round(accuracy, 4),
            "C": search.best_params_["logisticregression__C"],
            "features": len(search.best_estimator_[0].vocabulary_),
        }
    }


if __name__ == "__main__":
    print(measure())
