import json

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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [SENTENCE, "--out", "a.pdf"],
            "a.pdf is none of .html, .svg, .png, .json: give the file a name that ends in one",
        ),
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
