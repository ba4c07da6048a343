import json

import pytest

CLEAN, CORRUPTED = "the cat sees", "the dog sees"


@pytest.fixture(scope="module")
def of_text(trained_on_text):
    return trained_on_text().folder


def test_trace_prints_a_row_for_each_position_and_a_column_for_each_layer(regardant, of_text):
    said = regardant("trace", of_text, CLEAN, CORRUPTED)
    assert said.code == 0, said.err
    assert said.lines[0].startswith("log-probability of ")
    rows = [line.split() for line in said.lines if " > " in line and "corrupted" not in line]
    assert [row[:3] for row in rows] == [["d", ">", "c"], ["o", ">", "a"], ["g", ">", "t"]]
    (head,) = (line.split() for line in said.lines if line.startswith("corrupted > clean"))
    assert head[3:] == ["0", "1"]


@pytest.mark.parametrize(
    ("name", "begins"), [("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.pdf", b"%PDF-"), ("a.json", b"{")]
)
def test_trace_keeps_what_the_name_of_the_file_says(regardant, of_text, tmp_path, name, begins):
    said = regardant("trace", of_text, CLEAN, CORRUPTED, "--out", tmp_path / name)
    assert (said.code, said.err) == (0, f"kept in {tmp_path / name}\n")
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_the_picture_shows_each_share_and_json_has_all(regardant, of_text, tmp_path):
    said = regardant("trace", of_text, CLEAN, CORRUPTED, "--json", "--out", tmp_path / "a.svg")
    told = json.loads(said.out)
    assert "".join(told["clean"]) != "".join(told["corrupted"]) and len(told["restored"]) == 2
    drawing = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert f"<title>d &gt; c after layer 1: {told['restored'][1][4]:.2f}</title>" in drawing
    assert ">100% is restored</text>" in drawing


def test_trace_says_in_one_line_what_it_cannot_do(regardant, of_text, tiny_run, trained_on_text, tmp_path):
    recurrent = trained_on_text("model={kind: recurrent, embedding_size: 8, hidden_size: 8}").folder
    for run, arguments, message in (
        (of_text, [CLEAN, "the dog"], "the texts have 12 and 7 tokens: give two of equal length"),
        (of_text, [CLEAN, CLEAN], "both texts make the answer equally likely: give two that differ in it"),
        (of_text, [CLEAN, " "], "the text is blank: give a text to look at"),
        (
            of_text,
            [CLEAN, CORRUPTED, "--out", "a.gif"],
            "a.gif is none of .svg, .png, .pdf, .json: give the file a name",
        ),
        (tiny_run, [CLEAN, CORRUPTED], f"{tiny_run} is a run of translation, and only a language model can be traced"),
        (recurrent, [CLEAN, CORRUPTED], "RecurrentLanguageModel has no residual stream that leads to its head"),
    ):
        said = regardant("trace", run, *arguments)
        assert (said.code, said.out) == (2, ""), message
        assert said.err.startswith(f"regardant: {message}") and said.err.count("\n") == 1
