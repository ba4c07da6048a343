import json
import math
import shutil

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from regardant import run
from regardant.data.gold_alignments import gold_links
from regardant.data.parallel import Splits
from regardant.data.toys import CopyConfig
from regardant.errors import ConfigError, DataError
from regardant.evaluation.alignment import alignment_error_rate, parse_links
from regardant.evaluation.translation import TranslationMetrics
from regardant.generation.config import GenerationConfig
from regardant.tasks.translation.evaluate import evaluation
from regardant.tasks.translation.evaluate.evaluation import (
    TestSet,
    choose_on_validation,
    evaluate_translator,
    read_test_set,
    summary,
)
from regardant.tasks.translation.look.alignment import choose_alignment, word_attention

GENERATION = GenerationConfig(beam_size=2, length_penalty=0.5)
METRICS = TranslationMetrics(bootstrap_samples=10)
JSON_KEYS = {"bleu", "chrf", "ter", "signature", "bleu_interval", "exact_match", "perplexity", "alignment_error_rate"}


@pytest.fixture(scope="module")
def text(trained):
    return trained().folder / "data" / "text"


@pytest.fixture(scope="module")
def evaluated(trained, text, test_set, tmp_path_factory):
    """The folder and the scores of the test set."""
    folder = tmp_path_factory.mktemp("evaluation")
    translator = trained().translator
    alignment = choose_on_validation(translator, text, Splits.load(text))
    scores = evaluate_translator(
        translator, test_set, folder, generation=GENERATION, metrics=METRICS, alignment=alignment
    )
    return folder, scores


def lines_of(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_every_file_has_a_line_a_sentence(evaluated, test_set):
    folder, _ = evaluated
    names = ["test.gold", "test.hyp", "test.json", "test.links", "test.ref", "test.src"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert lines_of(folder / "test.src") == test_set.sources
    assert lines_of(folder / "test.ref") == test_set.references
    assert lines_of(folder / "test.gold") == test_set.gold
    assert len(lines_of(folder / "test.hyp")) == len(lines_of(folder / "test.links")) == len(test_set.sources)


def test_line_breaks_inside_a_cell_do_not_part_its_line(trained, tmp_path):
    tested = TestSet("odd", ["The cat\nsat .", "The dog\r\nsat ."], ["Le chat\nassis .", "Le chien assis ."])
    generation, metrics = trained().generation(beam_size=1), trained().config.evaluation
    scores = evaluate_translator(trained().translator, tested, tmp_path, generation=generation, metrics=metrics)
    assert [len(lines_of(tmp_path / f"odd.{name}")) for name in ("src", "ref", "hyp")] == [2, 2, 2]
    assert lines_of(tmp_path / "odd.src")[1] == "The dog sat ."
    assert (scores["split"], scores["unfinished"]) == (0, 0)


def test_bleu_can_be_had_again_from_the_files_by_sacrebleu_alone(evaluated):
    folder, scores = evaluated
    bleu = BLEU().corpus_score(lines_of(folder / "test.hyp"), [lines_of(folder / "test.ref")])
    assert scores["bleu"] == pytest.approx(bleu.score, abs=1e-9)
    assert 0 < scores["bleu"] < 100
    assert scores["bleu_interval"][0] <= scores["bleu"] <= scores["bleu_interval"][1]
    assert "tok:13a" in scores["signature"]


def test_the_error_rate_can_be_had_again_from_the_files(evaluated):
    folder, scores = evaluated
    predicted, gold = ([parse_links(line) for line in lines_of(folder / f"test.{name}")] for name in ("links", "gold"))
    assert scores["alignment_error_rate"] == pytest.approx(alignment_error_rate(predicted, gold))
    assert 0 < scores["alignment_error_rate"] < 1


def test_the_scores_are_kept_as_they_are_told(evaluated):
    folder, scores = evaluated
    assert json.loads((folder / "test.json").read_text(encoding="utf-8")) == json.loads(json.dumps(scores))
    assert scores.keys() >= JSON_KEYS
    assert (scores["beam_size"], scores["length_penalty"], scores["sentences"]) == (2, 0.5, 110)


def test_the_hypotheses_are_the_translations(evaluated, trained, test_set):
    folder, scores = evaluated
    expected = [translation.text for translation in trained().translator.generate(test_set.sources, GENERATION)]
    assert lines_of(folder / "test.hyp") == expected
    same = sum(one == other for one, other in zip(expected, test_set.references, strict=True))
    assert scores["exact_match"] == same / len(expected)


def test_perplexity_is_of_the_references_by_token_with_eos(evaluated, trained, test_set):
    _, scores = evaluated
    translator = trained().translator
    tokens = sum(len(translator.tokenizers.target.encode(text)) + 1 for text in test_set.references)
    total = sum(translator.score(test_set.sources, test_set.references))
    assert scores["perplexity"] == pytest.approx(math.exp(-total / tokens), rel=1e-6)


def test_a_reference_longer_than_the_model_leaves_perplexity_out_and_nothing_else(trained, tmp_path):
    tested = TestSet("long", ["The judge sleeps."] * 2, ["Le juge dort.", "le " * 60])
    scores = evaluate_translator(trained().translator, tested, tmp_path, generation=GENERATION, metrics=METRICS)
    assert scores["perplexity"] is None and scores["sentences"] == 2


def test_pairs_longer_than_the_model_are_left_out_of_the_error_rate(trained, tmp_path, monkeypatch):
    loaded = run.load(shutil.copytree(trained().folder, tmp_path / "run"))
    translator = loaded.trained.translator
    monkeypatch.setattr(translator, "max_length", 12)
    scores, kept = loaded.evaluate(beam_size=1)["test"], loaded.folder / "evaluation"
    predicted, gold = ([parse_links(line) for line in lines_of(kept / f"test.{name}")] for name in ("links", "gold"))
    fits = [index for index, links in enumerate(predicted) if links]
    assert len(predicted) == len(gold) and scores["alignment_left_out"] == len(gold) - len(fits) > 0
    expected = alignment_error_rate([predicted[index] for index in fits], [gold[index] for index in fits])
    assert scores["alignment_error_rate"] == pytest.approx(expected)
    left_out = f"chosen on validation; {scores['alignment_left_out']} pairs longer than the model left out)"
    assert left_out in loaded.trained.summary("test", scores)[2]


def test_a_model_that_no_pair_fits_has_no_error_rate(trained, text, tmp_path, monkeypatch):
    translator = trained().translator
    choice = choose_on_validation(translator, text, Splits.load(text))
    tested = TestSet("long", ["The judge sleeps."], ["le " * 60], ["0-0"])
    scores = evaluate_translator(translator, tested, tmp_path, generation=GENERATION, metrics=METRICS, alignment=choice)
    assert scores["alignment_error_rate"] is None and scores["alignment_left_out"] == 1
    assert lines_of(tmp_path / "long.links") == [""]
    assert summary("long", scores)[2] == "  no alignment error rate: every pair is longer than the model"
    monkeypatch.setattr(translator, "max_length", 2)
    assert choose_on_validation(translator, text, Splits.load(text)) is None


def test_pairs_without_gold_links_have_no_error_rate(trained, tmp_path):
    tested = TestSet("own", ["The judge sleeps."], ["Le juge dort."])
    scores = evaluate_translator(trained().translator, tested, tmp_path, generation=GENERATION, metrics=METRICS)
    assert "alignment_error_rate" not in scores
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.hyp", "own.json", "own.ref", "own.src"]


def test_a_model_without_attention_is_evaluated_on_the_grammar(trained, text):
    model = "model={kind: recurrent, embedding_size: 16, hidden_size: 16, decoder: {kind: sutskever}}"
    translator = trained(model, "training.max_updates=1").translator
    assert evaluation.choose_on_validation(translator, text, Splits.load(text)) is None


def test_gold_links_are_kept_for_validation_and_tests_and_none_for_training(text):
    splits = Splits.load(text)
    assert gold_links(text, "train") is None
    assert len(gold_links(text, "validation")) == len(splits.validation)
    for tested in evaluation.test_sets(text, splits):
        assert len(tested.gold) == len(tested.sources) == len(tested.references)
    assert [tested.name for tested in evaluation.test_sets(text, splits)] == ["test", "heldout"]


def test_a_corpus_without_links_has_no_gold_and_no_place_to_read_them(trained, tmp_path):
    toy = tmp_path / "text"
    splits = CopyConfig(train_size=20, validation_size=5, test_size=5).read(toy, 1)
    assert [tested.gold for tested in evaluation.test_sets(toy, splits)] == [None]
    assert choose_on_validation(trained().translator, toy, splits) is None


def test_the_place_is_chosen_on_validation_and_beats_chance(trained, text, evaluated):
    translator, validation = trained().translator, Splits.load(text).validation
    choice = choose_on_validation(translator, text, Splits.load(text))
    _, scores = evaluated
    assert scores["alignment"] == choice.as_dict()
    gold = [parse_links(line) for line in gold_links(text, "validation")]
    draw = np.random.default_rng(1).dirichlet
    weights = word_attention(translator, validation["source"], validation["target"])
    chance = choose_alignment([draw(np.ones(pair.shape[-1]), pair.shape[:-1]) for pair in weights], gold)
    assert choice.validation_error_rate < chance.validation_error_rate - 0.01
    assert (choice.layer, choice.head in (-1, 0, 1)) == (0, True)


def test_people_get_bleu_its_signature_and_where_links_were_read(evaluated):
    _, scores = evaluated
    lines = summary("test", scores)
    assert lines[0].startswith(f"test: BLEU {scores['bleu']:.2f}") and "110 sentences" in lines[0]
    assert lines[1].strip() == scores["signature"]
    assert f"{scores['alignment_error_rate']:.3f}" in lines[2] and "chosen on validation" in lines[2]
    del scores["alignment_error_rate"]
    cut = scores["unfinished"]
    assert cut and summary("test", scores)[2:] == [f"  0 sources read in parts, {cut} cut at the length limit"]
    scores["unfinished"] = 0
    assert len(summary("test", scores)) == 2


# other pairs to test on


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.tsv", "the cat\tle chat\na dog\tun chien\n"),
        ("x.tsv", "source\ttarget\nthe cat\tle chat\na dog\tun chien\n"),
        ("x.tsv", "target\tsource\nle chat\tthe cat\nun chien\ta dog\n"),
        ("x.csv", 'the cat,le chat\n"a dog",un chien\n'),
        ("x.csv", "id,target,source\n1,le chat,the cat\n2,un chien,a dog\n"),
        ("x.jsonl", '{"source": "the cat", "target": "le chat"}\n{"source": "a dog", "target": "un chien"}\n'),
    ],
)
def test_a_table_of_pairs_is_read_with_or_without_names(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    tested = read_test_set([path])
    assert (tested.name, tested.sources, tested.references) == (
        name,
        ["the cat", "a dog"],
        ["le chat", "un chien"],
    )


def test_two_files_are_read_line_for_line(tmp_path):
    for name, text in (("x.en", "the\u2028cat\n\n"), ("x.fr", "le chat\n\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    tested = read_test_set([tmp_path / "x.en", tmp_path / "x.fr"])
    assert (tested.name, tested.sources, tested.references) == ("x.en", ["the\u2028cat", ""], ["le chat", ""])


@pytest.mark.parametrize(
    ("files", "error", "message"),
    [
        (["x.en"], ConfigError, "x.en is no table .*: give a second --data"),
        (["x.en", "x.fr", "x.de"], ConfigError, "--data was given 3 times"),
        (["none.tsv"], DataError, "there is no file"),
        (["three.tsv"], DataError, "has no column source; it has a, b, c"),
        (["empty.tsv"], DataError, "no pair to evaluate on"),
    ],
)
def test_what_is_no_test_set_is_named(tmp_path, files, error, message):
    (tmp_path / "three.tsv").write_text("a\tb\tc\n", encoding="utf-8")
    (tmp_path / "empty.tsv").write_text("", encoding="utf-8")
    with pytest.raises(error, match=message):
        read_test_set([tmp_path / name for name in files])
