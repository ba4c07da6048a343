import numpy as np
import pytest

from benchmarks.baselines import digits
from benchmarks.baselines.digits import accuracies, images


@pytest.mark.filterwarnings("ignore:self.within_class_std_dev_")  # pixels in a corner are always black
def test_classifiers_are_fitted_to_training_images_and_chosen_on_validation_images(monkeypatch):
    monkeypatch.setattr(digits, "INVERSE_STRENGTHS", (1e-9, 0.1))
    sets = images(1)
    assert {name: pixels.shape for name, (pixels, _) in sets.items()} == {
        "train": (1293, 64),
        "validation": (144, 64),
        "test": (360, 64),
    }
    right = accuracies(sets)
    assert list(right) == ["nearest centroid", "logistic regression"]
    assert right["logistic regression"]["C"] == 0.1
    assert all(0.85 < scores["accuracy"] < 1 for scores in right.values())
    pixels, labels = sets["train"]
    wrong = accuracies({**sets, "train": (pixels, np.roll(labels, 1))})
    assert max(scores["accuracy"] for scores in wrong.values()) < 0.3
