import json

import pytest

CONLLU = "\n".join(
    "\t".join([str(n), form, "_", "_", "_", "_", str(governor), relation, "_", "_"])
    for n, (form, governor, relation) in enumerate([("the", 2, "det"), ("cat", 3, "nsubj"), ("sat", 0, "root")], 1)
)


@pytest.fixture
def treebank(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(f"{CONLLU}\n\n" * 50, encoding="utf-8")
    return path


def test_measure_prints_tables_and_keeps_them(regardant, own_run, treebank):
    said = regardant("measure", own_run, "--treebank", treebank)
    assert said.code == 0, said.err
    assert said.lines[0] == "validation: 8 pairs"
    assert any(line.startswith("Cross-attention: where each head attends") for line in said.lines)
    assert any(line.startswith("nsubj") for line in said.lines)
    assert said.err == f"kept in {own_run / 'measures'}\n"
    assert (own_run / "measures" / "validation.txt").read_text(encoding="utf-8") == said.out


def test_measure_takes_other_pairs_and_gives_all_digits(regardant, own_run, tmp_path):
    (tmp_path / "b.tsv").write_text(
        "the cat sat .\tle chat assis .\na dog ran .\tun chien courut .\n", encoding="utf-8"
    )
    said = regardant("measure", own_run, "--data", tmp_path / "b.tsv", "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert (told["name"], told["sentences"]) == ("b.tsv", 2)
    assert told == json.loads((own_run / "measures" / "b.tsv.json").read_text(encoding="utf-8"))
    assert len(told["heads"]["decoder.cross_attention"]["entropy"][0]) == 2
    assert told["notes"] == ["no gold alignments of these pairs: no error rates"]


def test_measure_says_in_one_line_what_it_cannot_do(regardant, own_run, tmp_path):
    (tmp_path / "bad.conllu").write_text("no treebank\n", encoding="utf-8")
    for arguments, message in (
        (["--data", "a.txt"], "--data a.txt is no table"),
        (["--treebank", tmp_path / "bad.conllu"], f"{tmp_path / 'bad.conllu'} line 1 has 1 tab-separated columns"),
        (["--treebank", tmp_path / "none.conllu"], f"there is no file {tmp_path / 'none.conllu'}"),
    ):
        said = regardant("measure", own_run, *arguments)
        assert (said.code, said.out) == (2, "")
        assert said.err.startswith(f"regardant: {message}") and said.err.count("\n") == 1
    (own_run / "data" / "text" / "splits.json").unlink()
    assert "holds no validation text: give some with --data" in regardant("measure", own_run).err


def test_measure_tells_gradients_of_the_run_s_own_data_alone(regardant, own_run, tmp_path):
    said = regardant("measure", own_run, "--gradients")
    assert said.code == 0, said.err
    assert said.lines[0] == "gradients: 8 rows of validation data"
    assert any(line.startswith("decoder.layers.0 ") for line in said.lines)
    assert "Gradient of the loss of one target by distance, source" in said.lines
    assert (own_run / "measures" / "gradients.txt").read_text(encoding="utf-8") == said.out
    told = json.loads(regardant("measure", own_run, "--gradients", "--json").out)
    assert told["distance"]["source"][0] is None and told["distance"]["source"][-1] > 0
    said = regardant("measure", own_run, "--gradients", "--data", tmp_path / "a.tsv")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "regardant: --gradients reads the run's own validation data alone: leave out --data and --treebank\n"
    )
