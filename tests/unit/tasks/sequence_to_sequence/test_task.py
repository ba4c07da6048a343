"""Images in, texts out: what `sequence_to_sequence` does for a source that is no text, and for one that is."""

import json
import os
import shutil
from itertools import islice, product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from regardant import run
from regardant.errors import ConfigError, DataError, RunError
from regardant.evaluation.texts import word_error_rate
from regardant.generation.length_penalty import Hypothesis
from regardant.run.tokens import elements
from regardant.tasks import load_recipe, task_named
from regardant.tasks.comparison import _read_answers
from regardant.tasks.sequence_to_sequence.items import read_texts
from tests.runs import BRIEF, STEADY

pytestmark = pytest.mark.xdist_group("sequence to sequence")  # one process makes what all tests share

TRAINING = {
    "max_updates": 20,
    "batch_tokens": 512,
    "validate_every": 10,
    **STEADY,
    "schedule": {"kind": "linear", "learning_rate": 0.003, "warmup_steps": 5},
    "averaging": {"kind": "none"},
}
MODEL = {
    "d_model": 32,
    "num_heads": 2,
    "d_ff": 64,
    "dropout": 0,
    "max_length": 24,
    "encoder": {"num_layers": 1},
    "decoder": {"num_layers": 1},
}
IMAGES = {
    "task": "sequence_to_sequence",
    "data": {"kind": "digits"},
    "input": {"kind": "image", "patch_size": 4},
    "tokenizer": {"kind": "character"},
    "model": MODEL,
    "training": TRAINING,
    "evaluation": {
        "metrics": ["chrf", "exact_match", "bleu", "word_error_rate", "well_formed"],
        "bootstrap_samples": 10,
    },
}


def train(recipe, folder, *overrides):
    said = []
    assert run.train(load_recipe(recipe, overrides), folder, log=said.append).finished
    return run.load(folder), said


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return train(IMAGES, tmp_path_factory.mktemp("images") / "run")


@pytest.fixture(scope="module")
def digit(tmp_path_factory):
    path = tmp_path_factory.mktemp("digit") / "digit.npy"
    np.save(path, load_digits().images[3].astype(np.float32) / 16)
    return str(path)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    lines = [f"{a} and {b}\t{b} {a}\n" for a in "abcdefgh" for b in "abcdefgh"]
    (folder / "pairs.tsv").write_text("text\tlabel\n" + "".join(lines), encoding="utf-8")
    recipe = IMAGES | {"data": {"kind": "table", "source": "pairs.tsv", "root": str(folder)}, "input": {"kind": "text"}}
    return train(recipe, folder / "run")[0], folder / "pairs.tsv"


def test_an_image_is_answered_by_a_text(images, digit):
    loaded, said = images
    assert any("8 x 8 images in 4 patches" in line for line in said)
    (found,) = loaded.predict([digit], beam_size=2)
    assert found.item == digit and len(found.details["candidates"]) == 1
    assert found.answer == loaded.trained.generate([digit], beam_size=2)[0].text


def test_folders_of_splits_are_splits_of_texts_too(tmp_path, monkeypatch):
    for number in range(20):
        for place in ("train/one", "train/two", "test/one"):
            (tmp_path / "images" / place).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / "images" / place / f"{number}.npy", np.full((8, 8), number, np.uint8))
    recipe = IMAGES | {"data": {"kind": "folders", "source": str(tmp_path / "images")}}
    loaded, said = train(recipe, tmp_path / "run", "training.max_updates=1")
    assert f"{tmp_path / 'images'}: splits by folder, test, train" in said
    sources = [*loaded.trained._own_sets()["test"][0]]
    assert len(sources) == 20 and all("/test/one/" in name for name in sources)
    monkeypatch.chdir(tmp_path / "images")
    ((name, (given, _, _)),) = loaded.trained._given([Path(".")]).items()
    assert name == "images" and sorted(given) == sorted(f"test/one/{number}.npy" for number in range(20))


def test_the_name_of_a_file_that_is_not_utf8_is_kept_with_a_replacement(tmp_path):
    for number in range(20):
        for label in ("one", "two"):
            (tmp_path / "images" / label).mkdir(parents=True, exist_ok=True)
            name = os.fsencode(tmp_path / "images" / label) + b"/caf\xe9%d.npy" % number
            with open(name, "wb") as file:
                np.save(file, np.full((8, 8), number, np.uint8))
    recipe = IMAGES | {"data": {"kind": "folders", "source": str(tmp_path / "images")}}
    loaded, _ = train(recipe, tmp_path / "run", "training.max_updates=1")
    sources = loaded.trained._own_sets()["validation"][0]
    assert all("/caf\N{REPLACEMENT CHARACTER}" in name for name in sources)


def test_matrices_are_tied_between_target_and_output_alone(images, tmp_path):
    loaded, _ = images
    assert loaded.config.model.tie_embeddings == "target"
    assert loaded.trained.model.head.weight is loaded.trained.model.target.table.weight
    with pytest.raises(ConfigError, match=r"given 'all', which needs one vocabulary .*: set model.tie_embeddings=targ"):
        train(IMAGES, tmp_path / "run", "model.tie_embeddings=all")


def test_it_is_inspected_between_patches_and_tokens(images, digit):
    loaded, _ = images
    found = loaded.inspect(digit, target="3")
    cross = found.columns("decoder.cross_attention")
    assert cross.labels == ["row 1, column 1", "row 1, column 2", "row 2, column 1", "row 2, column 2"]
    assert found.rows("decoder.cross_attention").labels == ["3", "<eos>"]
    assert found.note == "Text: 3"
    drawn = {one.kind: (one.source_layout is not None, one.target_layout is not None) for one in found.pictures}
    assert drawn == {
        "Encoder self-attention": (True, True),
        "Decoder self-attention": (False, False),
        "Cross-attention": (True, False),
    }
    total = sum(
        np.log(step["probability"]) for step in loaded.trained.views["token by token"](digit, target="3")["steps"]
    )
    assert total == pytest.approx(found.details["log_probability"], abs=1e-4)
    assert total == pytest.approx(loaded.trained.score([digit], ["3"])[0], abs=1e-4)


def test_tokens_are_shown_of_one_text_where_the_recipe_asks_for_several(images, digit, monkeypatch):
    loaded, _ = images
    several = loaded.config.model_copy(update={"generation": loaded.config.generation.replaced(nbest=3)})
    monkeypatch.setattr(loaded.trained, "config", several)
    assert loaded.trained.views["token by token"](digit)["steps"]


def test_its_beam_search_is_shown(images, digit):
    loaded, _ = images
    tree = loaded.trained.views["beam search"](digit, beam_size=3)
    (best, *_) = tree["best"]
    written = "".join(tree["candidates"][number]["token"] for number in best if number).replace("<eos>", "")
    assert written == loaded.trained.generate([digit], beam_size=3)[0].text


def test_it_is_evaluated_on_its_own_test_set(images):
    loaded, _ = images
    scores = loaded.evaluate(beam_size=1)["test"]
    kept = (loaded.folder / "evaluation" / "test.predictions.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [json.loads(line) for line in kept]
    assert len(answers) == scores["sentences"] == 360
    assert scores["exact_match"] == sum(one["target"] == one["answer"] for one in answers) / 360
    assert loaded.trained.summary("test", scores)[0].startswith("test: BLEU 0.00")
    with pytest.raises(DataError, match=r"--data x.tsv: this run's items come from digits: leave --data out"):
        loaded.evaluate(data=["x.tsv"])


def test_the_scores_that_a_recipe_names_are_computed(images, regardant):
    loaded, _ = images
    scores = loaded.evaluate(beam_size=1)["test"]
    kept = (loaded.folder / "evaluation" / "test.predictions.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [json.loads(line) for line in kept]
    wrong = sum(word_error_rate([one["answer"]], [one["target"]]) for one in answers)  # each target is one word
    assert scores["word_error_rate"] == pytest.approx(wrong / 360) and scores["well_formed"] == 0
    assert "bracket_f1" not in scores
    line = f"  word error rate {scores['word_error_rate']:.4f}, well formed 0.0000"
    assert line in loaded.trained.summary("test", scores)
    said = regardant("evaluate", loaded.folder, "--beam-size", "1", "--json")
    assert json.loads(said.out)["word_error_rate"] == scores["word_error_rate"]
    events = [json.loads(line) for line in (loaded.folder / "metrics.jsonl").read_text().splitlines()]
    named = {"chrf", "exact_match", "bleu", "word_error_rate", "well_formed"}
    assert all(named < set(event) and "bracket_f1" not in event for event in events if event["event"] == "validation")


def test_a_score_selects_weights_by_its_direction():
    chosen = load_recipe(IMAGES, ["training.best_by=word_error_rate"]).metric
    assert (chosen.name, chosen.higher_is_better) == ("word_error_rate", False)
    assert load_recipe(IMAGES, ["evaluation.metrics=[exact_match, bleu]"]).metric.name == "exact_match"
    assert load_recipe(IMAGES, ["evaluation.metrics=[]"]).metric.name == "loss"
    assert load_recipe(IMAGES | {"evaluation": {}}, []).metric.name == "chrf"
    told = r"training\.best_by: given 'bracket_f1', which evaluation\.metrics lacks: add it there"
    with pytest.raises(ConfigError, match=told):
        load_recipe(IMAGES, ["training.best_by=bracket_f1"])
    with pytest.raises(ConfigError, match=r"training\.best_by: given 'accuracy'; allowed: chrf, exact_match, bleu"):
        load_recipe(IMAGES, ["training.best_by=accuracy"])


def test_texts_that_are_no_trees_are_refused_before_training(tmp_path):
    with pytest.raises(
        DataError, match=r"^the text '\d' is no tree in brackets: give one such as .*, or leave bracket_f1"
    ):
        train(IMAGES, tmp_path / "run", "evaluation.metrics=[bracket_f1]")
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


def test_a_tree_with_an_unseen_word_is_validated_by_its_spans(tmp_path, monkeypatch):
    trees = ["(S (NP a cat) (VP sleeps))", "(S (NP a dog) (VP runs))"]
    rows = [{"text": f"number {number}", "label": trees[number % 2]} for number in range(24)]
    unseen = [{"text": "number 3", "label": "(S (NP a cat) (VP purrs))"}]
    for name, content in (("train", rows), ("validation", unseen)):
        lines = "".join(json.dumps(row) + "\n" for row in content)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    data = {"kind": "table", "source": "train.jsonl", "validation": "validation.jsonl", "root": str(tmp_path)}
    recipe = IMAGES | {"data": data, "input": {"kind": "text"}, "tokenizer": {"kind": "whitespace"}}
    loaded, _ = train(recipe, tmp_path / "run", *BRIEF, "evaluation.metrics=[bracket_f1, exact_match]")

    job = task_named("sequence_to_sequence").prepare(loaded.config, loaded.folder, lambda line: None).job
    tokenizer = loaded.trained.generator.tokenizer
    assert "<unk>" in tokenizer.normalise(unseen[0]["label"])
    monkeypatch.setattr(
        "regardant.tasks.sequence_to_sequence.job.generate", lambda *given, **more: as_found(tokenizer, trees[:1])
    )
    validated = job.validate(job.model.eval(), torch.device("cpu"))
    assert (validated["bracket_f1"], validated["exact_match"]) == (1, 0)


def test_its_best_weights_are_those_of_the_best_chrf(images):
    loaded, _ = images
    events = [json.loads(line) for line in (loaded.folder / "metrics.jsonl").read_text().splitlines()]
    validations = [event for event in events if event["event"] == "validation"]
    assert {"chrf", "exact_match", "bleu", "loss", "perplexity"} < set(validations[0])
    assert validations[-1]["best_chrf"] == max(event["chrf"] for event in validations)


def test_its_attention_is_measured_and_it_is_diagnosed(images):
    loaded, _ = images
    assert loaded.measure().heads["decoder.cross_attention"].entropy.shape == (1, 2)
    assert "future mask" in loaded.doctor().seen


def test_a_text_is_answered_by_a_text_and_a_blank_one_by_none(texts):
    loaded, table = texts
    answers = [one.answer for one in loaded.predict(["a and b", " ", "b and a"])]
    assert (
        answers[1] == ""
        and answers[0]
        and answers[::2] == [loaded.predict([text])[0].answer for text in ("a and b", "b and a")]
    )
    (given,) = loaded.evaluate(data=[table]).values()
    assert given["sentences"] == 64
    assert given["perplexity"] == pytest.approx(np.exp(-np.mean(_nats(loaded, table))), rel=1e-4)
    assert loaded.inspect("a and b").inputs["source"].units[0][0] == "a"


def test_attention_is_measured_over_a_file_of_pairs_that_fit(texts, tmp_path):
    loaded, table = texts
    assert loaded.measure(data=[table]).name == table.name
    longer = tmp_path / "long.tsv"
    longer.write_text(f"text\tlabel\n{'a and b ' * 20}\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"long.tsv: no pair fits the model's 24 tokens: give shorter ones"):
        loaded.measure(data=[longer])
    with pytest.raises(ConfigError, match="--data was given 2 times: give one file"):
        loaded.measure(data=[table, longer])


def test_items_that_are_cut_are_counted(texts, tmp_path):
    loaded, _ = texts
    opened = run.load(shutil.copytree(loaded.folder, tmp_path / "run"))
    (tmp_path / "long.tsv").write_text(f"text\tlabel\na and b\tb a\n{'a and b ' * 20}\tb\n", encoding="utf-8")
    scores = opened.evaluate(data=[tmp_path / "long.tsv"])["long.tsv"]
    assert (scores["sentences"], scores["cut"]) == (2, 1)
    assert opened.trained.summary("long.tsv", scores)[-1] == "  sources cut to the model's length: 1"


def test_runs_are_compared_by_the_scores_that_all_of_them_have(texts, tmp_path):
    loaded, table = texts
    long = tmp_path / "long.tsv"
    long.write_text(f"text\tlabel\na and b\tb a\n{'a and b ' * 20}\tb\n", encoding="utf-8")
    folders = [
        shutil.copytree(loaded.folder, tmp_path / name, ignore=shutil.ignore_patterns("evaluation"))
        for name in ("first", "other")
    ]
    for folder in folders:
        scores = run.load(folder).evaluate(data=[table, long])
        assert scores["long.tsv"]["perplexity"] is None
    found = run.compare(folders)
    both, fewer = (" ".join(found._table(name).lines()) for name in (table.name, long.name))
    assert "chrf" in both and "chrf" in fewer and found.page()
    assert "perplexity" in both and "perplexity" not in fewer


def test_a_line_separator_within_a_text_breaks_no_line_of_what_is_kept(tmp_path):
    texts = [f"{a}\u2028{b}\u0085c\u2029{a}" for a in "abcdefgh" for b in "abcdefgh"]
    lines = "".join(f"{text}\t{text}\n" for text in texts)
    (tmp_path / "pairs.tsv").write_text(f"text\tlabel\n{lines}", encoding="utf-8", newline="")
    data = {"kind": "table", "source": "pairs.tsv", "root": str(tmp_path)}
    loaded, _ = train(IMAGES | {"data": data, "input": {"kind": "text"}}, tmp_path / "run", *BRIEF)
    kept = (loaded.folder / "data" / "validation.pairs.jsonl").read_text(encoding="utf-8")
    assert "\u2028" in kept and "\u2029" in kept and "\u0085" in kept
    loaded.evaluate()
    other = shutil.copytree(loaded.folder, tmp_path / "other")
    (difference,) = run.compare([loaded.folder, other]).runs[1].accuracy_from_first.values()
    assert difference.difference == 0


def as_found(tokenizer, references):
    """Searched hypotheses that are the references, best first."""
    return [[Hypothesis(tokenizer.encode(one), 0.0, 0.0, finished=True)] for one in references]


@pytest.mark.parametrize("kind", ["character", "whitespace", "bpe"])
def test_a_perfect_answer_is_right_whatever_white_space_its_label_has(tmp_path, monkeypatch, kind):
    labels = ["{0}\n{1} z", "{0}\r\n\n{1}  z", " {0}  {1}\nz", "{0} {1}\tz "]
    rows = [(f"{a} {b}", labels[n % 4].format(a, b)) for n, (a, b) in enumerate(product("abcdefgh", repeat=2))]
    lines = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
    (tmp_path / "pairs.jsonl").write_text(lines, encoding="utf-8")
    data = {"kind": "table", "source": "pairs.jsonl", "root": str(tmp_path)}
    metrics = "evaluation.metrics=[exact_match, word_error_rate]"
    recipe = IMAGES | {"data": data, "input": {"kind": "text"}, "tokenizer": {"kind": kind}}
    loaded, _ = train(recipe, tmp_path / "run", *BRIEF, metrics)

    generator, asked = loaded.trained.generator, read_texts(loaded.folder / "data", "validation")[1]
    assert any("\n" in one for one in asked) and any("  " in one for one in asked)
    found = SimpleNamespace(search=lambda *given: as_found(generator.tokenizer, asked))
    monkeypatch.setattr(generator, "searcher", found)
    (scores,) = loaded.evaluate().values()
    other = shutil.copytree(loaded.folder, tmp_path / "other")
    kept = _read_answers(other, "validation", scores)
    job = task_named("sequence_to_sequence").prepare(loaded.config, loaded.folder, lambda line: None).job
    order = iter([asked[number] for planned in job.validation.plan(0) for number in job.validation.kept[planned]])
    monkeypatch.setattr(
        "regardant.tasks.sequence_to_sequence.job.generate",
        lambda model, source, *rest, **more: as_found(generator.tokenizer, islice(order, len(source))),
    )
    validated = job.validate(job.model.eval(), torch.device("cpu"))
    assert scores["exact_match"] == validated["exact_match"] == sum(kept.right) / len(asked) == 1
    assert scores["word_error_rate"] == validated["word_error_rate"] == 0
    assert list(kept.targets) == asked  # raw, so that they equal those of a run with another tokenizer


def test_other_data_may_not_take_the_name_of_a_test_set(texts, tmp_path):
    loaded, table = texts
    (name,) = loaded.trained._own_names()
    shutil.copy(table, tmp_path / name)
    with pytest.raises(ConfigError, match=rf"^--data {name} has the name of a test set of .*: rename the file$"):
        loaded.evaluate(data=[tmp_path / name])
    with pytest.raises(ConfigError, match=r"^--data was given 2 files named pairs.tsv: rename all but one$"):
        loaded.evaluate(data=[table, tmp_path / "pairs.tsv"])


def test_the_neighbours_of_target_tokens_are_target_tokens(images, digit):
    loaded, _ = images
    found = elements(loaded, loaded.folder, digit, 2)
    assert not found["source"].ids and not found["source"].neighbours
    written = set(loaded.trained.generator.tokenizer.tokens(range(loaded.trained.generator.tokenizer.vocab_size)))
    near = [token for one in found["target"].neighbours for token, _ in one]
    assert len(near) == 2 * len(found["target"].labels) and set(near) <= written


def _nats(loaded, table):
    """Log-probabilities of the tokens of a table's targets, each target's sum spread over its tokens."""
    rows = [line.split("\t") for line in table.read_text(encoding="utf-8").splitlines()[1:]]
    totals = loaded.trained.score([source for source, _ in rows], [target for _, target in rows])
    return [
        total / (len(target) + 1)
        for total, (_, target) in zip(totals, rows, strict=True)
        for _ in range(len(target) + 1)
    ]


def test_a_long_text_is_cut_and_said_so(texts):
    loaded, _ = texts
    (found,) = loaded.predict(["a and b " * 10])
    assert found.notes[0] == "longer than the model's 24 tokens: the rest was not read"


def test_the_words_of_translation_are_refused_by_name(images):
    loaded, _ = images
    with pytest.raises(RunError, match="is a run of sequence_to_sequence, which has no translate: it has predict"):
        loaded.translate(["a"])


def test_it_takes_over_the_encoder_of_a_classifier(tmp_path):
    sizes = {name: MODEL[name] for name in ("d_model", "num_heads", "d_ff", "dropout", "max_length")}
    classifier = {
        "task": "classification",
        "data": IMAGES["data"],
        "input": IMAGES["input"],
        "model": {"kind": "encoder_only", **sizes, "num_layers": 1},
        "training": TRAINING,
    }
    first, _ = train(classifier, tmp_path / "classifier")

    start = [f"training.from={tmp_path / 'classifier'}", "training.parts=[encoder]", "training.max_updates=1"]
    second, _ = train(IMAGES, tmp_path / "writer", *start, "training.schedule.learning_rate=1e-9")
    ours, theirs = second.trained.model.encoder.state_dict(), first.trained.model.encoder.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(np.allclose(ours[name], theirs[name], atol=1e-6) for name in ours)
