"""A model computes the same in every way: runs that do, and bugs in one of the ways (also in tests/mutants)."""

import json
import shutil
from pathlib import Path

import pytest
import torch

import regardant
from regardant.checks.agreement import COMPARISONS, Agreement
from regardant.checks.agreement.comparison import Compared
from regardant.training.checkpoints import save_weights
from tests.runs import runs_of

STORED = Path(__file__).parents[2] / "golden" / "format-1"


def copied(name, tmp_path):
    return regardant.load(shutil.copytree(STORED / name, tmp_path / name))


def with_other_weights(run):
    """The run with the weights of another training in its folder."""
    weights = run.trained.model.state_dict()
    largest = {name: 1.1 * one for name, one in weights.items()}
    tied = {one.data_ptr(): largest[name] for name, one in weights.items()}
    save_weights(run.folder / "model.safetensors", {n: tied[one.data_ptr()] for n, one in weights.items()}, {})
    return regardant.load(run.folder)


def test_the_ways_of_a_stored_translator_agree(tmp_path):
    """With dropout, padding, beams, and an export that was made for other weights before."""
    run = copied("encoder_decoder", tmp_path)
    weights = (run.folder / "model.safetensors").read_bytes()
    with_other_weights(run).translation.engines.on("ctranslate2-float32")
    (run.folder / "model.safetensors").write_bytes(weights)
    run.translation.engines.on("ctranslate2-float32")
    found = run.check()
    assert not found.failed, "\n".join(found.lines())
    assert not found.left_out and found.compared.keys() == COMPARISONS.keys()


def test_the_ways_of_a_translator_with_dropout_and_positions_agree(configure, made_once):
    found = runs_of("tiny-corpus", configure, made_once)(
        "model.dropout=0.3", "model.positions={kind: sinusoidal}"
    ).check()
    assert not found.failed, "\n".join(found.lines())


@pytest.mark.parametrize("kind", ["hard", "lsh", "top_k"])
def test_bfloat16_is_left_out_where_rounding_may_choose_other_keys(configure, made_once, kind):
    found = runs_of("tiny-corpus", configure, made_once)(f"model.encoder.self_attention.kind={kind}").check()
    assert not found.failed, "\n".join(found.lines())
    assert "rounded numbers may choose others" in found.left_out["bfloat16 = float32"]


def test_an_export_of_other_weights_is_found(tmp_path):
    run = copied("encoder_decoder", tmp_path)
    run.translation.engines.on("ctranslate2-float32")
    found = with_other_weights(run).check()
    assert "exports = original" in found.failed
    assert found.compared["exports = original"].where.startswith("ctranslate2-float32, validation item ")


def test_weights_that_are_replaced_in_memory_are_found(tmp_path):
    run = copied("luong", tmp_path)
    with torch.no_grad():
        next(run.trained.model.parameters()).mul_(1.01)
    assert run.check().failed == ["reload = original"]


def test_tokens_of_another_tokenizer_are_found(tmp_path):
    run = copied("luong", tmp_path)
    path = run.folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    model = content["source"]["model"]
    if "merges" in model:
        model["merges"] = model["merges"][: len(model["merges"]) // 2]
    else:
        last = sorted(model["vocab"], key=model["vocab"].get)[5:]
        model["vocab"].update({last[0]: model["vocab"][last[1]], last[1]: model["vocab"][last[0]]})
    path.write_text(json.dumps(content), encoding="utf-8")
    assert "tokens kept = encoded now" in regardant.load(run.folder).check().failed


TRAINED = ["trained_on_text", "trained_on_labels", "trained_on_series", "trained_on_digits"]


@pytest.mark.parametrize("name", TRAINED)
def test_the_ways_of_every_task_agree(request, name):
    found = request.getfixturevalue(name)().check()
    assert not found.failed, "\n".join(found.lines())
    assert len(found.compared) >= 6 and found.compared["repeated = first"].difference == 0
    assert all(found.left_out.values())


def test_the_command_prints_a_table_and_exits_with_1_for_a_difference(trained_on_series, monkeypatch, regardant):
    folder = trained_on_series().folder
    said = regardant("check", folder)
    assert (said.code, said.err) == (0, "") and said.out.splitlines()[-1].startswith("all ")
    said = regardant("check", folder, "--json")
    content = json.loads(said.out)
    assert content["failed"] == [] and {"name", "difference", "bound", "unit", "where", "agrees"} == set(
        content["compared"][0]
    )
    failed = Agreement({"cached = uncached": Compared(0.5, 0.001, where="row 3")}, {"x": "no attention"})
    monkeypatch.setattr("regardant.run.Run.check", lambda self: failed)
    said = regardant("check", folder)
    assert said.code == 1
    first, *others = said.out.splitlines()
    told = "FAILED cached = uncached 0.5 of at most 0.001 standard deviations of the scores, row 3"
    assert " ".join(first.split()) == told
    assert others == [f"-       x{' ' * 16}  left out: no attention", "1 of 1 FAILED"]


def test_nan_does_not_agree():
    assert not Compared(float("nan"), 1.0).agrees
