import json
import os
import pty
import re
import resource
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import regardant as package
from regardant import cli, config, run
from regardant.cli.options import writable_file
from regardant.errors import ConfigError

SENTENCES = ["the cat sat on a mat .", "a dog ran .", "the old man saw the red house from a big tree .", "new bird ."]


@contextmanager
def program(*arguments: object, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """The program as a process of its own."""
    command = [sys.executable, "-m", "regardant", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "", **options.pop("env", {})}
    with subprocess.Popen(command, env=environment, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def test_version_is_the_package_s(regardant):
    assert regardant("--version").out == f"regardant {package.__version__}\n"
    with program("--version", stdout=subprocess.PIPE) as process:
        assert process.communicate()[0].decode() == f"regardant {package.__version__}\n"


def test_no_command_shows_the_help(regardant):
    said = regardant()
    assert said.code == 2
    assert all(
        f"\n  {command.name or command.callback.__name__} " in said.err for command in cli.app.registered_commands
    )


def test_optional_arguments_are_in_one_pair_of_brackets(regardant):
    for command in cli.app.registered_commands:
        text = regardant(command.name or command.callback.__name__, "--help").out
        assert "[[" not in text and "]]" not in text
    assert "lecture [OPTIONS] [NAME]" in regardant("lecture", "--help").out


@pytest.mark.parametrize("verb", ["translate", "evaluate"])
def test_help_says_how_the_length_penalty_counts(regardant, verb):
    text = re.sub(r"\s+", " ", regardant(verb, "--help").out)
    assert "Rank by log-probability / length ** ALPHA; length in tokens, EOS counted; 0 ranks by the sum alone." in text


def test_recipes_lists_every_recipe_with_its_purpose(regardant):
    lines = regardant("recipes").out.splitlines()
    for name in config.recipes():
        (line,) = [line for line in lines if line.startswith(f"  {name} ")]
        assert config.purpose(name).startswith(line.removeprefix(f"  {name} ").removesuffix("...").strip())
    assert lines.index("classification:") < lines.index("translation:") < lines.index("ladder:")
    assert max(map(len, lines)) <= 120
    listed = json.loads(regardant("recipes", "--json").out)
    assert listed["translation"]["demo"] == config.purpose("demo") and list(listed) == list(config.groups())


def test_recipes_prints_the_header_of_one(regardant):
    assert regardant("recipes", "demo").out == f"{config.header('demo')}\n"
    assert json.loads(regardant("recipes", "demo", "--json").out)["header"] == config.header("demo")
    assert regardant("recipes", "dmeo").code == 2


def test_a_shell_completes_the_names_of_recipes():
    words = {"_REGARDANT_COMPLETE": "complete_bash", "COMP_WORDS": "regardant train digits-v", "COMP_CWORD": "2"}
    command = Path(sys.executable).with_name("regardant")
    assert subprocess.run([command], env=os.environ | words, capture_output=True).stdout.split() == [b"digits-vit"]


FIRST_LINE = """
import sys

from regardant import cli


class Watched:
    def isatty(self):
        return True

    def write(self, text):
        assert "torch" not in sys.modules
        print(text, end="", flush=True)
        sys.stderr = sys.__stderr__
        raise SystemExit

    def flush(self):
        pass


sys.argv = ["regardant", *sys.argv[1:]]
sys.stderr = Watched()
cli.main()
"""


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("train", "demo"), "preparing demo"),
        (("plan", "demo"), "preparing demo"),
        (("demo",), "preparing demo"),
        (("verify",), "measuring the claims"),
        (("try", "mine.py"), "regardant: there is no file mine.py"),
        (("translate", "runs/none", "x"), "regardant: there is no run runs/none"),
        (("train", "dmeo"), "regardant: "),
    ],
)
def test_the_first_line_comes_before_torch_is_imported(tmp_path, arguments, line):
    command = [sys.executable, "-c", FIRST_LINE, *arguments]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert told.stdout.startswith(line), told.stderr


# train


def test_train_shows_progress_on_stderr_and_leaves_a_run(regardant, corpus, tmp_path):
    said = regardant("train", corpus / "tiny.yaml", "--out", tmp_path / "r")
    assert (said.code, said.out) == (0, "")
    assert "200 of 200 pairs kept" in said.err
    assert "expected time" in said.err
    assert "validation at update 20" in said.err
    assert f"regardant evaluate {tmp_path / 'r'}" in said.err
    kept = {entry.name for entry in (tmp_path / "r").iterdir()}
    assert kept >= {"run.yaml", "model.safetensors", "tokenizer.json", "metrics.jsonl", "checkpoints", "data"}
    assert not any(name.startswith(".") for name in kept)


def test_train_goes_to_runs_and_the_recipe_s_name(regardant, corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert regardant("train", corpus / "tiny.yaml", "--set", "training.max_updates=1").code == 0
    assert Path("runs/tiny/run.yaml").is_file()


@pytest.mark.parametrize("recipe", ["run.yaml", "tiny.yaml"])
def test_the_same_command_or_the_run_s_own_file_goes_on_with_a_run(regardant, corpus, own_run, recipe):
    given = [own_run / recipe] if recipe == "run.yaml" else [corpus / recipe, "--out", own_run]
    said = regardant("train", *given, "--set", "training.max_updates=25")
    assert said.code == 0
    assert "resuming from update 20" in said.err
    assert f"{own_run}: 25 updates" in said.err


def test_a_recipe_s_name_goes_before_a_folder_of_that_name(regardant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("translation").mkdir()
    said = regardant("train", "translation")
    assert said.err.splitlines()[:1] == ["regardant: translation: 2 problems"]


# plan


def test_plan_prints_what_training_will_cost(regardant, corpus):
    said = regardant("plan", corpus / "tiny.yaml")
    assert said.code == 0
    assert [line.split()[0] for line in said.lines[:4]] == ["parameters", "memory", "computing", "padding"]
    assert said.lines[4] == "training        20 updates, 5.0 passes over 1,375 target tokens"


def test_plan_as_json_is_one_object_and_nothing_is_left_behind(regardant, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = regardant("plan", corpus / "tiny.yaml", "--json")
    assert len(said.lines) == 1
    assert json.loads(said.out).keys() >= {"parameters", "memory_bytes", "flops_per_token", "seconds", "updates"}
    assert not list(tmp_path.glob("regardant-plan-*"))


@pytest.mark.parametrize(
    ("options", "given"), [([], "--set"), (["--shapes"], "--set"), (["--devices", 8], "--set, --devices")]
)
def test_a_published_model_takes_no_settings(regardant, options, given):
    said = regardant("plan", "base", "--set", "model.d_model=256", *options)
    expected = f"base is a published model, not a recipe: leave out {given}, or give a recipe"
    assert (said.code, said.out, said.err) == (2, "", f"regardant: {expected}\n")


# evaluate


def test_evaluate_as_json_is_one_object(regardant, own_run):
    said = regardant("evaluate", own_run, "--json")
    assert (said.code, len(said.lines)) == (0, 1)
    scores = json.loads(said.out)
    assert scores.keys() >= {"bleu", "chrf", "ter", "signature", "exact_match", "perplexity"}
    assert (scores["sentences"], scores["beam_size"]) == (8, 5)
    assert scores == json.loads((own_run / "evaluation" / "test.json").read_text(encoding="utf-8"))


def test_evaluate_for_people_names_scores_signature_and_where_they_are_kept(regardant, own_run):
    said = regardant("evaluate", own_run, "--beam-size", "1")
    assert said.lines[0].startswith("test: BLEU ")
    assert said.lines[1].startswith("  nrefs:1|")
    assert said.lines[-1] == f"kept in {own_run / 'evaluation'}"


def test_evaluate_on_other_data_leaves_the_run_s_own_scores_alone(regardant, own_run, tmp_path):
    regardant("evaluate", own_run)
    before = (own_run / "evaluation" / "test.json").read_bytes()
    for name, line in (("test.en", "the cat ."), ("test.fr", "le chat .")):
        (tmp_path / name).write_text(line + "\n", encoding="utf-8")
    said = regardant("evaluate", own_run, "--json", "--data", tmp_path / "test.en", "--data", tmp_path / "test.fr")
    assert json.loads(said.out)["sentences"] == 1
    assert (own_run / "evaluation" / "test.json").read_bytes() == before
    assert (own_run / "evaluation" / "test.en.src").read_text(encoding="utf-8") == "the cat .\n"


def test_evaluate_on_the_grammar_has_the_alignment_error_rate_and_both_test_sets(regardant, corpus, tmp_path):
    grammar = "data={kind: grammar, train_size: 300, validation_size: 10, test_size: 12, heldout_size: 14}"
    trained = regardant("train", corpus / "tiny.yaml", "--out", tmp_path / "r", "--set", grammar)
    assert trained.code == 0, trained.err
    scores = json.loads(regardant("evaluate", tmp_path / "r", "--json").out)
    assert 0 <= scores["alignment_error_rate"] <= 1
    assert (scores["sentences"], scores["heldout"]["sentences"]) == (12, 14)
    assert "alignment error rate" in regardant("evaluate", tmp_path / "r").out


# compare


@pytest.fixture(scope="module")
def evaluated_runs(tiny_run, configure, tmp_path_factory):
    """Two runs of one corpus, and one that was tested on other sentences."""
    folder = tmp_path_factory.mktemp("compared")
    shutil.copytree(tiny_run, folder / "narrow")
    run.train(configure("model.d_ff=64", "training.max_updates=30"), folder / "wide", lambda _: None)
    run.train(configure("seed=2", "training.max_updates=1"), folder / "elsewhere", lambda _: None)
    for name in ("narrow", "wide", "elsewhere"):
        package.load(folder / name).evaluate()
    return folder


def test_compare_prints_a_table_and_writes_nothing(regardant, evaluated_runs):
    before = sorted(evaluated_runs.rglob("*"))
    said = regardant("compare", evaluated_runs / "narrow", evaluated_runs / "wide")
    assert (said.code, said.err) == (0, "")
    narrow, wide = (next(line.split() for line in said.lines if line.startswith(name)) for name in ("narrow", "wide"))
    scores = json.loads((evaluated_runs / "wide" / "evaluation" / "test.json").read_text(encoding="utf-8"))
    assert wide[1:3] == [f"{scores['bleu']:.2f}", f"{scores['chrf']:.2f}"]
    assert int(wide[-1].replace(",", "")) > int(narrow[-1].replace(",", "")) > 1000
    assert sorted(evaluated_runs.rglob("*")) == before


def test_compare_as_json_is_one_object_of_runs(regardant, evaluated_runs, tmp_path):
    page = tmp_path / "page.html"
    given = [evaluated_runs / "narrow", evaluated_runs / "wide"]
    said = regardant("compare", *given, "--json", "--page", page)
    assert (said.code, len(said.lines)) == (0, 1)
    told = json.loads(said.out)
    assert list(told) == ["runs"]
    assert [one["run"] for one in told["runs"]] == [str(folder) for folder in given]
    assert said.err == f"open {page} in a browser to see the curves\n"
    assert page.is_file()


def test_compare_writes_its_page_where_it_is_told_to(regardant, evaluated_runs, tmp_path):
    page = tmp_path / "new" / "page.html"
    without = regardant("compare", evaluated_runs / "wide", evaluated_runs / "narrow")
    said = regardant("compare", evaluated_runs / "wide", evaluated_runs / "narrow", "--page", page)
    assert said.out == without.out
    text = page.read_text(encoding="utf-8")
    assert '<th scope="row">narrow</th>' in text and "<dt>compared with</dt><dd>wide</dd>" in text
    assert "narrow differs from wide by " in text and "model.d_ff was 64, is 32" in text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["wide"], "{0} is a single run: give two runs or more"),
        (["wide", "narrow", "wide/../wide"], "{2} was given twice: give each run once"),
        (["wide", "widde"], "there is no run {1}; did you mean wide?"),
        (["wide", "elsewhere"], "test sets differ from those of {0} ({1} in evaluation/test.src)"),
    ],
)
def test_what_makes_no_comparison_is_one_line(regardant, evaluated_runs, given, message):
    folders = [evaluated_runs / name for name in given]
    said = regardant("compare", *folders)
    assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert said.err.startswith("regardant: " + message.format(*folders))


def test_compare_says_how_to_evaluate_a_run_that_was_not(regardant, evaluated_runs, own_run):
    said = regardant("compare", evaluated_runs / "wide", own_run)
    assert (said.code, said.out) == (2, "")
    expected = f"{own_run} was not evaluated: evaluate it first: regardant evaluate {own_run}"
    assert said.err == f"regardant: {expected}\n"


# translate


def test_a_line_comes_out_for_every_line_that_goes_in(regardant, tiny_run):
    raw = "the cat\r\n\r\n  \na\u2028dog\x85ran\nred\tman\n\nold\x0ctree\nthe end".encode()
    said = regardant("translate", tiny_run, "--engine", "torch", stdin=raw)
    assert (said.code, said.err) == (0, "")
    assert [bool(line) for line in said.lines] == [True, False, False, True, True, False, True, True]
    assert said.out.endswith("\n")
    read = [json.loads(line)["source"] for line in regardant("translate", tiny_run, "--json", stdin=raw).lines]
    assert read == ["the cat", "", "  ", "a\u2028dog\x85ran", "red\tman", "", "old\x0ctree", "the end"]


def test_where_spaces_and_line_feeds_are_tokens_a_line_stays_a_line(regardant, corpus, tmp_path):
    command = ("train", corpus / "tiny.yaml", "--out", tmp_path / "r", "--set", "tokenizer.kind=byte")
    assert regardant(*command, "--set", "training.max_updates=1").code == 0
    said = regardant("translate", tmp_path / "r", "--prefix", "a\r\nb", stdin=["one", "  ", "two"])
    assert [line.startswith("a b") for line in said.lines] == [True, False, True]
    assert said.lines[1] == ""


def test_nothing_in_gives_nothing_out(regardant, tiny_run):
    assert regardant("translate", tiny_run, stdin=b"").out == ""


def test_a_byte_order_mark_is_not_text(regardant, tiny_run):
    said = regardant("translate", tiny_run, "--json", stdin=b"\xef\xbb\xbfthe cat\n")
    assert json.loads(said.out)["source"] == "the cat"


def test_lines_are_translated_in_their_order_through_all_batches(regardant, tiny_run, monkeypatch):
    lines = [*SENTENCES * 3, "", "a cat " * 40]
    by_one = [regardant("translate", tiny_run, line).out.removesuffix("\n") for line in lines]
    assert len(set(by_one)) >= len(SENTENCES)
    monkeypatch.setattr(cli.answering, "LINES_AT_ONCE", 3)
    said = regardant("translate", tiny_run, "--engine", "torch", stdin=lines)
    assert said.lines == by_one
    assert said.err.startswith(f"line {len(lines)}: longer than the model's 32 tokens")


def test_a_missing_run_is_told_before_torch_is_imported(tmp_path):
    code = (
        "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules)); "
        "from regardant import cli; cli.main()"
    )
    for verb in (["translate", "runs/none", "a"], ["evaluate", "runs/none"], ["inspect", "runs/none", "a"]):
        said = subprocess.run([sys.executable, "-c", code, *verb], cwd=tmp_path, capture_output=True, text=True)
        assert (said.returncode, said.stdout) == (2, "False\n"), said.stderr
        assert said.stderr.startswith("regardant: there is no run runs/none")


def test_a_file_is_translated_into_a_file(regardant, tiny_run, tmp_path):
    source, output = tmp_path / "a.en", tmp_path / "a.fr"
    source.write_text("".join(f"{one}\n" for one in SENTENCES))
    said = regardant("translate", tiny_run, "--input", source, "--output", output, "--with-scores")
    assert said.out == "" and f"wrote {output}" in said.err
    assert output.read_text() == regardant("translate", tiny_run, "--with-scores", *SENTENCES).out
    assert regardant("translate", tiny_run, "--input", source, "a").code == 2
    missing = regardant("translate", tiny_run, "--input", tmp_path / "none")
    assert missing.code == 2 and "cannot be read (No such file or directory)" in missing.err


@pytest.mark.parametrize("output", ["out", "", ".", "out/.."])
def test_a_folder_as_output_is_refused_before_anything_is_translated(
    regardant, tiny_run, tmp_path, monkeypatch, output
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    monkeypatch.setattr("regardant.run.load", lambda *given: pytest.fail("opened"))
    for verb in ("translate", "predict"):
        said = regardant(verb, tiny_run, "the cat", "--output", output)
        assert (said.code, said.out) == (2, "")
        assert said.err == f"regardant: --output {output or '.'} is a folder: give the name of a file\n"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_computed(
    regardant, tiny_run, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("regardant.run.load", lambda *given: pytest.fail("opened"))
    monkeypatch.setattr("regardant.checks.verify.verify", lambda *given: pytest.fail("measured"))
    there = tmp_path / "file" / "more" / "x"
    told = f"{there} cannot be written: {tmp_path / 'file'} is no folder; give another name\n"
    for option, *command in (
        ["--output", "translate", tiny_run, "the cat"],
        ["--output", "predict", tiny_run, "the cat"],
        ["--page", "doctor", tiny_run],
        ["--page", "verify"],
        ["--out", "inspect", tiny_run, "the cat"],
        ["--out", "trace", tiny_run, "the cat", "the dog"],
        ["--page", "compare", tiny_run, tiny_run],
    ):
        said = regardant(*command, option, there)
        assert (said.code, said.out, said.err) == (2, "", f"regardant: {option} {told}")


def test_a_folder_that_may_not_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)  # root may write anywhere
    option = SimpleNamespace(opts=["--output"])
    with pytest.raises(ConfigError, match=f"--output .*: no file may be made in {tmp_path}; give another name"):
        writable_file(option, tmp_path / "new" / "x")
    assert writable_file(option, Path("/dev/null")) == Path("/dev/null")
    assert writable_file(option, None) is None


def test_the_name_of_a_file_is_translated_with_a_note(regardant, tiny_run, tmp_path):
    (tmp_path / "a.en").write_text("the cat\n")
    said = regardant("translate", tiny_run, tmp_path / "a.en")
    assert said.lines and f"give --input {tmp_path / 'a.en'}" in said.err
    assert "--input" not in regardant("translate", tiny_run, "the cat").err


@pytest.mark.parametrize("text", ["猫が犬を見る。" * 20, "a cat " * 100, "猫\0"])
def test_a_text_that_no_file_can_be_named_is_translated(regardant, tiny_run, text):
    said = regardant("translate", tiny_run, "--engine", "torch", text)
    assert (said.code, len(said.lines)) == (0, 1), said.err


def test_sentences_on_the_command_line_are_translated_as_those_on_stdin(regardant, tiny_run):
    assert regardant("translate", tiny_run, *SENTENCES).out == regardant("translate", tiny_run, stdin=SENTENCES).out
    assert regardant("translate", tiny_run, "").out == "\n"


def test_nbest_gives_that_many_candidates_best_first(regardant, tiny_run):
    said = regardant("translate", tiny_run, "--nbest", 7, "--with-scores", *SENTENCES)
    assert len(said.lines) == len(SENTENCES)
    for line in said.lines:
        cells = line.split("\t")
        scores = [float(score) for score in cells[::2]]
        assert len(scores) == len(set(cells[1::2])) == 7
        assert scores == sorted(scores, reverse=True)
    without_scores = regardant("translate", tiny_run, "--nbest", 2, *SENTENCES)
    assert [len(line.split("\t")) for line in without_scores.lines] == [2] * len(SENTENCES)


def test_json_holds_source_texts_scores_tokens_and_notes(regardant, tiny_run):
    said = regardant("translate", tiny_run, "--json", "--nbest", 2, "the cat", "", "a cat " * 40)
    cat, empty, long = map(json.loads, said.lines)
    assert cat["source"] == "the cat"
    assert len(cat["translations"]) == 2
    assert cat["translations"][0].keys() == {"text", "score", "tokens"}
    assert [candidate["text"] for candidate in empty["translations"]] == [""]
    assert any("longer than the model" in note for note in long["notes"])


def test_every_translation_begins_with_the_prefix(regardant, tiny_run):
    said = regardant("translate", tiny_run, "--prefix", "le chat", "the cat", "a cat " * 40, "")
    assert [line.startswith("le chat") for line in said.lines] == [True, True, False]


def test_a_prefix_that_is_not_utf_8_is_read_with_replacement_characters(regardant, tiny_run):
    said = regardant("translate", tiny_run, "--prefix", "le caf\udce9", "the cat")
    first, *_, last = said.err.splitlines()
    assert said.code == 2 and first == "'le caf\ufffd': not valid UTF-8, read with replacement characters"
    assert "the prefix 'le caf\ufffd' has words or characters that the vocabulary lacks" in last


def test_options_of_the_search_are_obeyed(regardant, tiny_run):
    said = regardant("translate", tiny_run, "--no-repeat-ngram-size", 1, *SENTENCES)
    assert all(len(line.split()) == len(set(line.split())) for line in said.lines)
    scores = [
        float(regardant("translate", tiny_run, "--with-scores", "--length-penalty", a, "the cat").out.split("\t")[0])
        for a in (0, 1)
    ]
    assert scores[0] < scores[1] < 0


def test_score_prints_the_log_probability_of_each_given_translation(regardant, corpus, tiny_run, tmp_path):
    sources = ["the cat .", "a\u2028dog ."]
    targets = ["le chat .", "un\u2028chien ."]
    (tmp_path / "given.fr").write_bytes("\r\n".join(targets).encode())
    plain = regardant("translate", tiny_run, "--score", tmp_path / "given.fr", stdin=sources)
    expected = package.load(tiny_run).score(sources, targets)
    assert [float(line) for line in plain.lines] == pytest.approx(expected, abs=1e-4)
    as_json = regardant("translate", tiny_run, "--score", tmp_path / "given.fr", "--json", stdin=sources)
    assert [json.loads(line)["target"] for line in as_json.lines] == targets


def test_an_engine_translates_evaluates_and_is_exported(regardant, own_run, tmp_path):
    greedy = ("translate", own_run, "--with-scores", "--beam-size", 1)
    ours = regardant(*greedy, "--engine", "torch", *SENTENCES)
    by_default = regardant(*greedy, *SENTENCES)
    assert by_default.out == ours.out and by_default.err.startswith("engine torch (8 validation sentences are too few")
    theirs = regardant(*greedy, "--engine", "ctranslate2-float32", *SENTENCES)
    assert theirs == ours and len(theirs.lines) == len(SENTENCES)
    assert json.loads(regardant("evaluate", own_run, "--engine", "ctranslate2", "--json").out)["sentences"] == 8
    said = regardant("export", own_run, "--to", "ctranslate2", "--out", tmp_path / "e", "--quantization", "int16")
    assert (said.code, said.err) == (0, f"wrote {tmp_path / 'e'}\n")
    assert said.lines[0] == "| test, 8 texts | run | export |"
    assert (tmp_path / "e" / "model.bin").is_file()
    again = regardant("export", own_run, "--to", "ctranslate2", "--out", tmp_path / "e")
    assert (again.code, len(again.err.splitlines())) == (2, 1)


def test_scoring_takes_no_engine(regardant, tiny_run, tmp_path):
    (tmp_path / "given.fr").write_text("le chat\n", encoding="utf-8")
    said = regardant("translate", tiny_run, "--score", tmp_path / "given.fr", "--engine", "ctranslate2", "the cat")
    assert (said.code, said.out) == (2, "")
    assert "leave out all other options but --input, --output and --json" in said.err


def test_a_pipe_that_is_closed_early_ends_the_program_quietly(tiny_run):
    lines = b"the cat sat .\n" * 3000
    with program(
        "translate",
        tiny_run,
        "--engine",
        "torch",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        reader = os.fdopen(os.dup(process.stderr.fileno()), "rb")
        try:
            process.stdin.write(lines)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.stdout.readline().endswith(b"\n")
        process.stdout.close()
        with reader:
            assert reader.read() == b""
        assert process.wait(60) == 1


def test_output_is_utf8_whatever_the_locale(tiny_run, tmp_path):
    (tmp_path / "a.txt").write_bytes("d\u2019\u00e9t\u00e9\n".encode())
    latin = {"PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}
    command = ("translate", tiny_run, "--json")
    with (
        (tmp_path / "a.txt").open("rb") as stdin,
        program(*command, stdin=stdin, stdout=subprocess.PIPE, env=latin) as process,
    ):
        out, _ = process.communicate(timeout=60)
    assert json.loads(out.decode("utf-8"))["source"] == "d\u2019\u00e9t\u00e9"


def test_on_a_terminal_each_line_is_answered_before_the_next_is_asked(tiny_run):
    ours, theirs = pty.openpty()
    with program("translate", tiny_run, stdin=theirs, stdout=subprocess.PIPE) as process:
        os.close(theirs)
        assert process.stdout is not None
        with os.fdopen(ours, "wb", buffering=0) as terminal:
            for sentence in SENTENCES[:2]:
                terminal.write(sentence.encode() + b"\n")
                assert select.select([process.stdout], [], [], 60)[0], "no answer"
                assert len(process.stdout.readline()) > 1
            terminal.write(b"\x04")  # end of text
            assert process.wait(60) == 0


# generate


def test_generate_writes_the_prompt_and_goes_on(regardant, trained_on_text):
    folder = trained_on_text().folder
    said = regardant("generate", folder, "the cat", "--max-tokens", 20, "--seed", 3)
    assert (said.code, said.err) == (0, "")
    assert said.out == "the cat" + trained_on_text().generate("the cat", seed=3, max_tokens=20)[0] + "\n"
    assert regardant("generate", folder, "--max-tokens", 1).out.startswith("\n")


def test_samples_stand_between_dashes_and_options_are_obeyed(regardant, trained_on_text):
    options = {"temperature": 0.5, "top_k": 4, "top_p": 0.9, "max_tokens": 15}
    flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    said = regardant("generate", trained_on_text().folder, "a", "--samples", 3, *flags)
    texts = trained_on_text().generate("a", samples=3, **options)
    assert said.out == f"\n{'-' * 15}\n".join("a" + text for text in texts) + "\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--top-p", "1.5"], "regardant: generation: top_p: given 1.5; must be less than or equal to 1"),
        (["\xff"], "regardant: the prompt holds"),
        ([""], "regardant: the prompt is empty: give a prompt"),
    ],
)
def test_what_cannot_be_gone_on_with_is_one_line(regardant, trained_on_text, options, told):
    said = regardant("generate", trained_on_text().folder, *options)
    assert (said.code, len(said.err.splitlines())) == (2, 1)
    assert said.err.startswith(told)


def test_on_a_terminal_a_text_is_shown_as_it_is_drawn(trained_on_text):
    ours, theirs = pty.openpty()
    with program("generate", trained_on_text().folder, "the", "--max-tokens", 100_000, stdout=theirs):
        os.close(theirs)
        assert select.select([ours], [], [], 60)[0], "nothing came"
        assert os.read(ours, 3) == b"the"
    os.close(ours)


@pytest.mark.parametrize("verb", ["translate", "generate"])
def test_a_verb_for_another_task_is_one_line(regardant, tiny_run, trained_on_text, verb):
    runs = {"generate": [tiny_run, "a"], "translate": [trained_on_text().folder, "a"]}
    said = regardant(verb, *runs[verb])
    assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert f"which has no {verb}: it has" in said.err


def test_a_run_that_does_not_translate_is_refused_before_stdin_is_read(
    regardant, trained_on_text, tmp_path, monkeypatch
):
    (tmp_path / "given.fr").write_text("le chat\n", encoding="utf-8")
    monkeypatch.setattr(cli.answering, "stdin", lambda: pytest.fail("stdin is read"))
    for options in ([], ["--score", tmp_path / "given.fr"]):
        said = regardant("translate", trained_on_text().folder, *options)
        assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
        assert "is a run of language_modelling, which has no translate: it has" in said.err


def test_a_language_model_is_trained_planned_and_evaluated_by_the_same_verbs(regardant, text_file, tmp_path):
    small = ("training.max_updates=3", "model.max_length=16", "model.d_model=16", "model.num_layers=1", "model.d_ff=32")
    given = [word for one in (f"data.source={text_file}", *small) for word in ("--set", one)]
    assert regardant("plan", "language_modelling", *given).lines[2].startswith("computing")
    said = regardant("train", "language_modelling", *given, "--out", tmp_path / "r")
    assert said.code == 0 and f"regardant generate {tmp_path / 'r'}" in said.err
    scores = json.loads(regardant("evaluate", tmp_path / "r", "--json").out)
    sizes = {"tokens", "characters", "text_characters", "unknown"}
    assert scores.keys() == {"loss", "perplexity", "bits_per_character", *sizes}
    assert regardant("evaluate", tmp_path / "r").lines[0].startswith("validation: loss ")
    assert "leave that out" in regardant("evaluate", tmp_path / "r", "--beam-size", 2).err


# the machine


def test_files_that_may_not_grow_end_training_in_one_line(corpus, tmp_path):
    def as_on_a_full_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 << 10, 16 << 10))

    command = ("train", corpus / "tiny.yaml", "--out", tmp_path / "r")
    with program(*command, stderr=subprocess.PIPE, preexec_fn=as_on_a_full_disk) as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 2
    assert b"Traceback" not in err
    assert err.splitlines()[-1].startswith(b"regardant: ")
    assert b"File too large" in err.splitlines()[-1]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_one_line():
    with Path("/dev/full").open("wb") as full, program("recipes", stdout=full, stderr=subprocess.PIPE) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert b"No space left on device" in err
    assert len(err.splitlines()) == 1


# demo


def test_demo_trains_evaluates_translates_and_draws(regardant, configure, tmp_path, monkeypatch):
    small = configure("data={kind: grammar, train_size: 300, validation_size: 10, test_size: 10, heldout_size: 10}")
    document = small.model_dump(mode="json", by_alias=True) | {"model": {**small.model.model_dump(), "max_length": 64}}
    monkeypatch.setattr(config, "recipe", {"demo": document}.__getitem__)
    said = regardant("demo", "--out", tmp_path / "demo")
    assert said.code == 0, said.err
    page = tmp_path / "demo" / "report.html"
    assert page.is_file()
    assert said.lines[0].startswith("test: BLEU ")
    assert re.fullmatch(r"trained in \d+ s, scored in \d+ s", said.lines[-2])
    assert said.lines[-1] == f"open {page} in a browser to see the attention of each word"
