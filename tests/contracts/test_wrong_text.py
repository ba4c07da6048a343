"""Wrong data for tasks over texts: a missing column, an empty file, an unseen label, a text longer than the model.

As in `test_wrong_input`, every answer is one line with exit code 2, or a note and a result.
"""

import copy
import json

import pytest

from regardant import run
from regardant.tasks import load_recipe

pytestmark = [pytest.mark.usefixtures("shapes_unchecked"), pytest.mark.xdist_group("wrong_text")]

SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_length": 12, "dropout": 0.0}
PAIR_SIZES = {"preset": None, "d_model": 16, "num_heads": 2, "d_ff": 32, "max_length": 12}
WORDS = {"tokenizer": {"kind": "word"}}

FILES = {
    "films.tsv": "text\tlabel\n" + "".join(f"a good {n}\tgood\na bad {n}\tbad\n" for n in "abcdefghij"),
    "lines.txt": "the cat sees a dog\nthe dog sees a cat\n" * 10,
    "words.txt": "the DET\ncat NOUN\n\na DET\ndog NOUN\n\n" * 10,
    "questions.jsonl": "".join(
        json.dumps({"question": f"who sees {name} ?", "context": f"the cat sees {name} .", "answer": "the cat"}) + "\n"
        for name in "abcdefghijklmnopqrst"
    ),
    "empty.tsv": "",
    "empty.txt": "",
    "empty.jsonl": "",
    "header.tsv": "text\tlabel\n",
    "blank.txt": " \n\n  \n",
    "blank.tsv": "text\tlabel\n \tgood\n \tbad\n",
    "others.tsv": "text\tlabel\na good film\tsuperb\n",
    "others.txt": "the VERB\n",
    "one.tsv": "film\n",
    "keys.jsonl": '{"question": "who ?", "passage": "the cat"}\n',
}

RECIPES = {
    "classification": {"data": {"source": "films.tsv"}, "input": WORDS, "model": SIZES},
    "masked_language_modelling": {"data": {"source": "lines.txt"}, "input": WORDS, "model": SIZES},
    "language_modelling": {"data": {"source": "lines.txt"}, "model": SIZES},
    "tagging": {"data": {"source": "words.txt"}, "input": WORDS, "model": SIZES},
    "question_answering": {"data": {"source": "questions.jsonl"}, "input": WORDS, "model": SIZES | {"max_length": 16}},
    "sequence_to_sequence": {"data": {"source": "films.tsv"}, "input": WORDS, "model": PAIR_SIZES, **WORDS},
}


def recipe(task):
    training = {"max_updates": 2, "batch_tokens": 256, "precision": "float32"}
    return {"task": task, "training": training, **copy.deepcopy(RECIPES[task])}


def write_files(folder):
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")


@pytest.fixture
def workshop(tmp_path):
    """The current folder, with the files and a recipe of each task."""
    write_files(tmp_path)
    for task in RECIPES:
        (tmp_path / f"{task}.yaml").write_text(json.dumps(recipe(task)), encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run of a task; each is trained once."""
    folder, runs = tmp_path_factory.mktemp("text"), {}
    write_files(folder)

    def train(task):
        if task not in runs:
            runs[task] = folder / task
            assert run.train(load_recipe(recipe(task), [f"data.root={folder}"]), runs[task], lambda line: None).finished
        return runs[task]

    return train


WRONG = [
    ("classification", ["source=empty.tsv"], ["empty.tsv has 0 rows"]),
    ("classification", ["source=header.tsv"], ["header.tsv"]),
    ("classification", ["source=blank.tsv"], ["blank.tsv"]),
    ("classification", ["source=lines.txt"], ["lines.txt is not a table"]),
    ("classification", ["text=texts"], ["films.tsv has no column texts; it has text, label"]),
    ("classification", ["label=class"], ["films.tsv has no column class; it has text, label"]),
    ("classification", ["test=others.tsv"], ["label 'superb' is in no training item (there are: bad, good)"]),
    ("masked_language_modelling", ["source=empty.txt"], ["empty.txt"]),
    ("masked_language_modelling", ["source=blank.txt"], ["blank.txt"]),
    ("masked_language_modelling", ["source=films.tsv", "text=texts"], ["no column texts", "text, label"]),
    ("language_modelling", ["source=empty.txt"], ["empty.txt: 0 characters are too few to split"]),
    ("language_modelling", ["source=one.tsv"], ["one.tsv", "give"]),
    ("tagging", ["source=empty.txt"], ["empty.txt"]),
    ("tagging", ["source=blank.txt"], ["blank.txt"]),
    ("tagging", ["label='7'"], ["words.txt", "7"]),
    ("question_answering", ["source=empty.jsonl"], ["empty.jsonl"]),
    ("question_answering", ["source=keys.jsonl"], ["keys.jsonl", "context"]),
    ("sequence_to_sequence", ["source=empty.tsv"], ["empty.tsv"]),
    ("sequence_to_sequence", ["label=class"], ["films.tsv has no column class"]),
]


@pytest.mark.parametrize(("task", "fields", "phrases"), WRONG, ids=[f"{task} {fields[0]}" for task, fields, _ in WRONG])
def test_data_that_cannot_be_trained_on_is_one_line(told, workshop, task, fields, phrases):
    overrides = [word for field in fields for word in ("--set", f"data.{field}")]
    lines = told("train", f"{task}.yaml", "--out", "new", *overrides)
    assert len(lines) == 1, lines
    assert all(phrase in lines[0] for phrase in phrases), lines[0]


UNSEEN = [
    ("classification", "others.tsv", ["label 'superb' is in no training item", "correct the label"]),
    ("classification", "header.tsv", ["header.tsv"]),
    ("classification", "blank.tsv", ["blank.tsv"]),
    ("tagging", "others.txt", ["VERB"]),
    ("tagging", "empty.txt", ["empty.txt"]),
    ("masked_language_modelling", "empty.txt", ["empty.txt"]),
    ("language_modelling", "empty.txt", ["empty.txt has 0 tokens: give a text of two at least"]),
    ("question_answering", "empty.jsonl", ["empty.jsonl"]),
    ("sequence_to_sequence", "empty.tsv", ["empty.tsv"]),
]


@pytest.mark.parametrize(("task", "file", "phrases"), UNSEEN)
def test_data_that_cannot_be_evaluated_on_is_one_line(told, workshop, finished, task, file, phrases):
    lines = told("evaluate", finished(task), "--data", file)
    assert len(lines) == 1, lines
    assert all(phrase in lines[0] for phrase in phrases), lines[0]


LONG = "the cat sees " * 8


@pytest.mark.parametrize("task", ["classification", "tagging", "sequence_to_sequence"])
def test_a_text_longer_than_the_model_is_cut_and_said(answer, workshop, finished, task):
    out, err = answer("predict", finished(task), LONG)
    assert len(out.splitlines()) == 1 and "longer than the model's 12 tokens" in err


@pytest.mark.parametrize(
    ("task", "verb", "text", "phrases"),
    [
        ("masked_language_modelling", "predict", f"{LONG}[MASK]", ["25 tokens are more than the model's 12: shorten"]),
        ("language_modelling", "inspect", LONG, ["tokens, the model takes 12: shorten it"]),
    ],
)
def test_a_text_that_cannot_be_cut_is_one_line(told, workshop, finished, task, verb, text, phrases):
    (line,) = told(verb, finished(task), text)
    assert all(phrase in line for phrase in phrases), line


def test_a_prompt_longer_than_the_model_is_continued_from_its_end(answer, workshop, finished):
    folder = finished("language_modelling")
    out, _ = answer("predict", folder, LONG.strip(), "--json")
    other, _ = answer("predict", folder, LONG.strip()[-12:], "--json")
    (long,), (short,) = (json.loads(text)["predictions"] for text in (out, other))
    assert long["samples"] == short["samples"] != [""]
