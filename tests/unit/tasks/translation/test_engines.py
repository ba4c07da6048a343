import json
import math
import shutil
import sys

import pytest
import torch

import regardant
from regardant.errors import ConfigError, RunError

SUBWORDS = ("tokenizer.kind=bpe", "tokenizer.vocab_size=500")


@pytest.fixture
def own(trained, tmp_path):
    """A copy of a trained run, to write to."""
    shutil.copytree(trained(*SUBWORDS).folder, tmp_path / "run")
    return tmp_path / "run"


def test_an_engine_translates_lines_as_torch_does(own, test_set):
    """Blank, long and ordinary ones: only the search is another."""
    lines = [*test_set.sources[:8], "", " ".join(test_set.sources[:12])]
    run = regardant.load(own)
    ours, theirs = (run.translate(lines, engine=engine) for engine in ("torch", "ctranslate2-float32"))
    assert ours[9].pieces > 1
    for one, other in zip(ours, theirs, strict=True):
        assert (one.source, one.text, one.pieces, one.notes) == (other.source, other.text, other.pieces, other.notes)
        assert other.score == pytest.approx(one.score, abs=1e-4)


def test_products_in_bfloat16_are_an_engine(trained, test_set):
    """Not a precise one: most sentences come out alike, and the scores of those are not far off."""
    run, lines = trained(*SUBWORDS), test_set.sources[:30]
    ours, rounded = (run.translate(lines, engine=engine) for engine in ("torch", "torch-bfloat16"))
    assert [one.score for one in rounded] != [one.score for one in ours]
    alike = [(one.score, other.score) for one, other in zip(ours, rounded, strict=True) if one.text == other.text]
    assert len(alike) >= 20
    assert [other for _, other in alike] == pytest.approx([one for one, _ in alike], abs=0.1)
    assert run.trained.engines.on("torch-bfloat16").searcher.name == "torch-bfloat16"


def test_an_engine_is_exported_once_into_the_run(own):
    run = regardant.load(own)
    run.translate(["the cat"], engine="ctranslate2")
    assert [path.name for path in (own / "engines").iterdir()] == ["ctranslate2-int8"]
    written = (own / "engines" / "ctranslate2-int8" / "model.bin").stat().st_ino
    assert run.trained.engines.on("ctranslate2") is run.trained.engines.on("ctranslate2")
    regardant.load(own).translate(["the cat"], engine="ctranslate2")
    assert (own / "engines" / "ctranslate2-int8" / "model.bin").stat().st_ino == written


def test_a_patient_engine_uses_the_same_export(own):
    """It waits for more hypotheses, and never writes a poorer one."""
    run = regardant.load(own)
    lines = list(run.translation.validation_text()["source"])
    plain, patient = (run.translate(lines, engine=f"ctranslate2-float32{one}") for one in ("", "-patient"))
    assert [path.name for path in (own / "engines").iterdir()] == ["ctranslate2-float32"]
    assert run.trained.engines.on("ctranslate2-float32-patient").searcher.name == "ctranslate2-float32-patient"
    assert all(one.score <= other.score + 1e-6 for one, other in zip(plain, patient, strict=True))
    assert [one.text for one in plain] != [one.text for one in patient]


def test_weights_that_came_later_are_exported_anew(own, trained, test_set):
    lines = test_set.sources[:20]
    before = [one.text for one in regardant.load(own).translate(lines, engine="ctranslate2-float32")]
    later = trained(*SUBWORDS, "training.max_updates=60")
    for name in ("model.safetensors", "run.yaml"):
        shutil.copy(later.folder / name, own / name)
    after = [one.text for one in regardant.load(own).translate(lines, engine="ctranslate2-float32")]
    assert after != before
    assert after == [one.text for one in later.translate(lines)]


def test_an_evaluation_says_which_engine_searched_and_what_it_lost(own):
    run = regardant.load(own)
    scores = run.evaluate(engine="ctranslate2", beam_size=1)["test"]
    assert scores["engine"] == "ctranslate2-int8"
    kept, of_engine = (own / "evaluation" / folder / "test.json" for folder in ("", "ctranslate2-int8"))
    on_torch = json.loads(kept.read_text(encoding="utf-8"))
    assert json.loads(of_engine.read_text(encoding="utf-8")) == scores
    assert on_torch["engine"] == "torch" and "bleu_lost" not in on_torch
    assert scores["bleu_lost"] == pytest.approx(on_torch["bleu"] - scores["bleu"])
    scores["bleu_lost"] = 0.123
    assert "  -0.12 BLEU by ctranslate2-int8 in place of torch" in run.trained.summary("test", scores)


def test_more_threads_are_measured_and_find_the_same(own, test_set):
    lines = test_set.sources[:30]
    one = [found.text for found in regardant.load(own).translate(lines, engine="ctranslate2")]
    torch.set_num_threads(2)
    try:
        two = [found.text for found in regardant.load(own).translate(lines, engine="ctranslate2")]
    finally:
        torch.set_num_threads(1)
    assert two == one
    kept = json.loads((own / "engines" / "ctranslate2-int8" / "threads.json").read_text(encoding="utf-8"))
    assert (kept["cores"], math.prod(kept["many"]), math.prod(kept["alone"])) == (2, 2, 2)


def test_an_export_stands_by_itself(own, tmp_path):
    regardant.load(own).export("ctranslate2", tmp_path / "e", "float32")
    assert (tmp_path / "e" / "model.bin").is_file()
    assert not (own / "engines").exists()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("ctranslate", "there is no engine ctranslate; did you mean ctranslate2?"),
        ("onnx", "there is no engine onnx: take torch, torch-bfloat16, ctranslate2 or ctranslate2-float32"),
        ("torch-int8", "there is no engine torch-int8"),
        ("ctranslate2-int4", "there is no quantization int4: take int8, int16, float16, bfloat16, float32"),
    ],
)
def test_an_engine_that_there_is_not_is_refused(trained, name, told):
    with pytest.raises(ConfigError) as refused:
        trained(*SUBWORDS).translate(["the cat"], engine=name)
    assert str(refused.value).startswith(told)
    assert "\n" not in str(refused.value)


def test_a_model_that_the_engine_cannot_compute_is_refused(trained):
    run = trained(*SUBWORDS, "training.max_updates=2", "model.positions.kind=alibi")
    with pytest.raises(RunError, match=r"cannot compute model\.positions\.kind alibi .*: use --engine torch"):
        run.translate(["the cat"], engine="ctranslate2")
    assert not (run.folder / "engines").exists()


def test_an_engine_that_is_not_installed_says_how_to_install_it(trained, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("regardant.interop.ctranslate2")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    told = "^CTranslate2 is not installed: pip install 'ctranslate2>=4.8'$"
    run = regardant.load(trained(*SUBWORDS).folder)
    with pytest.raises(ConfigError, match=told):
        run.translate(["the cat"], engine="ctranslate2")
    assert run.translate(["the cat"])[0].text
