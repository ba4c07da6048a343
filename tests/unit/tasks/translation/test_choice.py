import errno
import json
import shutil
import sys

import pytest

import regardant
from regardant.errors import RunError
from regardant.evaluation.translation import corpus_bleu
from regardant.tasks.translation.use import choice
from regardant.tasks.translation.use.choice import ComparedEngine

SUBWORDS = ("tokenizer.kind=bpe", "tokenizer.vocab_size=500")


@pytest.fixture
def own(trained, tmp_path, monkeypatch):
    """A copy of a trained run, whose few validation sentences are enough."""
    monkeypatch.setattr(choice, "FEWEST", 1)
    shutil.copytree(trained(*SUBWORDS).folder, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(("lost", "speedup", "passes"), [(0.1, 1.1, True), (0.11, 9.0, False), (0.0, 0.9, False)])
def test_an_engine_must_be_faster_and_as_good(lost, speedup, passes):
    assert ComparedEngine("ctranslate2-int8", 0.9, lost, speedup).passes is passes


def test_the_choice_is_made_once_for_the_same_weights(own, trained):
    said = []
    first = regardant.load(own).translation.choose_engine(said.append)
    assert len(said) == 1 and said[0].startswith("comparing engines on")
    assert regardant.load(own).translation.choose_engine(said.append) == first
    assert len(said) == 1
    later = trained(*SUBWORDS, "training.max_updates=60")
    for name in ("model.safetensors", "run.yaml"):
        shutil.copy(later.folder / name, own / name)
    assert regardant.load(own).translation.choose_engine(said.append).origin != first.origin
    assert len(said) == 2


def test_the_numbers_are_those_of_the_validation_text(own, monkeypatch):
    monkeypatch.setattr(choice, "BLEU_LOST", -1000.0)  # nothing passes: all are compared
    run = regardant.load(own)
    found = run.translation.choose_engine()
    assert found.engine == "torch"
    assert [one.name for one in found.compared] == list(choice.TRIED)
    pairs = run.translation.validation_text()
    ours, exact = (
        [one.text for one in run.translate(pairs["source"], engine=engine)]
        for engine in ("torch", "ctranslate2-float32")
    )
    float32 = found.compared[choice.TRIED.index("ctranslate2-float32")]
    assert float32.identical == sum(map(str.__eq__, ours, exact)) / len(ours)
    bleu = [corpus_bleu(texts, pairs["target"], run.config.evaluation) for texts in (ours, exact)]
    assert float32.bleu_lost == pytest.approx(bleu[0] - bleu[1])


def test_the_chosen_engine_translates_and_evaluates(own):
    (own / "engines").mkdir()
    kept = choice.EngineChoice("ctranslate2-float32", "by hand", (), origin(own))
    kept.save(own / "engines" / "choice.json")
    run = regardant.load(own)
    assert run.translation.on("auto").searcher.name == "ctranslate2-float32"
    scores = run.evaluate(engine="auto", beam_size=1)["test"]
    assert scores["engine"] == "ctranslate2-float32" and "bleu_lost" not in scores
    assert json.loads((own / "evaluation" / "test.json").read_text(encoding="utf-8")) == scores


def origin(folder):
    from regardant.interop.ctranslate2.export import origin_of

    return origin_of(regardant.load(folder).translator.model)


@pytest.mark.parametrize("text", ["", "[]", '{"engine": "rm -rf", "reason": "", "compared": [], "origin": ""}', "{"])
def test_a_damaged_choice_is_made_anew(own, text):
    (own / "engines").mkdir()
    (own / "engines" / "choice.json").write_text(text, encoding="utf-8")
    assert regardant.load(own).translation.choose_engine().engine in ("torch", *choice.TRIED)


def test_without_a_place_for_exports_and_the_choice_torch_is_chosen_each_time(own):
    (own / "engines").write_text("a file", encoding="utf-8")  # root can write to a read-only folder
    for _ in range(2):
        said = []
        found = regardant.load(own).translation.choose_engine(said.append)
        assert found.engine == "torch" and "cannot be written" in found.reason and len(said) == 1
    assert (own / "engines").read_text(encoding="utf-8") == "a file"


def test_exports_that_can_only_be_read_are_compared_anew_each_time(own, monkeypatch):
    regardant.load(own).translation.choose_engine()
    kept = own / "engines" / "choice.json"
    kept.unlink()

    def refused(path, content):
        raise RunError(f"cannot write {path}")

    monkeypatch.setattr(choice, "write_atomically", refused)
    for _ in range(2):
        said = []
        regardant.load(own).translation.choose_engine(said.append)
        assert len(said) == 1 and not kept.exists()


def test_a_full_disk_is_no_reason_to_keep_torch(own, monkeypatch):
    def full(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as change:
        change.setattr("regardant.interop.ctranslate2.export._write", full)
        found = regardant.load(own).translation.choose_engine()
    assert found.engine == "torch" and "No space left" in found.reason
    said = []
    regardant.load(own).translation.choose_engine(said.append)
    assert len(said) == 1 and said[0].startswith("comparing engines on")


def test_engines_that_are_not_chosen_are_freed(own, monkeypatch):
    monkeypatch.setattr(choice, "BLEU_LOST", -1000.0)
    translation = regardant.load(own).translation
    assert len(translation.choose_engine().compared) == len(choice.TRIED)
    assert set(translation.engines.ready) == {"torch"}


def test_few_validation_sentences_choose_nothing(trained):
    found = trained(*SUBWORDS).translation.choose_engine()
    assert str(found) == "engine torch (40 validation sentences are too few to compare engines: 100 needed)"


def test_a_model_that_no_engine_computes_falls_back_to_torch(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "FEWEST", 1)
    run = trained(*SUBWORDS, "training.max_updates=2", "model.positions.kind=alibi")
    shutil.copytree(run.folder, tmp_path / "run")
    found = regardant.load(tmp_path / "run").translation.choose_engine()
    assert found.engine == "torch" and "cannot compute model.positions.kind alibi" in found.reason
    assert "\n" not in str(found)


def test_without_ctranslate2_torch_translates(own, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("regardant.interop.ctranslate2")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    found = regardant.load(own).translation.choose_engine()
    assert found.engine == "torch" and found.reason.startswith("CTranslate2 is not installed")


def test_a_kept_choice_needs_no_validation_text(own):
    first = regardant.load(own).translation.choose_engine()
    shutil.rmtree(own / "data")
    assert regardant.load(own).translation.choose_engine() == first
