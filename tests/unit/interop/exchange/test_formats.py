"""Runs in every format: the export answers as its run does, and its sample runs without this program."""

import ast
import json
import random
import sys
from importlib.resources import files

import pytest
import torch
from torch.testing import assert_close

from regardant import run
from regardant.errors import ConfigError, RunError
from regardant.interop.parity import sample_of
from regardant.run.exporting import NEEDS
from regardant.tasks import load_recipe
from tests.unit.interop.samples import sample

pytestmark = pytest.mark.usefixtures("shapes_unchecked")  # sizes of a graph are symbols

BPE = ("tokenizer={kind: bpe, vocab_size: 400}", "training.max_updates=90")
LABELS = "input.tokenizer={kind: word}"


@pytest.fixture(scope="module")
def tagger(made_once):
    """A tagger whose words are of several tokens."""

    def train(folder):
        tags = {"the": "D", "a": "D", "catcat": "N", "dog": "N", "sees": "V", "likes": "V", "red": "A"}
        draw = random.Random(1)
        texts = [draw.choices(list(tags), k=draw.randint(2, 8)) for _ in range(150)]
        (folder.parent / "tags.tsv").write_text(
            "\n\n".join("\n".join(f"{word}\t{tags[word]}" for word in text) for text in texts) + "\n", encoding="utf-8"
        )
        recipe = {
            "task": "tagging",
            "data": {"source": str(folder.parent / "tags.tsv")},
            "input": {"tokenizer": {"kind": "character"}},
            "model": {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_layers": 2, "max_length": 64, "dropout": 0.0},
            "training": {
                "max_updates": 150,
                "batch_tokens": 512,
                "precision": "float32",
                "attention_kernel": "sdpa",
                "processes": 1,
                "schedule": {"kind": "linear", "learning_rate": 5e-3, "warmup_steps": 10},
            },
        }
        assert run.train(load_recipe(recipe), folder, log=lambda line: None).finished

    return run.load(made_once("tagger", train))


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
    for line in ("the old cat sees a dog .", "a dog sleeps ."):  # several share the limit of the longest
        assert sample(tmp_path / "ct2", [line]) == [own.translate([line])[0].text]


@pytest.mark.slow
def test_a_language_model_as_a_graph_continues_as_here(trained_on_text, tmp_path):
    own = trained_on_text()
    exported = own.export("onnx", tmp_path / "onnx")
    assert exported.failures == () and exported.parity.identical == 1
    assert exported.parity.largest_difference < 1e-4 and exported.parity.metric == "perplexity"
    written, nothing = sample(tmp_path / "onnx", ["the cat", ""])
    assert nothing == "" and written == own.generate("the cat", temperature=0, max_tokens=8)[0]


@pytest.mark.parametrize("to", [pytest.param("onnx", marks=pytest.mark.slow), "torch"])
def test_a_classifier_as_a_graph_answers_as_here(trained_on_labels, tmp_path, to):
    own = trained_on_labels()
    exported = own.export(to, tmp_path / "there")
    assert exported.failures == () and exported.parity.identical == 1
    assert exported.parity.largest_difference < 1e-5
    lines = ["a good film", "bad"]
    assert sample(tmp_path / "there", [*lines, "", " "]) == [*(one.answer for one in own.predict(lines)), "", ""]


@pytest.mark.slow
def test_an_export_that_differs_ends_with_code_1(trained, regardant, tmp_path, monkeypatch):
    from regardant.interop.graphs import modules

    own, plain = trained(*BPE).folder, modules._attend
    monkeypatch.setattr(modules, "_attend", lambda q, k, v, view, scale: plain(q, k, v, view, 1.1 * scale))
    said = regardant("export", own, "--format", "onnx", "--out", tmp_path / "there", "--json")
    assert said.code == 1 and "the export differs from its run: outputs differ by" in said.err
    assert json.loads(said.out)["failures"] and "Beyond its bound" in (tmp_path / "there" / "README.md").read_text(
        "utf-8"
    )


def test_what_no_graph_can_express_is_refused(trained, trained_on_text, trained_on_series, tmp_path):
    window = "model.self_attention.kind=window"
    with pytest.raises(RunError, match="a graph cannot express the attention"):
        trained_on_text(window, "training.max_updates=1", "training.validate_every=1").export("onnx", tmp_path / "a")
    with pytest.raises(RunError, match="are not texts: export runs over texts"):
        trained_on_series().export("onnx", tmp_path / "a")
    with pytest.raises(RunError, match="torch programs need models that read a text at once"):
        trained(*BPE).export("torch", tmp_path / "a")
    with pytest.raises(RunError, match="ctranslate2 takes translators only, and this is a run of language_modelling"):
        trained_on_text().export("ctranslate2", tmp_path / "a")
    with pytest.raises(ConfigError, match="onnx has no quantization int4: take float32, int8"):
        trained(*BPE).export("onnx", tmp_path / "a", "int4")
    assert not (tmp_path / "a").exists()


def test_a_model_that_torch_cannot_trace_is_one_line(trained_on_labels, tmp_path, monkeypatch):
    loaded = trained_on_labels()
    head = type(loaded.trained.model.head)
    plain = head.scores
    monkeypatch.setattr(head, "scores", lambda self, x: plain(self, x) if x.values.sum() > 0 else -plain(self, x))
    with pytest.raises(RunError, match=r"^torch cannot trace this model \(.+\): use --format hf or onnx$") as refusal:
        loaded.export("torch", tmp_path / "there")
    assert "\n" not in str(refusal.value)


def test_an_export_is_compared_by_one_file(trained_on_labels, trained_on_text, tmp_path):
    for own in (trained_on_labels(), trained_on_text()):
        with pytest.raises(ConfigError, match="--data was given 2 times: give one file"):
            own.trained.exchange([tmp_path / "a", tmp_path / "b"])


def test_a_tagger_as_a_program_labels_words_as_here(tagger, tmp_path):
    exported = tagger.export("torch", tmp_path / "there")
    assert exported.failures == () and exported.parity.identical == 1 and exported.parity.run.score > 90
    line = "the catcat sees a dog"
    expected = [word["label"] for word in tagger.predict([line])[0].details["words"]]
    assert sample(tmp_path / "there", [line]) == [" ".join(expected)]


def test_padding_and_other_lengths_change_no_score(trained_on_labels, tmp_path):
    own = trained_on_labels()
    own.export("torch", tmp_path / "there")
    program = torch.export.load(tmp_path / "there" / "model.pt2").module()
    encoded = own.trained.codec.read(["the cat sees a dog", "a dog", "a dog and then the old red cat"])
    with torch.inference_mode():
        expected = torch.cat([own.trained.item_scores([one]) for one in encoded])
    assert_close(program(own.trained.codec.collate(encoded)), expected, atol=1e-5, rtol=0)


def test_a_mark_of_a_blank_is_text_to_a_classifier(trained_on_labels, tmp_path):
    own = trained_on_labels("input.tokenizer={kind: byte}", "training.max_updates=1", "training.validate_every=1")
    own.export("torch", tmp_path / "there")
    model = sample_of(tmp_path / "there").Model(tmp_path / "there")
    assert model.ids("a [MASK]") == own.trained.encoded("a [MASK]").tolist()


SAMPLES = [
    ("hf", "hf"),
    ("ctranslate2", "ctranslate2_translator"),
    ("onnx", "onnx_translator"),
    ("onnx", "onnx_writer"),
]


@pytest.mark.parametrize(("to", "name"), [*SAMPLES, ("onnx", "reader"), ("torch", "reader")])
def test_an_export_names_every_package_that_its_sample_imports(to, name):
    text = files("regardant.interop").joinpath("samples", f"{name}.py").read_text("utf-8")
    body = ast.parse(text).body
    imported = {alias.name.partition(".")[0] for one in body if isinstance(one, ast.Import) for alias in one.names}
    imported |= {one.module.partition(".")[0] for one in body if isinstance(one, ast.ImportFrom)}
    assert imported - sys.stdlib_module_names <= set(NEEDS[to].split())
