"""Bulk work: answers to all rows of shards, in their order, and the same command going on with what is left."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from regardant import run
from regardant.bulk import ray_data, work
from regardant.config.plugins import write_plugin
from regardant.data.addresses import find_shards
from regardant.errors import ConfigError
from tests.runs import change_record
from tests.unit.conftest import ENGLISH

WORDS = ENGLISH.split()
SENTENCES = [f"the {WORDS[number % 17]} {WORDS[number % 13]} {WORDS[number % 7]} ." for number in range(60)]


def shards(folder, sentences=SENTENCES, parts=3):
    """Write sentences to Parquet shards, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(sentences) // parts)
    for part in range(parts):
        texts = sentences[part * size : (part + 1) * size]
        pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), folder / f"{part:02}.parquet")
    return folder


def answers(folder):
    """Return the rows of an output folder in the order of its files."""
    return [row for path in sorted(Path(folder).glob("part-*.parquet")) for row in pq.read_table(path).to_pylist()]


@pytest.fixture
def small_files(monkeypatch):
    monkeypatch.setattr(work, "ROWS_A_FILE", 8)


@pytest.mark.usefixtures("small_files")
def test_every_row_is_translated_in_order(regardant, tiny_run, tmp_path):
    given = [*SENTENCES[:30], None, "", *SENTENCES[30:]]
    said = regardant("translate", tiny_run, "--data", shards(tmp_path / "in", given), "--out", tmp_path / "out")
    assert (said.code, said.out) == (0, "") and "answers to 62 rows" in said.err
    rows = answers(tmp_path / "out")
    assert [row["source"] for row in rows] == given
    expected = [one.text for one in run.load(tiny_run).translate(SENTENCES)]
    assert [row["translation"] for row in rows if row["source"]] == expected
    assert [row["translation"] for row in rows[30:32]] == ["", ""]
    assert len(list((tmp_path / "out").glob("part-00000-*.parquet"))) == 3  # of 21 rows


def test_the_engine_is_chosen_once_for_all_workers(regardant, tiny_run, tmp_path):
    said = regardant("translate", tiny_run, "--data", shards(tmp_path / "in"), "--out", tmp_path / "out")
    assert "engine torch (" in said.err
    assert json.loads((tmp_path / "out" / "_work.json").read_text())["options"]["engine"] == "torch"


@pytest.mark.usefixtures("small_files")
def test_the_same_command_answers_what_is_left_and_nothing_else(regardant, tiny_run, tmp_path, monkeypatch):
    command = ("translate", tiny_run, "--data", shards(tmp_path / "in"), "--out", tmp_path / "out")
    asked, answer = [], work.VERBS["translate"]

    def counted(given, sources, **options):
        asked.append(list(sources))
        if len(asked) == 5:
            raise KeyboardInterrupt
        return answer(given, sources, **options)

    monkeypatch.setitem(work.VERBS, "translate", counted)
    assert regardant(*command).code == 130
    assert [row["source"] for row in answers(tmp_path / "out")] == SENTENCES[:20] + SENTENCES[20:28]
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part-*")}
    said = regardant(*command)
    assert said.code == 0 and "1 of 3 shards are answered, 2 are left" in said.err
    assert [row["source"] for row in answers(tmp_path / "out")] == SENTENCES
    assert [source for sources in asked[5:] for source in sources] == SENTENCES[28:]
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())
    asked.clear()
    assert regardant(*command).code == 0 and not asked


def test_other_work_in_the_same_folder_is_refused(regardant, tiny_run, tmp_path):
    data = shards(tmp_path / "in", SENTENCES[:6])
    assert regardant("translate", tiny_run, "--data", data, "--out", tmp_path / "out").code == 0
    for other in (("translate", "--beam-size", 2), ("predict",)):
        said = regardant(other[0], tiny_run, *other[1:], "--data", data, "--out", tmp_path / "out")
        assert said.code == 2 and "holds the answers of other work" in said.err and said.err.count("\n") == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/letter.txt").write_text("dear")
    said = regardant("translate", tiny_run, "--data", data, "--out", tmp_path / "mine")
    assert said.code == 2 and "holds files that are not answers" in said.err


def test_answers_are_the_corpus_of_the_next_work(regardant, tiny_run, tmp_path):
    data = shards(tmp_path / "en", SENTENCES[:6])
    assert regardant("translate", tiny_run, "--data", data, "--out", tmp_path / "fr").code == 0
    asked = ("--data", tmp_path / "fr", "--out", tmp_path / "scores", "--target", "translation")
    said = regardant("score", tiny_run, *asked)
    assert said.code == 0, said.err
    assert [row["source"] for row in answers(tmp_path / "scores")] == SENTENCES[:6]


def test_work_is_resumed_whose_answers_lie_in_its_corpus(regardant, tiny_run, tmp_path):
    data = shards(tmp_path / "en", SENTENCES[:6])
    command = ("translate", tiny_run, "--data", data, "--out", data / "fr")
    assert regardant(*command).code == 0
    (data / "fr" / "_done" / "00001").unlink()
    said = regardant(*command)
    assert said.code == 0 and "2 of 3 shards are answered, 1 are left" in said.err
    assert [row["source"] for row in answers(data / "fr")] == SENTENCES[:6]


def test_a_manifest_that_was_interrupted_is_written_anew(regardant, tiny_run, tmp_path):
    data = shards(tmp_path / "in", SENTENCES[:6])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "._work.json.0f.part").write_text("{")
    assert regardant("translate", tiny_run, "--data", data, "--out", tmp_path / "out").code == 0
    assert len(answers(tmp_path / "out")) == 6


def test_answers_of_a_run_that_still_trains_are_of_its_weights(regardant, own_run, tmp_path):
    """Its run.yaml has no fingerprint of the weights yet."""
    change_record(own_run, lambda content: content["files"].pop("model.safetensors"))
    weights = own_run / "model.safetensors"
    command = ("translate", own_run, "--data", shards(tmp_path / "in", SENTENCES[:6]), "--out", tmp_path / "out")
    assert regardant(*command).code == regardant(*command).code == 0
    save_file({name: one + torch.ones(()) for name, one in load_file(weights).items()}, weights)
    said = regardant(*command)
    assert said.code == 2 and "holds the answers of other work (weights was " in said.err
    weights.unlink()
    shutil.rmtree(tmp_path / "out")
    said = regardant(*command)
    assert said.code == 2 and "has no model.safetensors: train it first" in said.err and said.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["translate", "predict", "encode", "score"])
def test_help_names_every_kind_of_shard(regardant, verb):
    text = " ".join(regardant(verb, "--help").out.split())
    assert all(suffix in text for suffix in (".parquet", ".jsonl", ".tsv", ".txt"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--data", "x"), "belong together"),
        (("--out", "x"), "belong together"),
        (("a text", "--data", "x", "--out", "y"), "leave out sentences"),
        (("--data", "x", "--out", "y", "--json"), "leave out --json"),
        (("--data", "x", "--out", "y", "--on", "spark"), "allowed are local and ray"),
        (("--data", "x", "--out", "y", "--address", "a:1"), "needs --on ray: give both"),
        (("--data", "no/such/folder", "--out", "y"), "has no file"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(regardant, tiny_run, options, message):
    said = regardant("translate", tiny_run, *options)
    assert said.code == 2 and message in said.err and said.err.count("\n") == 1


@pytest.mark.parametrize("verb", ["translate", "predict", "encode"])
@pytest.mark.parametrize(
    ("options", "given"),
    [
        (("--column", "en"), "--column"),
        (("--on", "local"), "--on"),
        (("--column", "text", "--on", "ray", "--address", "a:1"), "--column, --on, --address"),
    ],
)
def test_options_of_a_corpus_without_one_are_refused_in_one_line(regardant, tiny_run, verb, options, given):
    said = regardant(verb, tiny_run, "a text", *options)
    expected = f"{given} without --data: give --data SHARDS and --out FOLDER, or leave out {given}"
    assert (said.code, said.out, said.err) == (2, "", f"regardant: {expected}\n")


@pytest.mark.parametrize(
    ("verb", "other"),
    [
        ("predict", "--output FILE for the answers to items"),
        ("translate", "--output FILE for the answers to items"),
        ("encode", "none of them"),
    ],
)
def test_a_folder_of_answers_without_a_corpus_is_refused_in_one_line(regardant, tiny_run, verb, other):
    said = regardant(verb, tiny_run, "a text", "--out", "x")
    expected = f"--data and --out belong together: give both, or {other}"
    assert (said.code, said.out, said.err) == (2, "", f"regardant: {expected}\n")


def test_a_number_of_texts_found_without_a_search_is_refused_in_one_line(regardant, tiny_run):
    said = regardant("encode", tiny_run, "a text", "--count", 5)
    expected = "--count without --search: give --search TEXT, or leave out --count"
    assert (said.code, said.out, said.err) == (2, "", f"regardant: {expected}\n")
    said = regardant("encode", tiny_run, "--count", 5, "--data", "x", "--out", "y")
    assert said.code == 2 and said.err == "regardant: --data answers a corpus: leave out --count\n"


def test_a_run_of_another_task_is_refused(regardant, tiny_run, tmp_path):
    said = regardant("encode", tiny_run, "--data", shards(tmp_path / "in"), "--out", tmp_path / "out")
    assert said.code == 2 and not (tmp_path / "out").exists()


def test_predict_and_score_answer_corpora_too(regardant, tiny_run, tmp_path):
    data = shards(tmp_path / "in", [*SENTENCES[:3], " ", None, *SENTENCES[3:6]], parts=2)
    assert regardant("predict", tiny_run, "--data", data, "--out", tmp_path / "predicted").code == 0
    rows = answers(tmp_path / "predicted")
    opened = run.load(tiny_run)
    expected = [one.answer for one in opened.predict(SENTENCES[:6])]
    assert [row["answer"] for row in rows] == [*expected[:3], "", "", *expected[3:]]
    assert "candidates" in json.loads(rows[0]["details"])
    pq.write_table(pa.table({"source": SENTENCES[:4], "target": SENTENCES[4:8]}), tmp_path / "pairs.parquet")
    said = regardant("score", tiny_run, "--data", tmp_path / "pairs.parquet", "--out", tmp_path / "scored")
    assert said.code == 0
    expected = opened.score(SENTENCES[:4], SENTENCES[4:8])
    assert [row["score"] for row in answers(tmp_path / "scored")] == pytest.approx(expected, abs=1e-4)


def test_a_pair_without_a_score_has_none(regardant, tiny_run, tmp_path):
    sources, targets = [SENTENCES[0], None, SENTENCES[1], "the cat " * 40], [SENTENCES[2], "le chat", None, "le chat"]
    columns = {"source": pa.array(sources, pa.string()), "target": pa.array(targets, pa.string())}
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    said = regardant("score", tiny_run, "--data", tmp_path / "pairs.parquet", "--out", tmp_path / "scored")
    assert said.code == 0, said.err
    rows = answers(tmp_path / "scored")
    assert ([row["source"] for row in rows], [row["target"] for row in rows]) == (sources, targets)
    (expected,) = run.load(tiny_run).score(SENTENCES[:1], SENTENCES[2:3])
    assert rows[0]["score"] == pytest.approx(expected, abs=1e-4)
    assert [row["score"] for row in rows[1:]] == [None] * 3


@pytest.mark.usefixtures("small_files")
def test_an_error_names_the_shard_and_the_rows(regardant, trained_on_digits, digit, tmp_path):
    data = shards(tmp_path / "in", [*[str(digit)] * 8, "no/such.png"], parts=1)
    said = regardant("predict", trained_on_digits().folder, "--data", data, "--out", tmp_path / "out")
    assert said.code == 2 and said.err.count("\n") == 1
    assert f"regardant: {data / '00.parquet'} rows 9 to 9: no/such.png cannot be read" in said.err
    assert len(answers(tmp_path / "out")) == 8


def test_text_shards_have_lines(regardant, tiny_run, tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in SENTENCES[:6]))
    assert regardant("translate", tiny_run, "--data", tmp_path / "a.txt", "--out", tmp_path / "out").code == 0
    assert [row["source"] for row in answers(tmp_path / "out")] == SENTENCES[:6]


@pytest.mark.parametrize(
    ("address", "message"), [("127.0.0.1:1", "there is no cluster"), ("127.0.0.1", "HOST:PORT"), ("here", "HOST:PORT")]
)
def test_without_a_cluster_at_the_address_nothing_waits(regardant, tiny_run, tmp_path, address, message):
    asked = ("--data", shards(tmp_path / "in"), "--out", tmp_path / "out", "--on", "ray", "--address", address)
    said = regardant("translate", tiny_run, *asked)
    engine, error = said.err.splitlines()
    assert said.code == 2 and engine.startswith("engine torch (")
    assert error.startswith(f"regardant: --address {address}: ") and message in error


def program(*command, path="."):
    """Run the program in a process of its own, since Ray warns and plugins stay imported. `path` is where it finds
    modules."""
    begin = f"import sys; sys.path.append({str(path)!r}); from regardant.cli import main; main()"
    arguments = [sys.executable, "-c", begin, *map(str, command)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=500, check=False)


@pytest.mark.slow
def test_an_actor_of_ray_imports_the_plugins_of_its_run(corpus, tmp_path):
    """The module is neither in the working directory nor in PYTHONPATH, where Ray itself lets actors find it."""
    (tmp_path / "mine").mkdir()
    write_plugin("attention", "my_cosines", tmp_path / "mine")
    settings = ("model.encoder.self_attention.kind=my_cosines", "training.max_updates=2")
    data = shards(tmp_path / "in", SENTENCES[:6])
    answer = ("translate", tmp_path / "run", "--data", data, "--out")
    for command in (
        ("train", corpus / "tiny.yaml", "--out", tmp_path / "run", *(f"--set={one}" for one in settings)),
        (*answer, tmp_path / "out", "--on", "ray"),
        (*answer, tmp_path / "local"),
    ):
        said = program("--plugin", "my_cosines", *command, path=tmp_path / "mine")
        assert said.returncode == 0, said.stderr
    assert answers(tmp_path / "out") == answers(tmp_path / "local") != []
    works = [(tmp_path / folder / "_work.json").read_bytes() for folder in ("out", "local")]
    assert works[0] == works[1]


@pytest.mark.slow
def test_an_error_of_an_actor_of_ray_names_the_shard_and_the_rows(trained_on_digits, digit, tmp_path):
    data = shards(tmp_path / "in", [*[str(digit)] * 3, "no/such.png"], parts=2)
    said = program("predict", trained_on_digits().folder, "--data", data, "--out", tmp_path / "out", "--on", "ray")
    lines = [line for line in said.stderr.splitlines() if "core_worker.cc" not in line]  # Ray's own warning
    assert said.returncode == 2 and len(lines) == 1, said.stderr
    assert lines[0].startswith(f"regardant: {data / '01.parquet'} rows 1 to 2: no/such.png cannot be read")


def answered_by_actor(folder, given, out, modules=()):
    """Return what an actor returns for one shard of sentences to translate."""
    (shard,) = find_shards(str(given))
    actor = ray_data.ModelActor(
        work.Work(str(folder), "translate", ("text",), {}, str(out)), ray_data.Plugins(list(modules), [])
    )
    batch = {"number": [0], "address": [shard.address], "size": [shard.size]}
    return {name: one for name, (one,) in actor(batch).items()}


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ConfigError("no beam"), "DataError"),
        (OSError(28, "No space left on device"), "OSError"),
        (MemoryError("too much"), "MemoryError"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "MemoryError"),
    ],
)
def test_an_actor_returns_an_error_that_the_user_can_fix(tiny_run, tmp_path, monkeypatch, error, name):
    def fail(*given):
        raise error

    monkeypatch.setitem(work.VERBS, "translate", fail)
    returned = answered_by_actor(tiny_run, shards(tmp_path / "in", parts=1), tmp_path / "out")
    where = f"{tmp_path / 'in' / '00.parquet'} rows 1 to 60: " if name == "DataError" else ""
    assert returned == {"rows": 0, "error": name, "message": f"{where}{error}"}


def test_an_actor_raises_other_errors(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setitem(work.VERBS, "translate", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        answered_by_actor(tiny_run, shards(tmp_path / "in", parts=1), tmp_path / "out")


def test_a_worker_without_the_plugin_or_the_run_is_told(tiny_run, tmp_path):
    data = shards(tmp_path / "in", parts=1)
    returned = answered_by_actor(tiny_run, data, tmp_path / "out", ["no_such_plugin"])
    assert returned["message"].startswith("a worker cannot open the run: plugin no_such_plugin cannot be imported")
    returned = answered_by_actor(tmp_path / "gone", data, tmp_path / "out")
    assert returned["error"] == "DataError" and returned["message"].startswith("a worker cannot open the run: ")


@pytest.mark.slow
def test_a_killed_actor_of_ray_loses_nothing(tiny_run, tmp_path):
    many = [f"{number} {SENTENCES[number % 60]}" for number in range(600)]
    data, out = shards(tmp_path / "in", many, parts=20), tmp_path / "out"
    command = [sys.executable, "-m", "regardant", "translate", tiny_run, "--data", data, "--out", out, "--on", "ray"]
    killed = []

    def kill_one():
        while not list(out.glob("part-*")):
            time.sleep(0.1)
        killed.append(actors_of_ray(working.pid)[0])
        os.kill(killed[0], signal.SIGKILL)

    working = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    _, said = working.communicate(timeout=500)
    assert working.returncode == 0, said
    assert killed and "answers to 600 rows" in said
    rows = answers(out)
    assert [row["source"] for row in rows] == many
    assert len(list(out.glob("part-*.parquet"))) == len(list((out / "_done").iterdir())) == 20


def actors_of_ray(driver):
    """Return the processes of actors of a driver's session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"ray::MapWorker" in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found
