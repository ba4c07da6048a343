"""The attention of a classifier in numbers: over the elements of its items, without padding."""

import json
import shutil

import pytest
import torch

from regardant import run
from regardant.errors import ConfigError, RunError
from regardant.inspection import capture, flow, measure_heads
from regardant.inspection.heads import Attended
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import SequenceClassConfig
from regardant.models.representations import tokens
from regardant.tasks.measures import attended
from regardant.tasks.probe import Probe

KIND = "encoder.self_attention"


@pytest.fixture
def own_run(trained_on_labels, tmp_path):
    """A copy to write to."""
    return run.load(shutil.copytree(trained_on_labels().folder, tmp_path / "run"))


def test_every_item_counts_as_if_it_were_read_alone(own_run):
    found, trained = own_run.measure(), own_run.trained
    assert found.title() == f"validation: {found.sentences} items" and list(found.heads) == [KIND]
    split = trained._splits()["validation"].first(100)
    rows = []
    for ids in split.items:
        with torch.inference_mode(), capture(trained.model, "*.weights") as records:
            trained.scores({"input": trained.codec.collate([ids])})
        weights = torch.cat([records.whole(place) for place in records])
        labels = trained.codec.labels(ids)
        rows.append(Attended(weights, torch.tensor([label == "▁." or label == "." for label in labels])))
    expected = measure_heads(rows)
    for name in ("entropy_share", "previous", "idle", "coverage", "distances"):
        torch.testing.assert_close(getattr(found.heads[KIND], name), getattr(expected, name), rtol=1e-4, atol=1e-5)


def test_equal_weights_on_the_keys_of_a_window_are_uniform():
    sizes = {"d_model": 8, "num_heads": 2, "d_ff": 16, "num_layers": 1, "dropout": 0.0, "max_length": 16}
    config = EncoderOnlyConfig(**sizes, self_attention={"kind": "window", "window": 1})
    model = config.build(tokens(12), lambda d_model: SequenceClassConfig().build(d_model, 3)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    items = torch.tensor([[5, 6, 7, 8, 9, 10], [5, 6, 7, 8, 0, 0]])
    probe = Probe({"input": items}, torch.tensor([0, 1]), {"input": [["a"] * 6, ["a"] * 4]})
    rows = list(attended(model, [probe], KIND))
    assert [one.mask.shape for one in rows] == [(1, 2, 6, 6), (1, 2, 4, 4)]
    share = measure_heads(rows).entropy_share
    torch.testing.assert_close(share, torch.ones(1, 2, dtype=torch.float64), rtol=1e-5, atol=0)


def test_the_lens_reads_the_class_after_every_layer(own_run):
    lens = own_run.measure().lens
    assert [layer.layers for layer in lens] == [0, 1, 2]
    assert lens[-1].divergence == pytest.approx(0, abs=1e-5)
    assert lens[0].first < 0.75 < 0.9 < lens[-1].first  # a bag of embeddings does not know the order


def test_measures_are_kept_and_told_in_80_columns(own_run, regardant):
    said = regardant("measure", own_run.folder)
    assert said.code == 0 and max(map(len, said.lines)) <= 80
    assert "Encoder self-attention: where each head attends" in said.out
    kept = json.loads((own_run.folder / "measures" / "validation.json").read_text("utf-8"))
    assert kept["unit"] == "item" and len(kept["importance"][KIND]["ablation"]) == 2


def test_flow_is_sought_in_items_that_are_short_enough(own_run, monkeypatch):
    found, trained = own_run.measure(), own_run.trained
    batches = trained.batches(trained._splits()["validation"].first(100))
    rows = list(attended(trained.model, [trained._probe(batches, one) for one in batches.plan(0)], KIND))[:3]
    expected = measure_heads(Attended(flow(one.weights)[None, None], one.idle) for one in rows)
    torch.testing.assert_close(found.flow[KIND].entropy, expected.entropy)
    monkeypatch.setattr("regardant.tasks.measures.LONGEST_FLOW", 1)
    short = own_run.measure()
    assert not short.flow and short.notes == ["no flow of Encoder self-attention: every item has more than 1 elements"]
    assert short.lines()[-1] == short.notes[0]


def test_items_of_a_file_are_measured_under_its_name(own_run, labelled_files):
    found = own_run.measure(data=[labelled_files / "test.tsv"])
    assert (found.name, found.sentences) == ("test.tsv", 60)
    with pytest.raises(ConfigError, match="--data was given 2 times: give one file"):
        own_run.measure(data=["one", "two"])
    with pytest.raises(ConfigError, match="--treebank needs the encoder of a translator: leave it out"):
        own_run.measure(treebank="a.conllu")


def test_an_item_longer_than_a_usual_batch_is_read_to_the_model_s_length(own_run):
    trained = own_run.trained
    trained.max_length = 10_000
    assert trained.batches(trained._splits()["validation"]).max_length == 10_000


def test_a_class_token_is_an_element_that_says_little(trained_on_labels):
    found = trained_on_labels("head.pooling=class_token", "training.max_updates=5").measure()
    assert found.heads[KIND].idle.shape == (2, 2)


def test_the_attention_of_images_is_measured_patch_by_patch(trained_on_digits):
    run = trained_on_digits()
    found = run.measure()
    assert (found.title(), list(found.heads), found.notes) == ("validation: 100 items", [KIND], [])
    trained, split = run.trained, run.trained._splits()["validation"].first(100)
    with torch.inference_mode(), capture(trained.model, "*.weights") as records:
        trained.scores({"input": trained.codec.collate(split.items)})
    weights = torch.stack([records.whole(place) for place in records], 1).double()  # [N, L, H, 4, 4]
    entropy = torch.special.entr(weights).sum(-1).mean((0, -1))
    torch.testing.assert_close(found.heads[KIND].entropy, entropy, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        found.heads[KIND].own, weights.diagonal(dim1=-2, dim2=-1).mean((0, -1)), rtol=1e-4, atol=1e-5
    )
    answers = trained.scores({"input": trained.codec.collate(split.items)}).argmax(-1)
    assert found.lens[-1].first == pytest.approx((answers.numpy() == split.targets).mean(), abs=1e-6)
    assert not any("token" in line and "special token" not in line for line in found.lines())


def test_a_model_without_attention_is_refused_in_one_line(trained_on_labels):
    for kind in ("bag", "recurrent"):
        with pytest.raises(RunError, match="this model has no attention to measure"):
            trained_on_labels(f"model={{kind: {kind}}}", "training.max_updates=5").measure()
