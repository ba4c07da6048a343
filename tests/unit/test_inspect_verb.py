import json
import sys

import pytest

SENTENCE = "the cat sat on a mat ."


@pytest.mark.parametrize(("name", "begins"), [("a.html", "<!doctype"), ("a.svg", "<svg"), ("a.json", "{")])
def test_inspect_keeps_what_the_name_of_the_file_says_and_prints_the_translation(
    regardant, tiny_run, tmp_path, name, begins
):
    said = regardant("inspect", tiny_run, SENTENCE, "--out", tmp_path / name)
    assert said.code == 0, said.err
    assert (tmp_path / name).read_text(encoding="utf-8").startswith(begins)
    assert said.out == regardant("translate", tiny_run, SENTENCE).out
    assert said.err == f"kept in {tmp_path / name}\n"


def test_inspect_takes_a_translation_of_the_user_s(regardant, tiny_run, tmp_path):
    said = regardant("inspect", tiny_run, SENTENCE, "--target", "le chat .", "--out", tmp_path / "a.json")
    assert said.out == "le chat .\n"
    told = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert told["target_tokens"] == ["▁le", "▁chat", "▁.", "<eos>"]
    assert [kind["kind"] for kind in told["attention"]] == [
        "Encoder self-attention",
        "Decoder self-attention",
        "Cross-attention",
    ]


def test_inspect_draws_one_head_named_as_the_picture_names_it(regardant, tiny_run, tmp_path):
    given = ("--kind", "encoder-self-attention", "--layer", "1", "--head", "2", "--unit", "pieces")
    assert regardant("inspect", tiny_run, SENTENCE, *given, "--out", tmp_path / "a.svg").code == 0
    drawing = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ">Encoder self-attention, layer 1, head 2</text>" in drawing and ">▁cat</text>" in drawing


def test_inspect_writes_a_pdf(regardant, tiny_run, tmp_path):
    assert regardant("inspect", tiny_run, SENTENCE, "--layer", "1", "--out", tmp_path / "a.pdf").code == 0
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")


def test_without_typst_a_pdf_is_refused_before_the_run_is_opened(regardant, tiny_run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "typst", None)
    said = regardant("inspect", tiny_run, SENTENCE, "--out", tmp_path / "a.pdf")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "a PDF needs typst, which is not installed: pip install 'regardant[pdf]'" in said.err
    assert not (tmp_path / "a.pdf").exists()


def test_the_help_says_that_layers_and_heads_count_from_1(regardant):
    assert "Layers and heads count from 1" in " ".join(regardant("inspect", "--help").out.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [SENTENCE, "--out", "a.gif"],
            "a.gif is none of .html, .svg, .png, .pdf, .json: give the file a name that ends in one",
        ),
        ([SENTENCE, "--out", "a.svg", "--layer", "2"], "Cross-attention has no layer 2: choose 1"),
        ([SENTENCE, "--out", "a.svg", "--layer", "1", "--head", "0"], "Cross-attention has no head 0: choose 1 to 2"),
        ([SENTENCE, "--kind", "memory"], "there is no memory: choose Encoder self-attention, Decoder self-attention"),
        ([SENTENCE, "--unit", "letters"], "unit is letters: choose words or pieces"),
        (["  "], "the text is blank: give a sentence to look at"),
        ([SENTENCE, "--target", "le " * 40], "line 1 has 41 tokens, the model takes 32: shorten it"),
    ],
)
def test_inspect_says_in_one_line_what_it_cannot_do(regardant, tiny_run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    said = regardant("inspect", tiny_run, *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"regardant: {message}") and said.err.count("\n") == 1
    assert not list(tmp_path.iterdir())
