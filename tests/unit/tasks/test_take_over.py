"""Training that starts from an earlier run: from all of it, or from parts of it."""

import copy
import shutil
from random import Random

import pytest
import torch
from torch.testing import assert_close

from regardant import run
from regardant.errors import ConfigError, RunError
from regardant.run import training
from regardant.tasks import load_recipe, task_named
from regardant.tasks.items.prepare import build
from regardant.tasks.take_over import copy_files
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint, load_weights
from tests.conftest import TINY
from tests.runs import change_record

pytestmark = pytest.mark.xdist_group("take over")  # one process makes what all tests share

MODEL = {"kind": "encoder_only", "d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_length": 16}

TRAINING = {
    "max_updates": 4,
    "batch_tokens": 128,
    "validate_every": 2,
    "precision": "float32",
    "attention_kernel": "sdpa",
    "processes": 1,
    "averaging": {"kind": "none"},
    "schedule": {"kind": "constant", "learning_rate": 1e-2, "warmup_steps": 1},
}

MASKED = {
    "task": "masked_language_modelling",
    "data": {"source": "a.tsv"},
    "input": {"tokenizer": {"kind": "word", "vocab_size": 14}},
    "model": {**MODEL, "tie_embeddings": True},
    "training": TRAINING,
}

CLASSES = {
    "task": "classification",
    "data": {"source": "b.tsv"},
    "model": {**MODEL, "dropout": 0.0},
    "training": {**TRAINING, "parts": ["input", "encoder"]},
}


def silent(line):
    pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Tables of texts with labels; b.tsv has other words than a.tsv, and c.tsv other labels."""
    random, folder = Random(1), tmp_path_factory.mktemp("tables")
    words = {"a": "the cat dog bird sees likes hears a red old", "b": "der Hund the cat sees", "c": "the cat sees"}
    labels = {"a": "yes no", "b": "yes no", "c": "yes maybe no"}
    for name in words:
        rows = [
            (" ".join(random.choices(words[name].split(), k=random.randint(2, 12))), label)
            for label in 30 * labels[name].split()
        ]
        table = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows)
        (folder / f"{name}.tsv").write_text(table, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def load(folder):
    def load(recipe, *overrides):
        return load_recipe(copy.deepcopy(recipe), [f"data.root={folder}", *overrides])

    return load


@pytest.fixture(scope="module")
def masked(load, tmp_path_factory):
    """The folder of a masked language model."""
    folder = tmp_path_factory.mktemp("runs") / "masked"
    assert run.train(load(MASKED), folder, silent).finished
    return folder


@pytest.fixture(scope="module")
def classes(load, tmp_path_factory):
    """The folder of a classifier from scratch."""
    folder = tmp_path_factory.mktemp("runs") / "classes"
    config = load({**CLASSES, "training": TRAINING}, "input.tokenizer={kind: word, vocab_size: 9}")
    assert run.train(config, folder, silent).finished
    return folder


def first_weights(config, folder):
    """The weights before the first update."""
    prepared = task_named(config.task).prepare(training.taken_over(config), folder, silent)
    return prepared.job.model.state_dict()


# parts


def test_the_parts_are_the_earlier_run_s_and_the_head_is_fresh(load, masked, tmp_path):
    config = load(CLASSES, f"training.from={masked}")
    weights, earlier = first_weights(config, tmp_path / "run"), load_weights(masked / "model.safetensors")
    parts = {name for name in weights if name.startswith(("input.", "encoder."))}
    assert parts == {name for name in earlier if name.startswith(("input.", "encoder."))} and len(parts) > 10
    for name in parts:
        torch.testing.assert_close(weights[name], earlier[name], rtol=0, atol=0)
    torch.manual_seed(config.seed)
    fresh = build(config, config.input.load(tmp_path / "run"), num_outputs=2).state_dict()
    torch.testing.assert_close(weights["head.output.weight"], fresh["head.output.weight"], rtol=0, atol=0)
    assert not torch.equal(weights["input.table.weight"], fresh["input.table.weight"])
    alone = first_weights(load(CLASSES, f"training.from={masked}", "training.parts=[encoder]"), tmp_path / "alone")
    assert torch.equal(alone["encoder.final_norm.weight"], earlier["encoder.final_norm.weight"])
    assert not torch.equal(alone["input.table.weight"][:9], weights["input.table.weight"][:9])


def test_a_recipe_that_says_dropout_alone_has_the_earlier_run_s_model(load, masked):
    recipe = {name: section for name, section in CLASSES.items() if name != "model"}
    overrides = [f"training.from={masked}", "model.dropout=0.25", "model.attention_dropout=0.125"]
    model, earlier = training.taken_over(load(recipe, *overrides)).model, load(MASKED).model
    assert (model.dropout, model.attention_dropout, model.tie_embeddings) == (0.25, 0.125, False)
    own = {"dropout": earlier.dropout, "attention_dropout": 0.0, "tie_embeddings": True}
    assert model.model_copy(update=own) == earlier
    assert training.taken_over(load(recipe, overrides[0])).model.dropout == earlier.dropout


def test_a_translator_ties_what_the_earlier_run_ties(trained):
    earlier = trained("tokenizer={kind: word, joint: false, vocab_size: 250}", "model.tie_embeddings=target")
    recipe = {name: section for name, section in TINY.items() if name not in ("model", "tokenizer")}
    config = load_recipe(recipe, [f"training.from={earlier.folder}", "training.parts=[source, encoder]"])
    assert training.taken_over(config).model == earlier.config.model


def test_frozen_parts_stay_as_they_were_and_others_learn(load, masked, tmp_path):
    config = load(CLASSES, f"training.from={masked}", "training.frozen=[input]")
    run.train(config, tmp_path / "run", silent)
    weights, earlier = (load_weights(folder / "model.safetensors") for folder in (tmp_path / "run", masked))
    for name in weights:
        if name.startswith("input."):
            assert torch.equal(weights[name], earlier[name]), name
        elif name.startswith("encoder.") and name.endswith("weight"):
            assert not torch.equal(weights[name], earlier[name]), name
    for frozen, told in (("[encoder.layers.9]", "given 'encoder.layers.9'"), ("[input, encoder, head]", "whole model")):
        with pytest.raises(ConfigError, match=f"training.frozen: .*{told}"):
            run.train(load(CLASSES, f"training.from={masked}", f"training.frozen={frozen}"), tmp_path / "x", silent)


def test_adapted_parts_differ_by_low_ranks_from_the_earlier_run_and_are_kept_as_plain_weights(load, masked, tmp_path):
    config = load(CLASSES, f"training.from={masked}", "training.lora={rank: 2}", "training.averaging.kind=none")
    outcome = run.train(config, tmp_path / "run", silent)
    weights, earlier = (load_weights(folder / "model.safetensors") for folder in (tmp_path / "run", masked))
    plain = first_weights(load(CLASSES, f"training.from={masked}"), tmp_path / "plain")
    assert weights.keys() == plain.keys()
    for name in (name for name in weights if name.startswith(("input.", "encoder."))):
        change = weights[name] - earlier[name]
        is_adapted = name.startswith("encoder.layers.") and change.ndim == 2
        assert (torch.linalg.matrix_rank(change, rtol=1e-3) == 2) if is_adapted else not change.any(), name
    assert not torch.equal(weights["head.output.weight"], plain["head.output.weight"])
    found = run.load(tmp_path / "run").evaluate()["validation"]
    assert found["accuracy"] == pytest.approx(outcome.cursor.best)


def test_an_adapted_training_is_resumed_bit_equal(load, masked, tmp_path):
    def config(updates):
        lora = (f"training.from={masked}", "training.lora={rank: 2, alpha: 4}", "training.parts=null")
        return load(MASKED, *lora, f"training.max_updates={updates}")

    for updates in (3, 6):
        run.train(config(updates), tmp_path / "parts", silent)
    run.train(config(6), tmp_path / "whole", silent)
    both = [latest_checkpoint(tmp_path / name) for name in ("parts", "whole")]
    ours, right = (load_checkpoint(path)["model"] for path in both)
    assert ours.keys() == right.keys() and any("parametrizations" in name for name in ours)
    assert all(torch.equal(ours[name], right[name]) for name in ours)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["sum", "ddp"])
def test_two_processes_adapt_as_one_does(load, masked, strategy, tmp_path):
    asked = (f"training.from={masked}", "training.lora={rank: 2}", "training.optimizer.eps=1e-3", "head.dropout=0")
    run.train(load(CLASSES, *asked), tmp_path / "one", silent)
    run.train(load(CLASSES, *asked, "training.processes=2", f"training.strategy={strategy}"), tmp_path / "two", silent)
    one, two = (load_weights(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert one.keys() == two.keys()
    for name in one:
        assert_close(two[name], one[name], rtol=0, atol=1e-5, msg=name)  # an eps above rounding, as Adam enlarges it


def test_with_the_representation_comes_its_vocabulary(load, masked, tmp_path):
    run.train(load(CLASSES, f"training.from={masked}"), tmp_path / "run", silent)
    assert (tmp_path / "run" / "tokenizer.json").read_bytes() == (masked / "tokenizer.json").read_bytes()
    loaded = run.load(tmp_path / "run")
    assert loaded.config.input == run.load(masked).config.input
    assert loaded.config.model.dropout == 0.0 and not loaded.config.model.tie_embeddings
    assert loaded.trained.codec.unknown(loaded.trained.codec.encode(["der Hund sees"])[0]) == 2
    assert loaded.predict(["the cat"])[0].answer in ("yes", "no")


def test_without_the_representation_a_vocabulary_is_learned(load, masked, tmp_path):
    config = load(CLASSES, f"training.from={masked}", "training.parts=[encoder]", "input.tokenizer.kind=word")
    first_weights(config, tmp_path / "run")
    trained = config.input.load(tmp_path / "run")
    assert trained.unknown(trained.encode(["der Hund sees"])[0]) == 0


def test_a_run_from_parts_ends_bit_equal_when_resumed(load, masked, tmp_path):
    shutil.copytree(masked, tmp_path / "earlier")
    config = [CLASSES, f"training.from={tmp_path / 'earlier'}", "model.dropout=0.2"]
    assert run.train(load(*config), tmp_path / "whole", silent).finished
    assert run.train(load(*config, "training.max_updates=2"), tmp_path / "parted", silent).finished
    shutil.rmtree(tmp_path / "earlier")  # which a started run does not need
    assert run.train(load(*config), tmp_path / "parted", silent).finished
    states = [load_checkpoint(latest_checkpoint(tmp_path / name))["model"] for name in ("whole", "parted")]
    torch.testing.assert_close(states[0], states[1], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (
            ["input.tokenizer={kind: word, vocab_size: 9}"],
            r"input\.tokenizer\.vocab_size was 14, is 9\): leave these out",
        ),
        (["input.tokenizer={kind: word, lowercase: true}"], r"input\.tokenizer\.lowercase was False, is True"),
        (["model.d_model=32"], r"differs in input, encoder \(model\.d_model was 16, is 32\): make the settings agree"),
        (["model.num_heads=1"], r"model\.num_heads was 2, is 1"),
        (["model.positions.kind=none"], r"model\.positions\.kind was 'sinusoidal', is 'none'"),
        (["training.parts=[input]", "model.scale_embeddings=false"], "model.scale_embeddings was True, is False"),
    ],
)
def test_parts_of_another_make_are_one_line_before_any_work(load, masked, tmp_path, overrides, told):
    with pytest.raises(ConfigError, match=told) as refusal:
        run.train(load(CLASSES, f"training.from={masked}", *overrides), tmp_path / "run", silent)
    assert "\n" not in str(refusal.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("overrides", "error", "told"),
    [
        (["training.parts=[imput]"], ConfigError, "given 'imput'; allowed: input, encoder, head; did you mean input"),
        (["training.parts=[input, head]"], RunError, r"does not fit input, head of this model \(missing: head.output"),
        (["model={kind: recurrent, hidden_size: 8}"], RunError, r"does not fit input, encoder .*missing: encoder\."),
        (["training.parts=[encoder]", "model.num_layers=2"], ConfigError, "model.num_layers was 1, is 2"),
    ],
)
def test_parts_that_are_not_there_are_one_line(load, masked, tmp_path, overrides, error, told):
    with pytest.raises(error, match=told) as refusal:
        run.train(load(CLASSES, f"training.from={masked}", *overrides), tmp_path / "run", silent)
    assert "\n" not in str(refusal.value)


def test_an_input_alone_may_go_below_another_stack(load, masked, tmp_path):
    config = load(CLASSES, f"training.from={masked}", "training.parts=[input]", "model.num_layers=2", "model.d_ff=8")
    weights, earlier = first_weights(config, tmp_path / "run"), load_weights(masked / "model.safetensors")
    assert torch.equal(weights["input.table.weight"], earlier["input.table.weight"])
    bag = load(CLASSES, f"training.from={masked}", "training.parts=[input]", "model={kind: bag, d_model: 16}")
    assert torch.equal(first_weights(bag, tmp_path / "bag")["input.table.weight"], earlier["input.table.weight"])


def test_parts_need_a_run_that_has_them(load):
    with pytest.raises(ConfigError, match=r"parts are those of an earlier run: set training\.from=RUN too"):
        load(CLASSES)


def test_a_vocabulary_that_is_gone_is_one_line(load, masked, tmp_path):
    (shutil.copytree(masked, tmp_path / "earlier") / "tokenizer.json").unlink()
    with pytest.raises(RunError, match=r"tokenizer\.json cannot be read \(No such file or directory\): restore it"):
        run.train(load(CLASSES, f"training.from={tmp_path / 'earlier'}"), tmp_path / "run", silent)


def test_a_vocabulary_that_cannot_be_written_is_not_called_damaged(masked, tmp_path):
    (tmp_path / "run" / "tokenizer.json").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        copy_files(["tokenizer.json"], masked, tmp_path / "run")


# the whole model


def test_a_whole_model_is_of_the_same_task(load, masked, tmp_path):
    told = r"is a run of masked_language_modelling: give one of classification, or name the parts to take over"
    with pytest.raises(ConfigError, match=told):
        run.train(load({**CLASSES, "training": TRAINING}, f"training.from={masked}"), tmp_path / "run", silent)


def test_a_classifier_starts_from_all_of_another(load, classes, tmp_path):
    bare = {"task": "classification", "data": CLASSES["data"], "training": TRAINING}
    config = load(
        bare,
        f"training.from={classes}",
        "model={dropout: 0.4}",
        "head={kind: sequence_class, dropout: 0.3}",
        "data.source=a.tsv",
    )
    weights, earlier = first_weights(config, tmp_path / "run"), load_weights(classes / "model.safetensors")
    torch.testing.assert_close(weights, earlier, rtol=0, atol=0)
    inherited = training.taken_over(config)
    assert (inherited.model.d_model, inherited.model.dropout, inherited.head.dropout) == (16, 0.4, 0.3)
    with pytest.raises(ConfigError, match=r"its labels\.json differs from that of this data, so its head does not fit"):
        first_weights(load(bare, f"training.from={classes}", "data.source=c.tsv"), tmp_path / "other")


def test_a_run_of_before_parts_is_resumed(load, masked, tmp_path):
    folder = shutil.copytree(masked, tmp_path / "run")

    def age(content):
        for section in ("asked", "config"):
            content[section]["training"].pop("parts", None)

    change_record(folder, age)
    assert run.train(load(MASKED, "training.max_updates=6"), folder, silent).cursor.update == 6
