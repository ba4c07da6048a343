"""What training tells of the model at each validation: entropies by hand, and only what is real counts."""

import math

import numpy as np
import pytest
import torch

from regardant import config, run
from regardant.data.batching import PairBatch, pad
from regardant.tasks import load_recipe
from regardant.tasks.observation import PROBED, SAMPLES, _entropy, entropy_of_heads
from regardant.tasks.translation.task import Translation
from regardant.training.events import read_events

SIZES = (
    "model={kind: recurrent, embedding_size: 16, hidden_size: 32, num_layers: 1, max_length: 48, decoder: {kind: %s}}"
)


def test_entropy_is_that_of_the_shares():
    weights = torch.tensor([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], [[0.2, 0.2, 0.2], [-1.0, 3.0, 1.0]]])[None]
    first, second = _entropy(weights, torch.ones(1, 2, dtype=torch.bool))
    of_a_quarter = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert first == pytest.approx(math.log(2) / 2, abs=1e-4)
    assert second == pytest.approx((math.log(3) + of_a_quarter) / 2, abs=1e-4)
    only_first = _entropy(weights, torch.tensor([[True, False]]))
    assert only_first == pytest.approx([math.log(2), math.log(3)], abs=1e-4)


def test_a_weight_that_is_not_finite_has_no_entropy():
    assert _entropy(torch.full((1, 1, 1, 2), math.nan), torch.ones(1, 1, dtype=torch.bool)) == [None]


@pytest.mark.parametrize("model", [(), (SIZES % "bahdanau", "training.max_updates=2")], ids=["transformer", "bahdanau"])
def test_padding_makes_no_difference(trained, model):
    translator = trained(*model).translator
    pairs = [("The judge sleeps.", "Le juge dort."), ("The old judge sees the small cat.", "Le juge voit le chat.")]
    ids = [translator.pairs([source], [target]) for source, target in pairs]
    alone = [entropy_of_heads(translator.model, batch.read) for batch in ids]
    together = entropy_of_heads(translator.model, translator.pairs(*map(list, zip(*pairs, strict=True))).read)
    assert together.keys() == alone[0].keys() and together
    for kind, layers in together.items():
        rows = [batch.source.shape[1] if kind.startswith("encoder") else batch.target.shape[1] - 1 for batch in ids]
        for number, heads in enumerate(layers):
            for head, found in enumerate(heads):
                mean = sum(n * one[kind][number][head] for n, one in zip(rows, alone, strict=True)) / sum(rows)
                assert found == pytest.approx(mean, abs=2e-4)


def test_a_model_without_attention_has_nothing_to_tell(trained):
    model = trained(SIZES % "sutskever", "training.max_updates=2").trained.model
    assert entropy_of_heads(model, PairBatch(pad([[5, 6]]), pad([[5]], sos=True)).read) == {}


def test_every_validation_is_followed_by_what_was_seen(trained):
    run = trained()
    events = read_events(run.folder / "metrics.jsonl")
    validated = [event["update"] for event in events if event["event"] == "validation"]
    seen = [event for event in events if event["event"] == "observation"]
    assert [event["update"] for event in seen] == validated and len(seen) >= 2
    kinds = {"encoder.self_attention": (1, 2), "decoder.self_attention": (1, 2), "decoder.cross_attention": (1, 2)}
    for event in seen:
        assert {k: (len(v), len(v[0])) for k, v in event["entropy"].items()} == kinds
        assert len(event["samples"]) == SAMPLES
    assert [one["source"] for one in seen[0]["samples"]] == [one["source"] for one in seen[1]["samples"]]
    translated = run.translate([one["source"] for one in seen[-1]["samples"]], beam_size=1, length_penalty=0)
    assert [one["translation"] for one in seen[-1]["samples"]] == [one.text for one in translated]  # the last is best


def test_what_is_told_is_the_entropy_of_the_probe(trained):
    run = trained()
    validation = Translation().prepare(run.config, run.folder, lambda line: None).job.validation
    probe = validation.pairs.batch(validation.kept[:PROBED])
    told = [event for event in read_events(run.folder / "metrics.jsonl") if event["event"] == "observation"][-1]
    with torch.inference_mode():
        found = entropy_of_heads(run.translator.model, probe.read)
    for kind, layers in told["entropy"].items():
        for heads, measured in zip(layers, found[kind], strict=True):
            assert heads == pytest.approx(measured, abs=2e-3)


@pytest.mark.parametrize(
    ("recipe", "kind", "shape"),
    [
        ("sst2", "encoder.self_attention", (1, 2)),
        ("sst2-masked", "encoder.self_attention", (1, 2)),
        ("shakespeare", "decoder.self_attention", (1, 2)),
    ],
)
def test_every_task_with_attention_is_observed(tmp_path, recipe, kind, shape):
    texts = "".join(f"a {word} film {number}\t{number % 2}\n" for number, word in enumerate(["good", "bad"] * 40))
    (tmp_path / "items.tsv").write_text(texts, encoding="utf-8")
    small = {"kind": config.recipe(recipe)["model"].get("kind", "decoder_only"), "d_model": 16, "num_heads": 2}
    document = config.recipe(recipe) | {
        "data": config.recipe(recipe)["data"] | {"root": str(tmp_path), "source": "items.tsv"},
        "model": small | {"d_ff": 16, "num_layers": 1, "max_length": 16},
        "training": {"max_updates": 2, "batch_tokens": 64, "validate_every": 1, "precision": "float32"},
    }
    document["data"].pop("test", None)
    if recipe == "sst2-masked":
        document["data"]["source"] = ["items.tsv"]
    assert run.train(load_recipe(document), tmp_path / "run", lambda line: None).finished
    events = read_events(tmp_path / "run" / "metrics.jsonl")
    seen = [event for event in events if event["event"] == "observation"]
    assert len(seen) == 2 and np.array(seen[-1]["entropy"][kind]).shape == shape
    assert np.isfinite(np.array(seen[-1]["entropy"][kind])).all()
