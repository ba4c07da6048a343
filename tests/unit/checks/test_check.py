"""A model computes the same in every way: runs that do, and bugs in one of the ways (also in tests/mutants)."""

import json
import math
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import regardant
from regardant.checks.agreement import COMPARISONS, Agreement, files, ways
from regardant.checks.agreement.comparison import Compared, KeptCase, compare_scores
from regardant.checks.contracts import CONTRACTS
from regardant.checks.doctor.case import LeftOut, worst
from regardant.errors import RunError
from regardant.training.checkpoints import save_weights
from tests.runs import runs_of

STORED = Path(__file__).parents[2] / "golden" / "format-1"


def copied(name, tmp_path):
    return regardant.load(shutil.copytree(STORED / name, tmp_path / name))


def case_of(run, open_anew=None):
    """The run as its comparisons take it."""
    again = open_anew or (lambda: regardant.load(run.folder).trained)
    return KeptCase(run.config, run.record.decided, run.record.plan, (), lambda: run.trained, again)


def case_of_answers(answers):
    """A case whose probe has these scores."""
    case = KeptCase(None, None, {}, (), None, None)
    vars(case)["answers"] = answers
    return case


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
    assert "rounding may change the choice" in found.left_out["bfloat16 = float32"]


def test_an_export_of_other_weights_is_found(tmp_path):
    run = copied("encoder_decoder", tmp_path)
    run.translation.engines.on("ctranslate2-float32")
    found = with_other_weights(run).check()
    assert "exports = original" in found.failed
    assert found.compared["exports = original"].where.startswith("ctranslate2-float32, validation item ")


def test_translations_that_do_not_end_are_not_compared(tmp_path, monkeypatch):
    from regardant.interop.ctranslate2.search import CTranslate2Searcher

    run, plain = copied("encoder_decoder", tmp_path), CTranslate2Searcher.search
    run.translation.engines.on("ctranslate2-float32")

    def cut(*given):
        return [[replace(one, finished=False) for one in row] for row in plain(*given)]

    monkeypatch.setattr(CTranslate2Searcher, "search", cut)
    found = run.check()
    assert not found.failed and found.left_out["exports = original"] == "no translation by ctranslate2-float32 ended"


@pytest.mark.parametrize("hashes", [2, 1])
def test_a_damaged_export_is_refused_by_its_name(tmp_path, hashes):
    """An export of an earlier version has one hash, and CTranslate2 itself finds the damage."""
    run = copied("encoder_decoder", tmp_path)
    run.translation.engines.on("ctranslate2-float32")
    folder = run.folder / "engines" / "ctranslate2-float32"
    content = (folder / "model.bin").read_bytes()
    (folder / "model.bin").write_bytes(content[: len(content) // 2])
    if hashes == 1:
        (folder / "origin.sha256").write_text(64 * "0", encoding="ascii")
    with pytest.raises(RunError) as refused:
        run.check()
    assert str(refused.value).startswith(f"{folder} ") and "\n" not in str(refused.value)
    regardant.load(run.folder).translate(["a cat"], engine="ctranslate2-float32")
    assert not regardant.load(run.folder).check().failed, "it was exported again"


def test_exports_are_left_out_where_their_engine_is_not_installed(tmp_path, monkeypatch):
    run = copied("encoder_decoder", tmp_path)
    run.translation.engines.on("ctranslate2-float32")
    for name in [name for name in sys.modules if name.startswith("regardant.interop.ctranslate2")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    found = regardant.load(run.folder).check()
    assert found.agrees and found.left_out["exports = original"].startswith("CTranslate2 is not installed: pip install")


def test_weights_that_are_replaced_in_memory_are_found(tmp_path):
    run = copied("luong", tmp_path)
    with torch.no_grad():
        next(run.trained.model.parameters()).mul_(1.01)
    assert run.check().failed == ["loaded = loaded again"]


def test_a_part_that_is_drawn_at_each_loading_is_found(tmp_path):
    case, drawn = case_of(copied("luong", tmp_path)), regardant.load(tmp_path / "luong").trained
    assert files.loaded_again(case).agrees
    with torch.no_grad():
        next(drawn.model.parameters()).normal_()
    assert not files.loaded_again(case_of(regardant.load(tmp_path / "luong"), lambda: drawn)).agrees


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


@pytest.mark.parametrize("damage", ["flipped", "cut", "missing"])
def test_a_run_without_its_weights_is_refused(own_run, regardant, damage):
    weights = own_run / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]) if damage == "flipped" else content[:100])
    if damage == "missing":
        weights.unlink()
    said = regardant("check", own_run)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "model.safetensors" in said.err


def test_weights_damaged_since_the_run_was_opened_are_refused(own_run):
    run = regardant.load(own_run)
    assert run.check().agrees
    (own_run / "model.safetensors").write_bytes(b"")
    with pytest.raises(RunError, match=r"model\.safetensors is not what training wrote"):
        run.check()


def test_a_check_that_compares_nothing_does_not_say_that_all_agree(trained_on_text, tmp_path, regardant):
    folder = shutil.copytree(trained_on_text().folder, tmp_path / "run")
    shutil.rmtree(folder / "data")
    said = regardant("check", folder)
    assert (said.code, said.lines[-1]) == (1, "nothing was compared")
    assert all(" left out: " in line for line in said.lines[:-1])
    assert regardant("check", folder, "--json").code == 1


def test_keys_that_no_query_may_attend_to_are_called_masked():
    assert not [name for name in (*COMPARISONS, *CONTRACTS) if "hidden" in name]


NAN = float("nan")


def test_nan_does_not_agree():
    assert not Compared(NAN, 1.0).agrees


@pytest.mark.parametrize("sizes", [[0.5, NAN, 0.7], [NAN, 0.5, 0.7], [0.5, 0.7, NAN], [0.5, math.inf, NAN]])
def test_the_worst_of_several_is_nan_wherever_it_stands(sizes):
    assert math.isnan(worst(sizes, float))
    assert worst([0.5, 0.7, 0.6], float) == 0.7


def test_nan_in_the_second_beam_does_not_agree(tmp_path, monkeypatch):
    steps = ways._steps_of_beams

    def second_is_nan(*given):
        found = steps(*given)
        found[:, 1] = NAN
        return found

    case = case_of(copied("encoder_decoder", tmp_path))
    assert ways.cached(case).agrees
    monkeypatch.setattr(ways, "_steps_of_beams", second_is_nan)
    assert math.isnan(ways.cached(case).difference)


def test_nan_in_the_second_place_of_attention_does_not_agree(tmp_path):
    run = copied("encoder_decoder", tmp_path)
    assert ways.kernel(case_of(run)).agrees
    with torch.no_grad():
        run.trained.model.decoder.layers[0].cross_attention.key_value.weight.fill_(NAN)
    found = ways.kernel(case_of(run))  # the encoder, which comes first, is whole
    assert math.isnan(found.difference) and found.where.startswith("decoder")


def test_nan_of_the_second_export_does_not_agree():
    found = {"ctranslate2-float32": (0.001, "validation item 1"), "ctranslate2-int8": (NAN, "validation item 2")}
    trained = SimpleNamespace(export_differences=lambda count: found)
    compared = files.exported(SimpleNamespace(trained=trained))
    assert not compared.agrees and compared.where == "ctranslate2-int8, validation item 2"


def test_an_export_that_ends_no_translation_is_left_out_by_its_name():
    found = {"ctranslate2-int8": (NAN, "")}
    case = SimpleNamespace(trained=SimpleNamespace(export_differences=lambda count: found))
    with pytest.raises(LeftOut, match=r"^no translation by ctranslate2-int8 ended$"):
        files.exported(case)
    found["ctranslate2-float32"] = (0.001, "validation item 1")
    compared = files.exported(case)
    assert compared.agrees and compared.difference == 0.001
    assert compared.where == "ctranslate2-float32, validation item 1; no translation by ctranslate2-int8 ended"


def test_json_has_null_for_a_difference_that_is_no_number():
    for difference in (NAN, math.inf):
        found = Agreement({"cached = uncached": Compared(difference, 0.001)}, {}).as_dict()
        assert json.loads(json.dumps(found, allow_nan=False))["compared"][0]["difference"] is None
        assert found["failed"] == ["cached = uncached"]


def test_a_score_that_is_masked_on_one_side_alone_differs():
    before = torch.tensor([[0.0, 1.0, -math.inf]])
    case = case_of_answers(before)
    assert compare_scores(case, before, before.clone()).difference == 0
    for other in ([[0.0, -math.inf, -math.inf]], [[0.0, 1.0, 2.0]]):
        assert compare_scores(case, before, torch.tensor(other)).difference == math.inf
