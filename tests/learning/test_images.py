"""The recipes digits-vit and digits-cnn, shortened: digits by a Transformer, an LSTM and a bag over patches,
and by convolutions."""

import pytest

from regardant import config, run
from regardant.tasks import load_recipe


def accuracy(folder, *overrides, name="digits-vit"):
    """Return the share of correct labels on the test set."""
    given = ["training.precision=float32", "training.attention_kernel=sdpa", "training.processes=1"]
    recipe = load_recipe(config.recipe(name), [*given, *overrides])
    assert run.train(recipe, folder, lambda line: None).finished
    return run.load(folder).evaluate()["test"]["accuracy"]


@pytest.mark.parametrize(
    ("overrides", "least", "most"),
    [
        pytest.param((), 0.9, 1.0, id="transformer"),
        pytest.param(("model.kind=recurrent",), 0.9, 1.0, id="lstm"),
        # A bag knows the mean of each pixel over the patches, and not where the patches stand.
        pytest.param(("model.kind=bag",), 0.5, 0.9, id="bag"),
    ],
)
def test_digits_are_learned_from_patches(tmp_path, overrides, least, most):
    found = accuracy(tmp_path / "run", "training.max_epochs=15", "training.batch_tokens=256", *overrides)
    assert least <= found <= most


def test_digits_are_learned_by_convolutions(tmp_path):
    given = ["training.max_epochs=6", "training.batch_tokens=128", "model.channels=8"]
    assert accuracy(tmp_path / "run", *given, name="digits-cnn") > 0.8
