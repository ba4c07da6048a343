"""Models of both libraries that are timed side by side have the same weights and read the same batches."""

import sys

import pytest
import regardant_models
import torch
import torch.nn.functional as F
import transformers_models
from random_batches import PAD, batches
from transformers import activations
from transformers_attention import attend

from benchmarks import model_steps
from benchmarks.model_steps import OURS, SHAPES, THEIRS, bars, table
from benchmarks.records import Measurement

SMALL = {"rows": 2, "num_layers": 2, "length": 16}


def shape_of(name):
    return {**SHAPES[name], **SMALL}


@pytest.mark.parametrize("name", SHAPES)
def test_both_models_have_the_same_weights(name):
    shape = shape_of(name)
    ours, theirs = (
        sum(one.numel() for one in build(shape).parameters())
        for build in (regardant_models.build, transformers_models.build)
    )
    # BERT has two vectors of sentence types.
    assert theirs - ours == (2 * shape["d_model"] if shape["kind"] == "masked" else 0)


@pytest.mark.parametrize("name", SHAPES)
def test_both_models_have_the_same_activations(name):
    shape, x = shape_of(name), torch.linspace(-4, 4, 99)
    ours, theirs = regardant_models.build(shape), transformers_models.build(shape)
    used = [one.activation for one in ours.modules() if hasattr(one, "activation")]
    used_there = [one for one in theirs.modules() if type(one).__module__ == activations.__name__]
    assert len(used) == len(used_there) == shape["num_layers"] + (shape["kind"] == "masked")
    assert set(used) == {"gelu"} and all(torch.equal(activation(x), F.gelu(x)) for activation in used_there)


def test_the_masked_loss_is_that_of_all_tokens_and_the_head_reads_masked_ones_alone():
    shape = shape_of("BERT, 128 tokens")
    ((tokens, targets, count), *_) = batches(shape)
    model, read = transformers_models.build(shape).eval(), []
    whole = F.cross_entropy(model(tokens).logits.flatten(0, 1), targets.flatten(), ignore_index=PAD)
    model.cls.register_forward_pre_hook(lambda head, vectors: read.append(vectors[0].shape))
    torch.testing.assert_close(transformers_models.masked_loss(model, tokens, targets), whole)
    assert read == [(count, shape["d_model"])] and 0 < count < tokens.numel()


@pytest.mark.parametrize("name", SHAPES)
def test_a_batch_gives_both_a_loss_and_a_gradient_of_every_weight(name):
    shape = shape_of(name)
    ((block, targets, count), *_) = batches(shape)
    ours, theirs = regardant_models.build(shape), transformers_models.build(shape)
    (input,) = ours.inputs
    found = ours(**{input: block}, targets=targets)
    image = shape["kind"] == "image"
    assert int(found.count) == count == (len(targets) if image else int((targets != PAD).sum()))
    found.total.backward()
    loss = transformers_models.LOSSES[shape["kind"]]
    loss(theirs, block.permute(0, 3, 1, 2) if image else block, targets).backward()
    for model in (ours, theirs):
        assert all(one.grad is not None and one.grad.isfinite().all() for one in model.parameters())
    (other, *_), *_ = batches(shape)
    assert torch.equal(other, block)


def test_bars_are_ratios_to_the_fastest_in_equal_precision():
    speeds = {"float32": {OURS: 150.0, THEIRS: 100.0, "litgpt": 90.0}, "bfloat16": {OURS: 250.0, THEIRS: 200.0}}
    models = {"GPT-2, context 256": {"targets_per_second": speeds}}
    found = list(bars(models))
    assert [(one["value"], one["limit"], one["pass"]) for one in found] == [(1.5, 1.3, True), (1.25, 1.3, False)]
    assert found[0]["bar"] == "GPT-2, context 256, float32: times transformers"
    lines = list(table({"models": models, "bars": found, "versions": {}}))
    assert lines[1].split() == ["GPT-2,", "context", "256,", "float32", "150", "100", "90", "–", "1.5", "1.25"]


@pytest.mark.parametrize("name", SHAPES)
def test_the_attention_of_transformers_is_that_asked_for(name, monkeypatch):
    shape = shape_of(name)
    ((block, targets, _), *_) = batches(shape)
    block = block.permute(0, 3, 1, 2) if shape["kind"] == "image" else block
    model, loss = transformers_models.build(shape).eval(), transformers_models.LOSSES[shape["kind"]]
    fused, calls = F.scaled_dot_product_attention, []

    def counted(*given, **options):
        calls.append(1)
        return fused(*given, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counted)
    losses = {}
    for attention in ("sdpa", "matmul", "sdpa"):
        with attend(model, attention):
            losses[attention] = loss(model, block, targets)
        assert len(calls) == (shape["num_layers"] if attention == "sdpa" else 0)
        calls.clear()
    torch.testing.assert_close(losses["matmul"], losses["sdpa"])


@pytest.mark.parametrize("given", [True, False])
def test_a_result_says_whether_a_checkout_was_given(monkeypatch, tmp_path, given):
    kept = {}
    monkeypatch.setattr(sys, "argv", ["models", "--scratch", "--passes", "1"])
    monkeypatch.setattr(Measurement, "keep", lambda self, name, result: kept.update(result))
    speeds = {"float32": {OURS: 150.0, THEIRS: 100.0}}
    monkeypatch.setattr(model_steps, "measure", lambda *_: {"versions": {"torch": "2"}, "targets_per_second": speeds})
    monkeypatch.delenv("NANOGPT", raising=False)
    if given:
        monkeypatch.setenv("NANOGPT", str(tmp_path))
    model_steps.main()
    path = " NANOGPT=/path/to/nanoGPT" if given else ""
    assert kept["command"] == f'make bench-models{path} BENCH="--passes 1"'
    assert kept["versions"] == {"torch": "2"} | ({"nanoGPT": None} if given else {}), "the folder is no checkout"
