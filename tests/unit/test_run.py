import json
import shutil
import time
from dataclasses import replace

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

import regardant
from regardant import config, run
from regardant.attention import KERNELS, ScaledDotProduct
from regardant.attention.performer import PerformerConfig
from regardant.cli.training import configuration
from regardant.data.grammar.config import GrammarConfig
from regardant.errors import ConfigError, OutOfMemory, RunError
from regardant.files import sha256_of
from regardant.layers.feed_forward import GatedFeedForwardConfig
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.transformer import EncoderStackConfig
from regardant.planning.probes import Decisions
from regardant.run import training
from regardant.run.fingerprints import require_as_evaluated
from regardant.run.folder import UNFINISHED
from regardant.tasks.evaluated_weights import EVALUATED
from regardant.tasks.sequence_to_sequence.job import SequenceToSequenceJob
from regardant.tasks.translation.config import TranslationConfig
from regardant.training.config import NextTokenTraining
from regardant.training.optimizers import MuonConfig
from tests.runs import change_record


def silent(_: str) -> None:
    """Nobody listens."""


# run.yaml


def test_a_record_comes_back_as_it_was_written(tiny_run, tmp_path):
    record = run.Record.read(tiny_run)
    record.write(tmp_path)
    assert run.Record.read(tmp_path) == record


def test_a_record_of_a_configuration_built_in_python_comes_back(tiny_run, tmp_path):
    training = NextTokenTraining(max_updates=2, optimizer=MuonConfig(momentum=0.9))
    encoder = EncoderStackConfig(self_attention=PerformerConfig())
    model = EncoderDecoderConfig(feed_forward=GatedFeedForwardConfig(), encoder=encoder)
    asked = TranslationConfig(data=GrammarConfig(train_size=9), model=model, training=training)
    replace(run.Record.read(tiny_run), asked=asked).write(tmp_path)
    assert run.Record.read(tmp_path).asked == asked


def test_a_record_says_what_it_was_made_with(tiny_run, configure):
    content = yaml.safe_load((tiny_run / "run.yaml").read_text(encoding="utf-8"))
    assert content["regardant"] == regardant.__version__
    assert content["versions"].keys() == {"python", "torch"}
    assert content["fingerprints"].keys() == {"train", "validation", "test"}
    assert content["asked"] == configure().model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert "averaging" not in content["asked"]["training"]  # it was left open


def test_what_was_left_open_stays_open_where_the_record_is_a_recipe(own_run, configure):
    again, first = configuration(str(own_run / "run.yaml"), None), configure()
    assert again == first
    assert again.training.model_fields_set == first.training.model_fields_set
    assert again.model.model_fields_set == first.model.model_fields_set


@pytest.mark.parametrize("name", ["1e3", "no", "12:30", "0x1F", "a\u2028b"])
def test_names_that_look_like_numbers_stay_names(configure, tmp_path, name):
    given = configure().model_dump(mode="json", by_alias=True)
    given["data"]["source"] = name
    asked = config.load(type(configure()), given)
    record = run.Record(
        asked=asked,
        config=asked,
        decided=Decisions("float32", "sdpa", 1),
        fingerprints={},
        plan={},
    )
    record.write(tmp_path)
    assert run.Record.read(tmp_path).asked.data.source == name


@pytest.mark.parametrize("key", ["asked", "config", "decided", "fingerprints", "plan"])
def test_a_record_without_a_part_names_it(own_run, key):
    change_record(own_run, lambda content: content.pop(key))
    with pytest.raises(RunError, match=f"damaged .no '{key}'"):
        regardant.load(own_run)


def test_a_folder_that_is_not_there_is_told_with_the_nearest_name(own_run):
    with pytest.raises(RunError, match=r"there is no run .*runn; did you mean run"):
        regardant.load(own_run.with_name("runn"))


# damage


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_file_that_was_changed_after_training_is_refused_by_name(own_run, name):
    path = own_run / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(RunError, match=f"{name} is not what training wrote .* restore the file"):
        _ = regardant.load(own_run).trained


def test_weights_of_zeros_are_refused(own_run):
    path = own_run / "model.safetensors"
    save_file({name: torch.zeros_like(one) for name, one in load_file(path).items()}, path)
    with pytest.raises(RunError, match=r"model\.safetensors is not what training wrote"):
        regardant.load(own_run).translate(["a cat ."])


@pytest.mark.parametrize(
    ("written", "changed"),
    [("num_heads: 2", "num_heads: 4"), ("memory_bytes: ", "memory_bytes: 1"), ("\nasked:", " \nasked:")],
)
def test_a_record_that_was_changed_is_refused(own_run, written, changed):
    """Whatever was changed: its configuration, its plan, or no value at all."""
    path = own_run / "run.yaml"
    content = path.read_text(encoding="utf-8")
    assert written in content
    path.write_text(content.replace(written, changed, 1), encoding="utf-8")
    with pytest.raises(RunError, match=r"run\.yaml is not what training wrote: restore it, or train anew"):
        regardant.load(own_run)


def test_a_model_that_is_opened_in_inference_mode_is_used_in_it_and_after_it(tiny_run):
    opened = regardant.load(tiny_run)
    with torch.inference_mode():
        inside = opened.translate(["the dog runs ."])
    assert opened.translate(["the dog runs ."])[0].text == inside[0].text
    assert not any(one.is_inference() for one in opened.trained.model.parameters())


def test_data_that_was_changed_after_training_is_refused_by_the_verbs_that_use_it(own_run):
    path = own_run / "data" / "text" / "test.arrow"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    damaged = regardant.load(own_run)
    assert damaged.translate(["a cat ."])
    for verb in (damaged.evaluate, damaged.measure, damaged.doctor):
        with pytest.raises(RunError, match=r"test\.arrow is not what training wrote .* restore the file"):
            verb()


def test_training_data_that_was_changed_is_refused_where_training_resumes(own_run, configure):
    path = own_run / "data" / "tokens" / "train" / "source.ids.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert regardant.load(own_run).evaluate()
    with pytest.raises(RunError, match=r"source\.ids\.npy is not what training wrote"):
        run.train(configure("training.max_updates=21"), own_run, silent)


SIZES = {"d_model": 40_000_000, "d_ff": 10**9}


@pytest.mark.parametrize("name", SIZES)
def test_a_record_that_asks_for_a_huge_model_is_refused_before_memory_is_taken(own_run, name):
    change_record(own_run, lambda content: content["config"]["model"].update({name: SIZES[name]}))
    start = time.monotonic()
    with pytest.raises(OutOfMemory, match=r"does not fit into memory: restore its run.yaml"):
        regardant.load(own_run).translate(["a cat ."])
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda one: one["config"]["model"]["encoder"].update(num_layers=10**6), "less than or equal to 1000"),
        (lambda one: one["decided"].update(kernel="fast"), r"kernel: given 'fast'; allowed: .*sdpa"),
        (lambda one: one["decided"].update(precision="float8"), "precision: given 'float8'; allowed: float32, bf"),
        (lambda one: one["decided"].update(threads=10**9), "threads: given 1000000000; allowed: 1 to 4096"),
        (lambda one: one["decided"].update(other=1), "damaged"),
        (lambda one: one.update(files=["model.safetensors"]), "`files` must be a mapping"),
        (lambda one: one.update(decided=[1]), "damaged"),
        (lambda one: one.update(plan="x", asked=3), "run.yaml"),
    ],
)
def test_a_record_that_cannot_be_right_is_one_line(own_run, change, told):
    change_record(own_run, change)
    with pytest.raises((RunError, ConfigError), match=told) as error:
        regardant.load(own_run)
    assert "\n" not in str(error.value)


def test_files_without_a_fingerprint_are_those_of_an_earlier_version(own_run):
    def age(content):
        del content["format"], content["files"]
        content["config"]["generation"]["beam_size"] = 7

    change_record(own_run, age)
    assert regardant.load(own_run).config.generation.beam_size == 7


def test_a_resumed_run_has_the_fingerprint_of_its_weights(own_run, configure):
    before = run.Record.read(own_run).files
    assert {name for name in before if not name.startswith("data/")} == {"model.safetensors", "tokenizer.json"}
    run.train(configure("training.max_updates=21"), own_run, silent)
    assert run.Record.read(own_run).files == {**before, "model.safetensors": sha256_of(own_run / "model.safetensors")}


def test_damaged_weights_are_not_taken_for_those_of_a_training_that_has_ended(own_run, configure):
    """Nothing is trained, and the weights are not written anew."""
    (own_run / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(RunError, match=r"model\.safetensors is not what training wrote"):
        run.train(configure(), own_run, silent)


def test_scores_are_those_of_the_weights_that_were_opened(own_run):
    """As of a run that is evaluated while it is trained: run.yaml has no fingerprint of its weights."""
    change_record(own_run, lambda content: content["files"].pop("model.safetensors"))
    weights, loaded = own_run / "model.safetensors", run.load(own_run)
    first = sha256_of(weights)
    assert loaded.trained
    weights.write_bytes(weights.read_bytes() + b" ")
    loaded.evaluate()
    assert all(line.startswith(first) for line in (own_run / "evaluation" / EVALUATED).read_text().splitlines())


def test_an_evaluation_leaves_the_fingerprints_of_others(own_run, tmp_path):
    loaded = run.load(own_run)
    loaded.evaluate()
    hypotheses = own_run / "evaluation" / "test.hyp"
    hypotheses.write_text("changed\n")
    for side in ("en", "fr"):
        (tmp_path / f"other.{side}").write_text("the cat sat .\n")
    loaded.evaluate(data=[tmp_path / "other.en", tmp_path / "other.fr"])
    with pytest.raises(RunError, match=r"test\.hyp is not what .*SHA256SUMS says"):
        require_as_evaluated(own_run)
    (own_run / "evaluation" / "SHA256SUMS").write_bytes(b"\xff")
    loaded.evaluate()
    require_as_evaluated(own_run)


def test_training_from_a_damaged_run_is_refused(own_run, configure, tmp_path):
    (own_run / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(RunError, match=r"model\.safetensors is not what training wrote"):
        run.train(configure(f"training.from={own_run}"), tmp_path / "next", silent)


# training


def test_training_says_what_it_decided_and_what_it_will_cost(configure, tmp_path):
    said = []
    outcome = run.train(configure("training.max_updates=2"), tmp_path / "r", said.append)
    assert outcome.finished and outcome.cursor.update == 2
    assert said[0].strip() == "200 of 200 pairs kept"
    assert any(line.startswith("precision float32, attention kernel") for line in said)
    assert any(line.startswith("training        2 updates") for line in said)


def test_a_start_that_came_to_nothing_is_begun_anew_with_the_text_as_it_is_now(corpus, configure, tmp_path):
    folder = tmp_path / "r"
    with pytest.raises(ConfigError, match="does not fit this corpus"):
        run.train(configure("tokenizer={kind: bpe, vocab_size: 9000}"), folder, silent)
    assert not (folder / "run.yaml").exists()
    english, french = ((corpus / name).read_text(encoding="utf-8") for name in ("a.en", "a.fr"))
    (tmp_path / "a.en").write_text(english.replace("cat", "tiger"), encoding="utf-8")
    (tmp_path / "a.fr").write_text(french.replace("chat", "tigre"), encoding="utf-8")
    (folder / "notes").write_text("mine", encoding="utf-8")
    run.train(configure(f"data.root={tmp_path}", "training.max_updates=1"), folder, silent)
    assert "tiger" in (folder / "tokenizer.json").read_text(encoding="utf-8")
    assert (folder / "notes").read_text(encoding="utf-8") == "mine"
    assert not (folder / UNFINISHED).exists()


def test_a_resumed_run_removes_the_mark_of_a_start_that_was_killed(configure, tmp_path):
    folder = tmp_path / "r"
    run.train(configure("training.max_updates=1"), folder, silent)
    (folder / UNFINISHED).touch()
    run.train(configure("training.max_updates=2"), folder, silent)
    assert not (folder / UNFINISHED).exists()


@pytest.mark.parametrize("held", ["notes", "data", "model.safetensors"])
def test_a_folder_that_holds_something_else_is_left_alone(configure, tmp_path, held):
    (tmp_path / held).mkdir()
    with pytest.raises(RunError, match="not empty and no run"):
        run.train(configure(), tmp_path, silent)
    assert [entry.name for entry in tmp_path.iterdir()] == [held]


def test_a_budget_may_change_and_nothing_else(own_run, configure):
    outcome = run.train(configure("training.max_updates=23", "training.patience=90"), own_run, silent)
    assert outcome.cursor.update == 23
    with pytest.raises(ConfigError, match=r"model\.d_ff was 32, is 64; seed was 1, is 2"):
        run.train(configure("model.d_ff=64", "seed=2"), own_run, silent)


def test_a_finished_run_is_left_as_it_is_by_the_same_command(own_run, configure):
    weights = (own_run / "model.safetensors").read_bytes()
    metrics = (own_run / "metrics.jsonl").read_bytes()
    assert run.train(configure(), own_run, silent).cursor.update == 20
    assert (own_run / "model.safetensors").read_bytes() == weights
    assert (own_run / "metrics.jsonl").read_bytes() == metrics


def test_planning_says_nothing_of_its_result_and_trains_nothing(configure, tmp_path):
    said = []
    _, decisions, planned = run.plan(configure(), tmp_path, said.append)
    assert not set(planned.lines()) & set(said)
    assert (planned.updates, decisions.precision) == (20, "float32")
    assert not (tmp_path / "run.yaml").exists() and not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("strategy", ["sum", "ddp"])
def test_planning_names_the_strategy_that_is_asked_for(configure, tmp_path, strategy):
    said = []
    overrides = ("training.processes=2", f"training.strategy={strategy}")
    _, decisions, _ = run.plan(configure(*overrides), tmp_path, said.append)
    assert decisions.strategy == strategy
    assert any(f"in 2 processes ({strategy})" in line for line in said)


# a budget that changes


def budget_of(configure, recorded, asked):
    before = configure(*recorded).training
    after = training.with_changes(before, configure(*asked).training)
    return after.max_minutes, after.max_updates, after.max_epochs


AUTO = "training.max_minutes=auto"
NO_UPDATES = "training.max_updates=null"


def test_a_run_goes_on_with_the_budget_that_is_asked_for_now(configure):
    assert budget_of(configure, [], ["training.max_updates=30"]) == (None, 30, None)
    assert budget_of(configure, ["training.max_minutes=3"], [NO_UPDATES, "training.max_epochs=9"]) == (None, None, 9)


def test_minutes_that_were_chosen_stay_chosen_and_others_are_chosen_where_there_are_none(configure):
    chosen = ["training.max_minutes=2.5", NO_UPDATES]
    assert budget_of(configure, chosen, [AUTO, NO_UPDATES]) == (2.5, None, None)
    assert budget_of(configure, chosen, [AUTO, NO_UPDATES, "training.max_epochs=9"]) == ("auto", None, 9)
    assert budget_of(configure, ["training.max_updates=100"], [AUTO, NO_UPDATES]) == ("auto", None, None)


def test_a_changed_budget_is_in_the_record(own_run, configure):
    run.train(configure("training.max_updates=22"), own_run, silent)
    record = run.Record.read(own_run)
    assert record.asked.training.max_updates == record.config.training.max_updates == 22


def test_scores_of_a_resumed_run_are_of_the_pairs_that_it_began_with(own_run, configure, monkeypatch):
    begun_with = run.Record.read(own_run).plan["validation_targets"]
    kept = []
    validate_on = SequenceToSequenceJob.validate_on
    monkeypatch.setattr(
        SequenceToSequenceJob,
        "validate_on",
        lambda job, targets: (validate_on(job, targets), kept.append(job.validation_targets)),
    )
    run.train(configure("training.max_updates=21"), own_run, silent)
    assert kept == [begun_with]
    change_record(own_run, lambda content: content["plan"].update(validation_targets=begun_with // 2))
    run.train(configure("training.max_updates=22"), own_run, silent)
    assert begun_with / 3 < kept[-1] <= begun_with // 2


@pytest.mark.parametrize(("precision", "noted"), [("float32", 0), ("bfloat16", 1)])
def test_a_run_in_bfloat16_resumed_on_a_processor_without_it_is_noted(
    own_run, configure, monkeypatch, precision, noted
):
    monkeypatch.setattr(training, "multiplies_bfloat16", lambda device: False)
    change_record(own_run, lambda content: content["decided"].update(precision=precision))
    lines = []
    run.train(configure("training.max_updates=21"), own_run, lines.append)
    assert sum(line.startswith("this processor has no instructions for bfloat16") for line in lines) == noted


def test_an_unknown_tracker_is_refused_before_anything_is_written_and_trackers_may_change(own_run, configure, tmp_path):
    with pytest.raises(ConfigError, match=r"training\.trackers: given 'wandb'; allowed: tensorboard"):
        run.train(configure("training.trackers=[wandb]"), tmp_path / "new", silent)
    assert not (tmp_path / "new").exists()
    run.train(configure("training.trackers=[]", "training.max_updates=21"), own_run, silent)
    assert run.Record.read(own_run).config.training.trackers == ()


def test_a_run_of_an_older_version_goes_on_though_it_lacks_the_newest_fields(own_run, configure):
    def age(content):
        for recipe in (content["asked"], content["config"]):
            recipe["training"].pop("z_loss", None)
            recipe["model"].pop("activation_checkpointing", None)

    change_record(own_run, age)
    with pytest.raises(ConfigError, match=r"other settings \(training\.z_loss was 0\.0, is 0\.001\)"):
        run.train(configure("training.z_loss=0.001"), own_run, silent)
    assert run.train(configure(), own_run, silent).finished
    assert run.Record.read(own_run).asked.training.z_loss == 0


def test_a_run_whose_record_names_its_metric_goes_on_where_none_is_asked_for(own_run, configure):
    def name_metric(content):
        for recipe in (content["asked"], content["config"]):
            recipe["training"]["best_by"] = "bleu"

    change_record(own_run, name_metric)
    assert run.train(configure("training.max_updates=21"), own_run, silent).metric.name == "bleu"
    with pytest.raises(ConfigError, match=r"training\.best_by was 'bleu', is 'loss'"):
        run.train(configure("training.best_by=loss"), own_run, silent)


@pytest.mark.parametrize("part", ["asked", "config"])
def test_what_a_run_was_begun_with_and_is_no_more_is_told_in_one_line(own_run, configure, part):
    change_record(own_run, lambda content: content[part]["training"].update(gone=1, batch_tokens=0))
    with pytest.raises(ConfigError, match=r"run\.yaml.*(gone.*batch_tokens|batch_tokens.*gone)") as told:
        run.train(configure(), own_run, silent)
    assert "\n" not in str(told.value)


def test_text_that_is_not_what_a_run_began_with_is_refused(own_run, configure):
    change_record(own_run, lambda content: content["fingerprints"].update(train="0" * 64))
    with pytest.raises(RunError, match=r"the data is not what .* was begun with: restore it, or give another --out"):
        run.train(configure("training.max_updates=25"), own_run, silent)


# going on from another run


def going_on(configure, parent, *overrides):
    """The recipe without a word on model and tokenizer, from `parent`."""
    given = configure().model_dump(mode="json", by_alias=True, exclude_unset=True)
    del given["model"], given["tokenizer"]
    return config.load(type(configure()), given, [f"training.from={parent}", "training.max_updates=2", *overrides])


def test_a_run_that_goes_on_from_another_takes_over_model_and_vocabulary(configure, tiny_run, tmp_path):
    run.train(going_on(configure, tiny_run), tmp_path / "child", silent)
    parent, child = run.Record.read(tiny_run).config, run.Record.read(tmp_path / "child").config
    assert (child.model, child.tokenizer) == (parent.model, parent.tokenizer)
    assert (tmp_path / "child" / "tokenizer.json").read_bytes() == (tiny_run / "tokenizer.json").read_bytes()


def test_planning_takes_over_what_training_would(configure, tiny_run, tmp_path):
    _, _, planned = run.plan(going_on(configure, tiny_run), tmp_path, silent)
    assert planned.parameters == run.Record.read(tiny_run).plan["parameters"]


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("model.d_ff=64", r"model\.d_ff was 32, is 64"),
        ("model.kind=recurrent", "model.kind was 'encoder_decoder', is 'recurrent'"),
        ("model.encoder.self_attention={kind: performer, num_features: 8}", "num_features was None, is 8"),
        ("tokenizer.lowercase=true", "tokenizer.lowercase was False, is True"),
    ],
)
def test_another_translator_than_the_earlier_run_s_is_refused(configure, tiny_run, tmp_path, override, told):
    with pytest.raises(ConfigError, match=rf"training\.from .* has other settings \(.*{told}.*: leave these out"):
        run.train(going_on(configure, tiny_run, override), tmp_path / "child", silent)
    assert not (tmp_path / "child").exists()


# using a run


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_run_translates_with_the_kernel_that_was_measured_best(own_run, kernel):
    change_record(own_run, lambda content: content["decided"].update(kernel=kernel))
    modules = regardant.load(own_run).translator.model.modules()
    used = [module.kernel for module in modules if isinstance(module, ScaledDotProduct)]
    assert used and all(one is KERNELS[kernel] for one in used)


def test_a_run_gives_text_score_and_tokens(tiny_run):
    translations = regardant.load(tiny_run).translate(["the cat .", ""], beam_size=3, nbest=2)
    assert [len(translation.candidates) for translation in translations] == [2, 1]
    best = translations[0]
    assert best.text and best.tokens and best.score == best.candidates[0].score < 0
    assert (translations[1].text, translations[1].tokens) == ("", [])


def test_nbest_alone_widens_the_beam_and_a_beam_that_is_given_stays(tiny_run):
    loaded = regardant.load(tiny_run)
    assert loaded.generation(nbest=9).beam_size == 9
    assert loaded.generation(nbest=2).beam_size == loaded.config.generation.beam_size == 5
    assert loaded.generation(length_penalty=None, beam_size=None) == loaded.config.generation
    with pytest.raises(ConfigError, match=r"nbest \(4\) must be at most beam_size \(3\)"):
        loaded.generation(nbest=4, beam_size=3)


def test_a_misspelt_option_is_named(tiny_run):
    with pytest.raises(ConfigError, match="beamsize: unknown key; did you mean beam_size"):
        regardant.load(tiny_run).translate(["the cat"], beamsize=3)


def test_scores_are_those_of_the_translations_that_were_found(tiny_run):
    loaded = regardant.load(tiny_run)
    found = loaded.translate(["the cat ."], length_penalty=0)[0]
    assert loaded.score(["the cat ."], [found.text])[0] == pytest.approx(found.score, abs=1e-3)


def test_evaluation_keeps_what_it_scored_beside_the_scores(own_run):
    scores = regardant.load(own_run).evaluate(beam_size=1)
    kept = own_run / "evaluation"
    assert scores["test"] == json.loads((kept / "test.json").read_text(encoding="utf-8"))
    assert {
        len((kept / f"test.{name}").read_text(encoding="utf-8").splitlines()) for name in ("src", "ref", "hyp")
    } == {8}


def test_other_data_may_not_take_the_name_of_a_test_set(own_run, tmp_path):
    for name in ("test", "other"):
        (tmp_path / name).write_text("the cat\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"--data test has the name of a test set of .*: rename the file"):
        regardant.load(own_run).evaluate(data=[tmp_path / "test", tmp_path / "other"])


def test_a_run_without_its_text_asks_for_some(own_run, tmp_path):
    (own_run / "data").rename(tmp_path / "away")
    loaded = regardant.load(own_run)
    with pytest.raises(RunError, match="holds no test text: give some with --data"):
        loaded.evaluate()
    (tmp_path / "x.tsv").write_text("the cat\tle chat\n", encoding="utf-8")
    assert loaded.evaluate(data=[tmp_path / "x.tsv"])["x.tsv"]["sentences"] == 1


def test_the_lecture_s_sentences_are_drawn_from_a_run_that_was_not_evaluated_yet(trained, tmp_path):
    folder = shutil.copytree(trained().folder, tmp_path / "r")
    page = run.load(folder).trained.show_lecture_sentences(silent)
    assert page == folder / "report.html"
    assert "European Economic Area" in page.read_text(encoding="utf-8")
    assert (folder / "evaluation" / "test.json").is_file()


def test_a_run_without_alignments_has_none_to_draw(own_run, tmp_path):
    (tmp_path / "x.tsv").write_text("the cat\tle chat\n", encoding="utf-8")
    loaded = regardant.load(own_run)
    scores = loaded.evaluate(data=[tmp_path / "x.tsv"])["x.tsv"]
    assert "alignment" not in scores
    (own_run / "evaluation" / "test.json").write_text(json.dumps(scores), encoding="utf-8")
    with pytest.raises(RunError, match="has no alignment to draw: its model needs cross-attention"):
        loaded.trained.show_lecture_sentences(silent)


@pytest.mark.parametrize("kernel", ["matmul", "sdpa"])
def test_what_is_planned_is_timed_with_the_kernel_that_will_run(configure, tmp_path, kernel):
    prepared, decided, _ = run.plan(configure(f"training.attention_kernel={kernel}"), tmp_path, silent)
    used = {module.kernel for module in prepared.job.model.modules() if isinstance(module, ScaledDotProduct)}
    assert decided.kernel == kernel and used == {KERNELS[kernel]}


# tasks


def test_a_verb_that_a_run_s_task_has_not_is_one_line(tiny_run, trained_on_text):
    of_text = trained_on_text()
    with pytest.raises(RunError, match="is a run of language_modelling, which has no translate: it has generate, "):
        of_text.translate(["the cat"])
    with pytest.raises(RunError, match="is a run of language_modelling, which has no translate"):
        _ = of_text.translator
    with pytest.raises(RunError, match="is a run of translation, which has no generate: it has translate, predict"):
        regardant.load(tiny_run).generate("the cat")
    with pytest.raises(ConfigError, match=r"is a run of translation, .* of language_modelling: give runs of one"):
        run.compare([tiny_run, of_text.folder])


def test_training_goes_on_from_a_run_of_the_same_task_alone(tiny_run, tiny_text_config, tmp_path):
    with pytest.raises(ConfigError, match="is a run of translation: give one of language_modelling"):
        run.train(tiny_text_config(f"training.from={tiny_run}"), tmp_path / "r", silent)


def test_training_on_other_text_goes_on_from_an_earlier_run(trained_on_text, tiny_text_config, tmp_path):
    earlier = trained_on_text()
    more = (f"training.from={earlier.folder}", "model={dropout: 0.1}", "training.max_updates=3", "seed=9")
    run.train(tiny_text_config(*more), tmp_path / "r", silent)
    loaded = run.load(tmp_path / "r")
    assert (loaded.config.model.d_model, loaded.config.model.dropout) == (32, 0.1)
    assert loaded.evaluate()["validation"]["loss"] < 1.1 * earlier.evaluate()["validation"]["loss"]
    with pytest.raises(ConfigError, match=r"has other settings \(model\.d_model was 32, is 64\): leave these out"):
        run.train(tiny_text_config(more[0], "model={d_model: 64}"), tmp_path / "other", silent)


def test_a_plan_of_a_text_has_no_padding(tiny_text_config, tmp_path):
    prepared, _, planned = run.plan(tiny_text_config(), tmp_path, silent)
    assert planned.padding == {} and not any(line.startswith("padding") for line in planned.lines())
    assert planned.as_dict().keys() >= {"parameters", "seconds"} and "padding" not in planned.as_dict()
    assert planned.tokens_per_epoch == sum(prepared.job.load(batch).count for batch in prepared.job.plan(0))
