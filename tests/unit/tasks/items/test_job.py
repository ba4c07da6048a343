"""The job of a classifier: its validation loss."""

import pytest
import torch

from regardant.errors import ConfigError
from regardant.tasks import task_named

CPU = torch.device("cpu")


def test_the_validation_loss_is_the_mean_over_items(tiny_labels_config, tmp_path):
    """Batches are of unequal size: a mean over batches is another number."""
    config = tiny_labels_config("training.batch_tokens=64")
    job = task_named("classification").prepare(config, tmp_path / "run", lambda line: None).job
    batches = [job.validation.load(planned) for planned in job.validation.plan(0)]
    assert len({batch.count for batch in batches}) > 1
    model = job.model.eval()
    with torch.inference_mode():
        losses = [torch.nn.functional.cross_entropy(model.scores(**one.inputs), one.targets) for one in batches]
        found = job.validate(model, CPU)["loss"]
    items = sum(batch.count for batch in batches)
    expected = sum(float(loss) * batch.count for loss, batch in zip(losses, batches, strict=True)) / items
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", ["element_class", "forecast", "match", "next_token", "sentence_vector", "span"])
def test_a_head_that_gives_an_item_no_class_is_refused(tiny_labels_config, kind):
    with pytest.raises(ConfigError, match=f"head.*a head of kind {kind} gives an item no class: set head.kind=seq"):
        tiny_labels_config(f"head={{kind: {kind}}}")
