"""Runs in every format: the export answers as its run does, and its sample runs without this program."""

import json
import os
import subprocess
import sys

import pytest

from regardant.errors import ConfigError, RunError

pytestmark = pytest.mark.usefixtures("shapes_unchecked")  # sizes of a graph are symbols

BPE = ("tokenizer={kind: bpe, vocab_size: 400}", "training.max_updates=90")
LABELS = "input.tokenizer={kind: word}"


def sample(folder, lines):
    """The answers of an export's sample, in a process that cannot import this program."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = "import runpy, sys; sys.modules['regardant'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(folder / "sample.py")],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return found.stdout.splitlines()


@pytest.mark.slow
def test_a_translator_as_graphs_translates_as_here(trained, tmp_path):
    own = trained(*BPE)
    exported = own.export("onnx", tmp_path / "onnx")
    assert exported.failures == () and exported.parity.largest_difference < 1e-4
    assert exported.parity.identical == 1 and exported.parity.texts > 10
    lines = ["the old cat sees a dog .", "", "a dog sleeps ."]
    assert sample(tmp_path / "onnx", lines) == [one.text for one in own.translate(lines)]
    for line in exported.parity.table():
        assert line in (tmp_path / "onnx" / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_translator_of_eight_bits_is_smaller(trained, tmp_path):
    own = trained(*BPE)
    sizes = {}
    for stored in ("float32", "int8"):
        exported = own.export("onnx", tmp_path / stored, stored)
        sizes[stored] = sum(path.stat().st_size for path in (tmp_path / stored).glob("*.onnx"))
        assert exported.parity is not None
    assert sizes["int8"] < 0.9 * sizes["float32"]


def test_a_translator_of_ctranslate2_translates_as_here(trained, tmp_path):
    own = trained(*BPE)
    exported = own.export("ctranslate2", tmp_path / "ct2", "float32")
    assert exported.parity.largest_difference < 1e-3 and exported.parity.identical > 0.9
    lines = ["the old cat sees a dog .", "a dog sleeps ."]
    assert sample(tmp_path / "ct2", lines) == [one.text for one in own.translate(lines)]


@pytest.mark.slow
def test_a_language_model_as_a_graph_continues_as_here(trained_on_text, tmp_path):
    own = trained_on_text()
    exported = own.export("onnx", tmp_path / "onnx")
    assert exported.failures == () and exported.parity.identical == 1
    assert exported.parity.largest_difference < 1e-4 and exported.parity.metric == "perplexity"
    (written,) = sample(tmp_path / "onnx", ["the cat"])
    assert written == own.generate("the cat", temperature=0, max_tokens=64)[0]


@pytest.mark.parametrize("to", [pytest.param("onnx", marks=pytest.mark.slow), "torch"])
def test_a_classifier_as_a_graph_answers_as_here(trained_on_labels, tmp_path, to):
    own = trained_on_labels()
    exported = own.export(to, tmp_path / "there")
    assert exported.failures == () and exported.parity.identical == 1
    assert exported.parity.largest_difference < 1e-5
    lines = ["a good film", "bad"]
    assert sample(tmp_path / "there", lines) == [one.answer for one in own.predict(lines)]


@pytest.mark.slow
def test_an_export_that_differs_ends_with_code_1(trained, regardant, tmp_path, monkeypatch):
    from regardant.interop.graphs import modules

    own, plain = trained(*BPE).folder, modules._attend
    monkeypatch.setattr(modules, "_attend", lambda q, k, v, view, scale: plain(q, k, v, view, 1.1 * scale))
    said = regardant("export", own, "--format", "onnx", "--out", tmp_path / "there", "--json")
    assert said.code == 1 and "the export differs from its run: scores differ by" in said.err
    assert json.loads(said.out)["failures"] and "Beyond its bound" in (tmp_path / "there" / "README.md").read_text(
        "utf-8"
    )


def test_what_no_graph_can_express_is_refused(trained, trained_on_text, trained_on_series, tmp_path):
    window = "model.self_attention.kind=window"
    with pytest.raises(RunError, match="a graph cannot express the attention"):
        trained_on_text(window, "training.max_updates=1", "training.validate_every=1").export("onnx", tmp_path / "a")
    with pytest.raises(RunError, match="are no texts: export runs over texts"):
        trained_on_series().export("onnx", tmp_path / "a")
    with pytest.raises(RunError, match="torch programs are of models that read a text at once"):
        trained(*BPE).export("torch", tmp_path / "a")
    with pytest.raises(RunError, match="ctranslate2 is of translators, and this is a run of language_modelling"):
        trained_on_text().export("ctranslate2", tmp_path / "a")
    with pytest.raises(ConfigError, match="onnx has no quantization int4: take float32, int8"):
        trained(*BPE).export("onnx", tmp_path / "a", "int4")
    assert not (tmp_path / "a").exists()
