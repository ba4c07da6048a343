"""The verbs import, encode and export."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

LINES = ["the old films sat on a mat .", "", "a cat"]


def test_a_folder_is_imported_used_and_exported(pair, regardant, tmp_path):
    there, own, back = pair("bert").folder, tmp_path / "run", tmp_path / "back"
    said = regardant("import", there, "--out", own)
    assert said.code == 0 and said.out == ""
    assert said.err == f"{own}: a run of masked_language_modelling, 5,256 parameters, from {there}\n"
    assert len(regardant("predict", own, "the [MASK] sat").lines) == 1
    said = regardant("export", own, "--format", "hf", "--out", back)
    assert said.code == 0 and said.err.endswith(f"wrote {back}\n")
    names = [
        "config.json",
        "model.safetensors",
        "sample.py",
        "settings.json",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert sorted(path.name for path in back.iterdir()) == ["README.md", *names]
    assert regardant("export", own, "--to", "hf", "--out", tmp_path / "other").code == 0


def test_a_refusal_is_one_line_and_leaves_nothing(pair, regardant, tmp_path):
    said = regardant("import", tmp_path, "--out", tmp_path / "run")
    assert (said.code, said.out) == (2, "") and len(said.err.splitlines()) == 1
    assert said.err.startswith(f"regardant: {tmp_path} has no config.json")
    said = regardant("export", pair("gpt2").run.folder, "--to", "hf", "--out", tmp_path / "x", "--quantization", "int8")
    assert said.code == 2 and said.err == "regardant: hf has no quantization int8: take float32\n"
    said = regardant("encode", pair("gpt2").run.folder, "a text")
    assert said.code == 2 and "is a run of language_modelling, which has no encode" in said.err
    said = regardant("encode", pair("bert_vectors").run.folder, "a text", "--input", "lines.txt")
    assert said.code == 2 and "leave one of them out" in said.err
    said = regardant("encode", pair("bert_vectors").run.folder, stdin=["", " "])
    assert said.code == 2 and "there are no texts to encode" in said.err
    said = regardant("evaluate", pair("bert_vectors").run.folder)
    assert said.code == 2 and "have no scores" in said.err
    said = regardant("evaluate", pair("bert").run.folder)
    assert said.code == 2 and "holds no data: give some with --data" in said.err
    assert not [path for path in tmp_path.iterdir() if path.name != "lines.txt"]


def test_lines_become_vectors(pair, regardant, tmp_path):
    own = pair("bert_vectors").run
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    texts = [line for line in LINES if line]
    expected = own.sentence_encoder.encode(texts).tolist()
    for said in (regardant("encode", own.folder, *texts), regardant("encode", own.folder, stdin=LINES)):
        assert [[float(number) for number in line.split()] for line in said.lines] == [
            pytest.approx(vector, abs=1e-5) for vector in expected
        ]
    said = regardant("encode", own.folder, "--input", tmp_path / "lines.txt", "--json")
    assert [one["text"] for one in json.loads(said.out)["vectors"]] == texts
    assert json.loads(said.out)["vectors"][0]["vector"] == pytest.approx(expected[0], abs=1e-6)


@pytest.mark.parametrize(
    ("verb", "name", "column"), [("encode", "bert_vectors", "vector"), ("predict", "bert_classes", "details")]
)
def test_a_row_of_characters_that_the_tokenizer_removes_has_no_answer(pair, regardant, tmp_path, verb, name, column):
    texts = [LINES[0], "\u200b", LINES[2], None, " \ufeff ", "\ufffd", "\u200b", LINES[0]]
    pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), tmp_path / "a.parquet")
    said = regardant(verb, pair(name).run.folder, "--data", tmp_path / "a.parquet", "--out", tmp_path / "out")
    assert said.code == 0, said.err
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert [row["text" if verb == "encode" else "item"] for row in rows] == texts
    assert [number for number, row in enumerate(rows) if row[column] is not None] == [0, 2, 7]
    assert rows[0][column] == pytest.approx(rows[7][column]) if verb == "encode" else rows[1]["answer"] == ""


def test_lines_of_characters_that_the_tokenizer_removes_are_blank(pair, regardant):
    lines = [LINES[0], "", "\u200b", LINES[2], "\ufeff"]
    said = regardant("predict", pair("bert_classes").run.folder, stdin=lines)
    assert (said.code, said.err) == (0, "")
    assert [number for number, line in enumerate(said.lines) if line] == [0, 3] and len(said.lines) == 5
    own = pair("bert_vectors").run.folder
    alone = regardant("encode", own, LINES[0], LINES[2])
    assert regardant("encode", own, stdin=lines).out == alone.out and len(alone.lines) == 2
    found = regardant("encode", own, "--search", LINES[2], stdin=lines)
    assert [line.partition("\t")[2] for line in found.lines] == [LINES[2], LINES[0]]
    said = regardant("encode", own, stdin=["", "\u200b"])
    assert said.code == 2 and said.err == "regardant: there are no texts to encode: give one a line\n"


def test_a_notebook_names_no_call_that_vectors_lack(pair):
    html = pair("bert_vectors").run._repr_html_()
    assert "run.inspect(item)" in html and "run.evaluate()" not in html and "run.measure()" not in html


def test_lines_are_searched(pair, regardant, tmp_path):
    own = pair("bert_vectors").run.folder
    (tmp_path / "lines.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    said = regardant("encode", own, "--input", tmp_path / "lines.txt", "--search", LINES[2])
    assert [line.partition("\t")[2] for line in said.lines] == [LINES[2], LINES[0]]
    assert said.lines[0].startswith("1.0000\t")
    said = regardant("encode", own, "--input", tmp_path / "lines.txt", "--search", LINES[2], "--count", 1, "--json")
    (found,) = json.loads(said.out)["found"]
    assert (found["number"], found["text"]) == (1, LINES[2])
    said = regardant("encode", own, "--input", tmp_path / "lines.txt", "--search", "a caf\udce9")
    assert (said.code, len(said.lines)) == (0, 2) and said.err.startswith("'a caf\ufffd': not valid UTF-8, read with")


def test_an_imported_run_is_not_resumed(pair, regardant):
    own = pair("bert").run.folder
    said = regardant("train", own / "run.yaml")
    assert said.code == 2 and said.err == (
        f"regardant: {own} was imported, not trained: start a run from it with training.from={own}\n"
    )


def test_a_run_of_vectors_is_not_trained(pair, regardant, tmp_path):
    recipe = {"task": "sentence_embedding", "data": {"source": "a.txt"}, "training": {"max_updates": 1}}
    (tmp_path / "r.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    said = regardant("train", tmp_path / "r.yaml", "--out", tmp_path / "run")
    assert said.code == 2 and "is imported and not trained: train a classifier from it" in said.err
    recipe = {
        "data": {"source": "a.txt"},
        "input": {"tokenizer": {"kind": "pretrained"}},
        "training": {"max_updates": 1},
    }
    recipe["task"] = "masked_language_modelling"
    (tmp_path / "a.txt").write_text("".join(f"a b c {number}\n" for number in range(30)), encoding="utf-8")
    (tmp_path / "r.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    said = regardant("train", tmp_path / "r.yaml", "--out", tmp_path / "other", "--set", f"data.root={tmp_path}")
    assert said.code == 2 and "tokenizer.kind pretrained comes with an imported model" in said.err
