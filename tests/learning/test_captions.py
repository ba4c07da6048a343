"""The recipe digits-captions, shortened: digits of an image in words, and attention to the digit that is written."""

import pytest

from benchmarks.captions import measure
from regardant import config, run
from regardant.tasks import load_recipe

BRIEF = [
    "data.train_size=2000",
    "data.validation_size=100",
    "data.test_size=100",
    "training.max_updates=250",
    "training.validate_every=250",
    "training.batch_tokens=1200",
    "training.label_smoothing=0",
    "training.optimizer.kind=muon",
    "training.schedule.learning_rate=1e-2",
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "training.processes=1",
    "evaluation.bootstrap_samples=10",
]

MODELS = {
    "Transformer": [
        "model.d_model=64",
        "model.d_ff=128",
        "model.dropout=0",
        "model.encoder.num_layers=1",
    ],
    "Show, Attend and Tell": [
        "model={kind: recurrent, cell: lstm, encoder: none, tie_embeddings: target, max_length: 20}",
        "model.positions={kind: two_dimensional, columns: 10}",
        "model.embedding_size=32",
        "model.hidden_size=64",
        "model.dropout=0",
        "training.max_updates=360",
        "training.validate_every=360",
        "training.batch_tokens=800",
        "training.schedule.learning_rate=2e-2",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_digits_are_read_in_their_order_where_attention_looks(tmp_path, model):
    recipe = load_recipe(config.recipe("digits-captions"), [*BRIEF, *MODELS[model]])
    assert run.train(recipe, tmp_path / "run", lambda line: None).finished
    loaded = run.load(tmp_path / "run")
    assert loaded.evaluate()["test"]["word_error_rate"] < 0.6
    assert measure(loaded)["attention_on_digit"] > 0.4
