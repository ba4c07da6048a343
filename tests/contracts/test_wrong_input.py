"""Whatever a user gives, the program answers in a line (or a line a problem), with exit code 2, or counts and goes on.

A traceback fails every one of these tests: nothing but SystemExit may leave `main`.
"""

import json
import os
import shutil
from pathlib import Path
from random import Random

import pytest
import torch

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

NUM_PAIRS = 120
LONG = 100_000

RECIPE = {
    "data": {"kind": "pairs", "source": "a.en", "target": "a.fr", "validation_size": 5, "test_size": 5},
    "tokenizer": {"kind": "word"},
    "model": {
        "preset": None,
        "d_model": 16,
        "num_heads": 2,
        "d_ff": 32,
        "max_length": 32,
        "encoder": {"num_layers": 1},
        "decoder": {"num_layers": 1},
    },
    "training": {"max_updates": 2, "batch_tokens": 512, "precision": "float32"},
}


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    """The current folder, with a.en, a.fr and r.yaml."""
    random = Random(5)
    for name, letters in (("a.en", "abcdefgh"), ("a.fr", "stuvwxyz")):
        lines = (" ".join(random.choices(letters, k=random.randint(3, 7))) + "\n" for _ in range(NUM_PAIRS))
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    (tmp_path / "r.yaml").write_text(json.dumps(RECIPE), encoding="utf-8")
    return tmp_path


@pytest.fixture
def folder(trained, tmp_path: Path) -> Path:
    """A finished run to break."""
    shutil.copytree(trained().folder, tmp_path / "run")
    return Path("run")


def sets(*overrides: str) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


RECIPES = {
    "an unknown key": (
        sets("model.d_modle=8"),
        ["model.d_modle", "unknown key", "did you mean d_model?", "allowed: kind, max_length, d_model"],
    ),
    "an unknown variant": (sets("training.schedule.kind=liner"), ["training.schedule.kind", "did you mean linear?"]),
    "a set without =": (sets("model.d_model"), ["model.d_model", "malformed override", "key=value"]),
    "a set of a list's item that is none": (sets("model.d_model.size=3"), ["model.d_model.size", "cannot be set"]),
    "a negative number": (sets("training.max_updates=-3"), ["training.max_updates", "-3", "greater than 0"]),
    "a word for a number": (sets("model.d_ff=wide"), ["model.d_ff", "'wide'", "valid integer"]),
    "a seed beyond 64 bits": (sets("seed=99999999999999999999"), ["seed", "must be less than"]),
    "heads that do not divide d_model": (sets("model.num_heads=3"), ["d_model (16)", "num_heads (3)"]),
    "training without an end": (
        sets("training.max_updates=null"),
        ["a run needs an end", "max_minutes, max_updates or max_epochs"],
    ),
    "training that takes for ever": (sets("training.max_minutes=.inf"), ["training.max_minutes", "inf", "finite"]),
    "an exponent beyond all numbers": (sets("generation.length_penalty=1e6"), ["generation.length_penalty", "10"]),
    "more candidates than beams": (
        sets("generation.nbest=6"),
        ["generation", "nbest (6) must be at most beam_size (5)", "raise beam_size"],
    ),
    "a score that is none": (sets("evaluation.metrics=[blue]"), ["evaluation.metrics", "'blue'", "did you mean bleu?"]),
    "weights by a score that is not computed": (
        sets("training.best_by=exact_match"),
        ["training.best_by: given 'exact_match'", "evaluation.metrics lacks: add it"],
    ),
    "brackets of texts that are no trees": (
        sets("evaluation.metrics=[bracket_f1]"),
        ["is no tree in brackets", "leave bracket_f1 out of evaluation.metrics"],
    ),
    "keys for more pairs than there are": (
        sets("data={kind: recall, symbols: 5}"),
        ["there is no sequence of length 6", "raise symbols, or lower max_length"],
    ),
    "one table for two vocabularies": (
        sets("model.tie_embeddings=all", "tokenizer.joint=false"),
        ["tie_embeddings", "tokenizer.joint", "set model.tie_embeddings=target or tokenizer.joint=true"],
    ),
    "a split size for a set that is given": (
        sets("data.test={source: a.en, target: a.fr}"),
        ["test_size splits pairs off", "leave out one of them"],
    ),
    "a vocabulary below the bytes": (
        sets("tokenizer={kind: bpe, vocab_size: 100}"),
        ["vocab_size (100)", "must be at least 262"],
    ),
    "a vocabulary beyond the data": (
        sets("tokenizer={kind: bpe, vocab_size: 9000}"),
        ["vocab_size of 9000", "at most", "set vocab_size to"],
    ),
    "a missing file": (sets("data.source=b.en"), ["no file", "b.en", "did you mean", "a.en?"]),
    "a missing folder": (sets("data.root=nowhere"), ["no folder nowhere"]),
    "a folder for a file": (sets("data.source=."), ["is a folder", "name a file in it"]),
    "a missing column": (sets("data={kind: pairs, table: t.tsv, source: en, target: fr}"), ["no column en", "x, y"]),
    "too little text": (sets("data.test_size=5000"), ["leave none to train on", "5,000 to test"]),
    "sentences longer than all batches": (sets("training.batch_tokens=2"), ["fits 2 tokens", "batch_tokens"]),
    "a length beyond all memory": (
        sets("model.max_length=1000000000000"),
        ["the corpus with its model does not fit into memory", "smaller model"],
    ),
    "a run to go on from that is none": (sets("training.from=nowhere"), ["there is no run nowhere"]),
    "a model for which there is no memory": (
        sets("model.d_model=1000000"),
        ["parameters and their gradients take", "are free: take a smaller model"],
    ),
    "a learning rate that ends in NaN": (
        sets("training.schedule={kind: linear, learning_rate: 1.0e+30, warmup_steps: 1}", "training.max_updates=12"),
        ["were not finite", "learning_rate"],
    ),
}


@pytest.mark.parametrize("case", RECIPES)
def test_a_recipe_that_cannot_be_right_is_one_line(told, workshop, case):
    options, phrases = RECIPES[case]
    (workshop / "t.tsv").write_text("x\ty\nthe cat\tle chat\n", encoding="utf-8")
    lines = told("train", "r.yaml", "--out", "new", *options)
    assert len(lines) == 1
    assert all(phrase in lines[0] for phrase in phrases), lines[0]


def test_several_problems_are_one_report_with_a_line_each(told, workshop):
    lines = told("train", "r.yaml", *sets("model.d_modle=8", "seed=-1", "nothing", "training.max_updates=0"))
    assert lines[0] == "regardant: r.yaml: 4 problems"
    places = [line.split()[0] for line in lines[1:]]
    assert sorted(places) == ["model.d_modle", "nothing", "seed", "training.max_updates"]


def test_the_same_problems_are_found_by_plan(told, workshop):
    assert told("plan", "r.yaml", *sets("seed=-1"))[0].startswith("regardant: r.yaml: seed: given -1")


@pytest.mark.parametrize(
    ("recipe", "text", "phrases"),
    [
        ("translatoin", None, ["no recipe 'translatoin'", "did you mean translation?", "there are: "]),
        ("none.yaml", None, ["none.yaml", "No such file"]),
        ("folder.yaml", None, ["folder.yaml", "directory"]),
        ("r.yaml", "a: [1\nb: {", ["r.yaml, line 2", "not YAML"]),
        ("r.yaml", "- 1\n", ["r.yaml", "list", "must be a mapping"]),
        ("r.yaml", "", ["r.yaml", "must be a mapping"]),
        ("r.yaml", "seed: 1\nseed: 2\n", ["line 2", "key seed given twice"]),
        ("r.yaml", "asked: 3\nconfig: 4\n", ["r.yaml: 4 problems"]),
    ],
)
def test_a_recipe_that_cannot_be_read_is_named(told, tmp_path, recipe, text, phrases):
    (tmp_path / "folder.yaml").mkdir()
    if text is not None:
        (tmp_path / recipe).write_text(text, encoding="utf-8")
    line = told("train", recipe)[0]
    assert all(phrase in line for phrase in phrases), line


# text


@pytest.mark.parametrize(
    ("source", "target", "phrases"),
    [
        ("a\n" * 7, "a\n" * 1234, ["x.en has 7 lines", "x.fr has 1,234"]),
        ("", "", ["x.en and x.fr", "nothing to train on, 0 of 0 pairs kept"]),
        ("\n \n", "\n\n", ["nothing to train on, 0 of 2 pairs kept, 2 empty"]),
        ("a b c\n", "d e f\n", ["leave none to train on"]),
    ],
    ids=["unequal", "empty", "blank", "one pair"],
)
def test_text_that_cannot_be_trained_on_is_named(told, workshop, source, target, phrases):
    for name, text in (("x.en", source), ("x.fr", target)):
        (workshop / name).write_text(text, encoding="utf-8")
    line = told("train", "r.yaml", *sets("data.source=x.en", "data.target=x.fr"))[0]
    assert all(phrase in line for phrase in phrases), line


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16LE"), ("utf-16-be", "UTF-16BE")]
)
@pytest.mark.parametrize("task", ["translation", "language_modelling"])
def test_training_text_in_utf16_is_refused_with_the_command_that_converts_it(told, workshop, encoding, name, task):
    text = (workshop / "a.en").read_text(encoding="utf-8")
    (workshop / "x.en").write_bytes(text.encode(encoding))
    given = {"translation": ["r.yaml", *sets("data.source=x.en")], "language_modelling": ["l.yaml"]}[task]
    recipe = {"task": task, "data": {"source": "x.en"}, "training": {"max_updates": 1}}
    (workshop / "l.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    (line,) = told("train", *given, "--out", "new")
    assert f"x.en looks like {name} " in line or f"x.en is {name} (byte order mark" in line
    assert f"iconv -f {name} -t UTF-8 " in line


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        (lambda text: text.replace("a", "\0", 1), "contains a NUL byte"),
        (lambda text: text.replace("\n", "\r"), "carriage returns and no line feed"),
    ],
)
def test_training_text_with_nuls_or_without_line_feeds_is_refused(told, workshop, change, phrase):
    text = change((workshop / "a.en").read_text(encoding="utf-8"))
    (workshop / "x.en").write_bytes(text.encode())
    (line,) = told("train", "r.yaml", *sets("data.source=x.en"), "--out", "new")
    assert phrase in line


def test_stdin_in_utf16_is_refused(told, folder):
    (line,) = told("translate", folder, stdin="the cat\n".encode("utf-16"))
    assert "stdin is UTF-16" in line


def test_bad_training_lines_are_counted_and_the_rest_is_trained_on(answer, workshop):
    lines = {"a.en": [b"\xff\xfe bad", b"", b"a " * (LONG // 2)], "a.fr": [b"x", b"y", b"z " * (LONG // 2)]}
    for name, more in lines.items():
        with (workshop / name).open("ab") as file:
            file.writelines(line + b"\n" for line in more)
    _, err = answer("train", "r.yaml")
    first = NUM_PAIRS + 1
    assert f"{NUM_PAIRS} of {NUM_PAIRS + 3} pairs kept" in err
    assert f"1 bad encoding, first at line {first}\n" in err
    assert f"1 empty, first at line {first + 1}\n" in err
    assert f"1 over long, first at line {first + 2}\n" in err
    assert (workshop / "runs" / "r" / "model.safetensors").is_file()


def test_pairs_longer_than_the_model_are_counted(answer, workshop):
    for name, words in (("a.en", "a b "), ("a.fr", "s t ")):
        with (workshop / name).open("a", encoding="utf-8") as file:
            file.writelines(words * length + "\n" for length in (30, 31, 32))
    _, err = answer("train", "r.yaml", *sets("data.validation_size=1", "data.test_size=1"))
    assert "3 training pairs are longer than 32 tokens and left out" in err


def test_a_line_of_a_hundred_thousand_characters_is_translated_in_parts(answer, folder):
    lines = ["the cat sees the dog . " * (LONG // 23), "x" * LONG, "the cat sees the dog ."]
    out, err = answer("translate", folder, "--beam-size", "1", stdin="\n".join(lines).encode())
    assert [bool(line) for line in out.splitlines()] == [True, True, True]
    assert "line 1: longer than the model's 48 tokens, read in" in err
    assert "line 3: longer" not in err


def test_a_bad_line_of_stdin_is_said_and_answered(answer, folder):
    out, err = answer("translate", folder, stdin=b"the cat\n\xff dog\nthe dog\n")
    assert len(out.splitlines()) == 3
    assert "line 2: not valid UTF-8, read with replacement characters\n" in err


@pytest.mark.parametrize(
    ("files", "phrases"),
    [
        ({"x.en": b"a\nb\n", "x.fr": b"c\n"}, ["x.en has 2 lines", "x.fr has 1"]),
        ({"x.en": b"", "x.fr": b""}, ["no pair to evaluate on"]),
        ({"x.en": b"a\n\xff\n", "x.fr": b"c\nd\n"}, ["x.en line 2 is not valid UTF-8", "correct the line"]),
        ({"x.en": b"a\n", "y.fr": None}, ["no file y.fr"]),
        ({"x.en": b"a\n"}, ["x.en is no table", "give a second --data"]),
        ({"x.en": b"a\n", "x.fr": b"b\n", "x.de": b"c\n"}, ["--data was given 3 times"]),
        ({"x.csv": b"id,english,french\n1,a,b\n"}, ["no column source", "id, english, french"]),
        ({"x.tsv": b"only one column\n"}, ["no column source"]),
        ({"x.tsv": b"a\tb\n\xff\tc\n"}, ["x.tsv column 1 line 2 is not valid UTF-8"]),
        ({"x.tsv": b"a\tb\nc\n"}, ["x.tsv column 2 line 2 is missing"]),
        ({"x.csv": b'source,target\n"a,b\n'}, ["x.csv line 2", "quote left open"]),
        ({"x.jsonl": b'{"source": "a"}\n'}, ["no column target"]),
        ({"x.jsonl": b"not json\n"}, ["x.jsonl line 1 is not a JSON object"]),
        ({"x.parquet": b"not parquet"}, ["x.parquet cannot be read"]),
        ({"x.tsv.gz": b"not gzip"}, ["x.tsv.gz cannot be read"]),
    ],
)
def test_other_text_that_cannot_be_evaluated_on_is_named(told, folder, tmp_path, files, phrases):
    for name, content in files.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
    lines = told("evaluate", folder, *(word for name in files for word in ("--data", name)))
    assert len(lines) == 1
    assert all(phrase in lines[0] for phrase in phrases), lines[0]


# options


@pytest.mark.parametrize(
    ("options", "phrases"),
    [
        (["--nbest", "4", "--beam-size", "3"], ["nbest (4) must be at most beam_size (3)", "raise beam_size"]),
        (["--beam-size", "-1"], ["--beam-size", "greater than or equal to 1"]),
        (["--beam-size", "many"], ["--beam-size", "valid integer"]),
        (["--nbest", "0"], ["--nbest", "greater than or equal to 1"]),
        (["--length-penalty", "-0.5"], ["--length-penalty", "greater than or equal to 0"]),
        (["--length-penalty", "1000"], ["length_penalty", "less than or equal to 10"]),
        (["--no-repeat-ngram-size", "-1"], ["--no-repeat-ngram-size", "greater than or equal to 0"]),
        (["--prefix", "le " * 80], ["a forced prefix has 80 tokens", "shorten it"]),
        (["--prefix", "le xyzzy"], ["the prefix 'le xyzzy' has words or characters that the vocabulary lacks"]),
        (["--beam-size", "1000000000000"], ["beam_size: given 1000000000000; must be less than or equal to 1000"]),
        (["--nbest", "1" + "0" * 22], ["must be less than or equal to 1000"]),
        (["--score", "/dev/zero"], ["/dev/zero line 1 is longer than 4,194,304 bytes", "divide the text into lines"]),
        (["--score", "none.fr"], ["--score", "none.fr", "does not exist"]),
        (["--score", "two.fr"], ["1 sources and 2 targets", "give as many of each"]),
        (["--score", "two.fr", "--nbest", "2"], ["--score", "leave out all other options"]),
        (["--beam"], ["No such option", "--beam-size"]),
    ],
)
def test_options_that_cannot_be_right_are_named(told, folder, tmp_path, options, phrases):
    (tmp_path / "two.fr").write_text("un\ndeux\n", encoding="utf-8")
    text = " ".join(told("translate", folder, "one", *options))
    assert all(phrase in text for phrase in phrases), text


def test_a_sentence_to_score_that_is_longer_than_the_model_is_named(told, folder, tmp_path):
    (tmp_path / "x.fr").write_text("le chat\n" + "le chat " * 40 + "\n", encoding="utf-8")
    line = told("translate", folder, "--score", "x.fr", stdin=b"the cat\nthe cat\n")[0]
    assert "line 2 has 81 tokens, the model takes 48" in line


@pytest.mark.parametrize(
    ("options", "phrases"),
    [
        (["nowhere"], ["there is no run nowhere"]),
        (["run", "--host", "0.0.0.0"], ["an API key is needed", "set REGARDANT_API_KEY, give --api-key-file"]),
        (["run", "--host", "no host"], ["'no host' is no address of this machine", "give another"]),
        (["run", "--api-key-file", "none"], ["--api-key-file none cannot be read", "give a file with the key"]),
        (["run", "--api-key-file", "a.en"], ["the API key in a.en has", "give at least 16, printable ASCII"]),
        (["run", "--tls-cert", "a.en"], ["--tls-cert and --tls-key need each other"]),
        (["run", "--tls-cert", "a.en", "--tls-key", "a.fr"], ["--tls-cert a.en and --tls-key a.fr cannot be used"]),
        (["run", "--engine", "torchh"], ["there is no engine torchh", "did you mean torch?"]),
        (
            ["run", "--max-queue", "8"],
            ["--max-queue 8 is less than --max-batch 32", "raise --max-queue, or lower --max-batch"],
        ),
        (["run", "--max-batch", "0"], ["--max-batch", "greater than or equal to 1"]),
        (["run", "run"], ["run and run are both named run", "rename one of the folders"]),
    ],
)
def test_a_server_that_cannot_start_says_why(told, workshop, folder, monkeypatch, options, phrases):
    monkeypatch.delenv("REGARDANT_API_KEY", raising=False)
    text = " ".join(told("serve", *options, "--port", "0"))
    assert all(phrase in text for phrase in phrases), text


def test_an_unknown_verb_is_named(told):
    assert "No such command 'trian'" in told("trian")[0]


# run folders


def cut(path: Path, share: float = 0.5) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


@pytest.mark.parametrize(
    ("name", "damage", "phrases"),
    [
        ("run.yaml", Path.unlink, ["run is no run, or half written (no run.yaml)"]),
        ("run.yaml", cut, ["run.yaml"]),
        ("run.yaml", lambda path: path.write_bytes(b""), ["run.yaml", "must be a mapping"]),
        (
            "run.yaml",
            lambda path: path.write_text("config: 3\nasked: {}\n"),
            ["run/run.yaml: 2 problems", "data", "missing"],
        ),
        ("model.safetensors", Path.unlink, ["run has no model.safetensors", "train"]),
        ("model.safetensors", cut, ["model.safetensors is not what training wrote", "restore the file"]),
        ("model.safetensors", lambda path: path.write_bytes(b""), ["model.safetensors is not what training wrote"]),
        ("tokenizer.json", Path.unlink, ["run has no tokenizer.json"]),
        ("tokenizer.json", cut, ["tokenizer.json is not what training wrote"]),
    ],
)
@pytest.mark.parametrize("verb", ["translate", "evaluate"])
def test_a_run_that_is_not_whole_says_what_is_missing(told, folder, verb, name, damage, phrases):
    damage(folder / name)
    lines = told(verb, folder, *(["the cat"] if verb == "translate" else []))
    assert len(lines) == 1
    assert all(phrase in lines[0] for phrase in phrases), lines[0]


@pytest.mark.parametrize("name", ["splits.json", "test.arrow"])
def test_a_run_whose_test_text_is_damaged_says_so(told, folder, name):
    cut(folder / "data" / "text" / name)
    line = told("evaluate", folder)[0]
    assert f"run/data/text/{name} is not what training wrote" in line and "restore the file" in line


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
def test_a_run_yaml_cut_anywhere_is_no_traceback(told, folder, share):
    cut(folder / "run.yaml", share)
    assert "run.yaml" in told("translate", folder, "the cat")[0]


def test_a_run_that_does_not_exist_is_told_with_the_nearest_name(told, folder):
    assert told("translate", "rum", "the cat") == ["regardant: there is no run rum; did you mean run?"]
    assert "there is no run nowhere/x: give a folder" in told("evaluate", "nowhere/x")[0]


def test_a_damaged_checkpoint_is_passed_over_and_none_that_is_whole_is_an_error(answer, told, workshop):
    command = ("train", "r.yaml", "--out", "new", "--set")
    for updates in (2, 4):
        answer(*command, f"training.max_updates={updates}")
    checkpoints = sorted((workshop / "new" / "checkpoints").iterdir())
    cut(checkpoints[-1])
    assert "resuming from update 2 of new" in answer(*command, "training.max_updates=4")[1]
    for path in checkpoints:
        path.write_bytes(b"")
    line = told(*command, "training.max_updates=4")[0]
    assert "none of the 2 checkpoints can be read" in line


def test_a_checkpoint_of_another_version_is_refused_by_what_it_lacks(answer, told, workshop):
    command = ("train", "r.yaml", "--out", "new", "--set")
    answer(*command, "training.max_updates=2")
    (path,) = (workshop / "new" / "checkpoints").iterdir()
    state = torch.load(path, weights_only=True)
    torch.save({name: part for name, part in state.items() if name != "waiting"}, path)
    line = told(*command, "training.max_updates=4")[0]
    assert "was written by another version (no waiting): train anew in another --out" in line
    del state["cursor"]["validated_at"]
    torch.save(state, path)
    line = told(*command, "training.max_updates=4")[0]
    assert "was written by another version (its cursor differs): train anew in another --out" in line


def test_a_place_that_cannot_hold_a_run_is_refused_and_left_alone(told, workshop):
    (workshop / "file").write_text("mine", encoding="utf-8")
    (workshop / "foreign" / "data").mkdir(parents=True)
    assert "file is a file" in told("train", "r.yaml", "--out", "file")[0]
    assert "file/run cannot be written (Not a directory)" in told("train", "r.yaml", "--out", "file/run")[0]
    assert "foreign is not empty and no run" in told("train", "r.yaml", "--out", "foreign")[0]
    assert (workshop / "file").read_text(encoding="utf-8") == "mine"
    assert [entry.name for entry in (workshop / "foreign").iterdir()] == ["data"]


def test_other_settings_than_a_run_began_with_are_refused(answer, told, workshop):
    answer("train", "r.yaml", "--out", "new")
    line = told("train", "r.yaml", "--out", "new", *sets("model.d_ff=64", "training.max_updates=9"))[0]
    assert "new was begun with other settings (model.d_ff was 32, is 64): give another --out" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_read_only_folder_is_refused(told, workshop):
    (workshop / "closed").mkdir(mode=0o500)
    assert "closed/run cannot be written (Permission denied)" in told("train", "r.yaml", "--out", "closed/run")[0]
