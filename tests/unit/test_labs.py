import os
from pathlib import Path

import pytest

from regardant.data.gold_alignments import gold_links
from regardant.data.grammar.config import GrammarConfig
from regardant.errors import DataError
from regardant.evaluation.alignment import parse_links
from regardant.run.fingerprints import write_sums
from regardant.studies import lectures
from regardant.studies.advice import BASELINE_COMPARISONS, Advice, advise
from regardant.studies.resumed import is_evaluated
from regardant.tasks import load_recipe
from regardant.training.metrics import Metric

SMALL = ("model.d_model=16", "model.d_ff=32", "model.num_heads=2", "model.num_layers=1", "training.batch_tokens=256")


def advice(transformer, simpler):
    scores = {"a bag of word vectors": simpler, "Transformer": transformer}
    numbers = dict.fromkeys(scores, 100)
    metric = Metric("accuracy", higher_is_better=True)
    return Advice(BASELINE_COMPARISONS["table"], metric, scores, numbers, numbers, 2000, "item", 2.0)


@pytest.mark.parametrize(
    ("transformer", "simpler", "advised"),
    [([0.8, 0.9], [0.7, 0.79], True), ([0.8, 0.9], [0.7, 0.8], False), ([0.8, 0.9], [0.7, 0.85], False)],
)
def test_a_transformer_is_advised_where_it_is_better_with_both_seeds(transformer, simpler, advised):
    found = advice(transformer, simpler)
    assert found.advised is advised
    assert found.lines()[0].startswith("answer          yes" if advised else "answer          no")


def test_advice_names_the_answer_and_what_was_measured():
    text = "\n".join(advice([0.8, 0.9], [0.7, 0.6]).lines())
    assert "2,000 items to train on; lectures advise against a Transformer below 10,000" in text
    assert "accuracy 0.8 and 0.9; 100 items a second" in text


def test_data_of_no_known_kind_is_one_line(tmp_path):
    (tmp_path / "a.bin").write_bytes(b"x")
    with pytest.raises(DataError, match=r"a.bin is of no known kind: give a table"):
        advise(tmp_path / "a.bin", tmp_path / "out", 1)
    with pytest.raises(DataError, match=r"there is no .*none.csv"):
        advise(tmp_path / "none.csv", tmp_path / "out", 1)


@pytest.mark.parametrize(
    ("name", "recipe"),
    [
        ("reviews #2.csv", "classification"),
        ("Reviews.CSV", "classification"),
        ("reviews.csv.zst", "classification"),
        ("reviews.jsonl.gz", "classification"),
        ("yes: no.Txt.zst", "language_modelling"),
        ("2024", "classification"),
        ("null", "classification"),
    ],
)
def test_data_is_trained_on_whatever_its_path(tmp_path, monkeypatch, name, recipe):
    monkeypatch.chdir(tmp_path)
    path, trained = Path(name), []
    path.write_text("x", encoding="utf-8") if path.suffix else path.mkdir()

    def interrupted(config, *given):
        trained.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr("regardant.studies.advice.train_in_turn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        advise(path, tmp_path / "out", 1, log=lambda line: None)
    assert (trained[0].task, trained[0].data.source) == (recipe, name)


@pytest.mark.slow
def test_a_table_is_advised_on_from_its_own_scores(tmp_path):
    rows = [f"{'good' if i % 2 else 'bad'} word{i % 7} word{i % 5},{'yes' if i % 2 else 'no'}" for i in range(200)]
    (tmp_path / "a.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    found = advise(tmp_path / "a.csv", tmp_path / "out", 0.2, log=lambda line: None)
    assert found.metric.name == "accuracy" and set(map(len, found.scores.values())) == {2}
    assert not found.advised  # a word decides, so a bag does as well
    assert 100 < found.targets <= 200 and any("against a Transformer below 10,000" in line for line in found.lines())


def test_the_grammar_is_read_in_the_other_direction_with_its_links(tmp_path):
    sizes = {"train_size": 20, "validation_size": 4, "test_size": 4, "heldout_size": 4}
    pairs = {}
    for direction in ("en-fr", "fr-en"):
        folder = tmp_path / direction
        folder.mkdir()
        splits = GrammarConfig(direction=direction, **sizes).read(folder, 1)
        texts = splits.validation[:4]
        pairs[direction] = list(texts["source"]), list(texts["target"]), gold_links(folder, "validation")
    forward, back = pairs["en-fr"], pairs["fr-en"]
    assert (forward[0], forward[1]) == (back[1], back[0])
    for ahead, behind in zip(forward[2], back[2], strict=True):
        assert {(j, i) for i, j in parse_links(ahead)} == set(parse_links(behind))


def test_every_lab_is_of_recipes_that_load():
    for lab in lectures.LABS.values():
        for recipe, overrides in lab.runs.values():
            config = load_recipe(lectures.document_of(recipe), overrides, recipe)
            assert config.data.kind == "grammar"


def test_labs_are_listed_and_an_unknown_one_is_one_line(regardant):
    said = regardant("lecture")
    assert said.code == 0 and len(said.lines) == len(lectures.LABS)
    said = regardant("lecture", "bahdanou")
    assert said.code == 2 and said.err.count("\n") == 1 and "bahdanau" in said.err


def test_an_evaluation_that_was_interrupted_or_is_of_earlier_weights_is_none(tmp_path):
    weights, first = tmp_path / "model.safetensors", tmp_path / "evaluation" / "test.json"
    first.parent.mkdir()
    weights.touch()
    first.write_text("{}", encoding="utf-8")
    assert not is_evaluated(tmp_path)  # as a kill leaves it before the second test set
    write_sums(tmp_path, {})
    assert is_evaluated(tmp_path)
    later = (tmp_path / "evaluation" / "SHA256SUMS").stat().st_mtime + 1
    os.utime(weights, (later, later))
    assert not is_evaluated(tmp_path)  # as more minutes leave it


@pytest.mark.slow
def test_a_lab_trains_compares_translates_and_draws(tmp_path):
    lines = lectures.lecture("bahdanau", tmp_path, 0.5, lambda line: None)
    text = "\n".join(lines)
    assert "bleu" in text.lower() and text.count(" -> ") == 4
    assert (tmp_path / "attention/attention.html").is_file() and (tmp_path / "comparison.html").is_file()
    assert not (tmp_path / "plain/attention.html").exists()
    evaluation = tmp_path / "plain" / "evaluation"
    for name in ("heldout.json", "SHA256SUMS"):  # as an interrupt leaves them
        (evaluation / name).unlink()
    assert lectures.lecture("bahdanau", tmp_path, 0.5, lambda line: None) == lines
    assert (evaluation / "heldout.json").is_file()
