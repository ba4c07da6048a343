"""The debugging checklist on runs that are sick in a known way, and on runs that are not."""

import json
import math
import re
import shutil
from random import Random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from regardant import config, run
from regardant.checks.doctor import CHECKS
from regardant.checks.doctor.case import Case, LeftOut
from regardant.checks.doctor.curves import plateau
from regardant.checks.doctor.entropy import judged
from regardant.checks.doctor.self_tests import (
    future_change,
    future_mask,
    order,
    padding_change,
    padding_mask,
    reversed_between,
)
from regardant.checks.doctor.settings import memory, unknown_tokens
from regardant.data.recordings import Recording, write_recording
from regardant.data.vocabulary import EOS, PAD, SOS, UNK
from regardant.errors import RunError
from regardant.models.decoder_only import DecoderOnly
from regardant.models.encoder_only import EncoderOnly
from regardant.tasks import load_recipe
from regardant.tasks.probe import Probe
from regardant.training.metrics import Metric
from tests.runs import change_record, make_earlier

from . import faults  # noqa: F401  which adds models

SIZES = """preset: null, d_model: 32, num_heads: 2, d_ff: 64, dropout: 0.0, max_length: 48, encoder: {num_layers: 1},
decoder: {num_layers: 1}"""
KNOWN = "tokenizer.vocab_size=2000"
BRIEF = (KNOWN, "data.test_size=20", "training.max_updates=20")
CURVES = {"gradient norms", "learning", "loss spikes", "plateau", "more than frequencies"}


@pytest.fixture
def doctor(tmp_path):
    """Train, and look at what came of it."""

    def examine(recipe):
        run.train(recipe, tmp_path / "sick", lambda line: None)
        return run.load(tmp_path / "sick").doctor()

    return examine


@pytest.fixture
def brief(tiny_config):
    """TINY for so few updates that no curve is judged, by a model of a kind."""

    def load(kind, *overrides):
        return tiny_config(f"model={{kind: {kind}, {SIZES}}}", *BRIEF, *overrides)

    return load


def findings(diagnosis):
    return {name: finding.what for name, finding in diagnosis.findings}


def the_finding(diagnosis, name):
    """The only one there is."""
    ((found, finding),) = diagnosis.findings
    assert found == name
    return finding


# the six faults


def test_a_missing_padding_mask_is_found(doctor, brief):
    finding = the_finding(doctor(brief("unmasked")), "padding mask")
    assert finding.what == "padding changes the scores: a padding mask is missing"
    assert re.search(
        r"an item of \d+ tokens, padded to \d+: its scores change by [\d.]+ standard deviations", finding.evidence
    )
    assert "View(keys=tokens != PAD)" in finding.cure


def test_exploding_gradients_are_found(doctor, brief):
    sick = brief("unnormalised", "training.max_updates=220", "training.clip_norm=0", "training.validate_every=220")
    finding = dict(doctor(sick).findings)["gradient norms"]
    assert finding.what == "gradients explode"
    assert re.search(
        r"norms over 10 in \d+ lines of metrics\.jsonl from update \d+ on, the largest [\d.e+]+ at", finding.evidence
    )
    assert "lower training.schedule.learning_rate from 0.01 to 0.0033, set training.clip_norm=1" in finding.cure


def test_gradients_that_are_not_finite_are_found_in_a_run_that_never_came_to_a_model(tiny_config, tmp_path):
    sick = tiny_config("training.schedule={kind: linear, learning_rate: 1.0e+30, warmup_steps: 1}")
    with pytest.raises(RunError, match="in a row were not finite"):
        run.train(sick, tmp_path / "sick", lambda line: None)
    diagnosis = run.load(tmp_path / "sick").doctor()
    finding = the_finding(diagnosis, "gradient norms")
    assert finding.what == "gradients explode: they are not finite"
    assert finding.evidence == "at update 10 or shortly before"
    assert finding.cure == "lower training.schedule.learning_rate from 1e+30 to 3.3e+29"
    assert "model.safetensors" in diagnosis.left_out["padding mask"]


def test_collapsed_entropy_is_found(doctor, tiny_config):
    cold = "{kind: scaled_dot_product, temperature: 1.0e-4}"
    places = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")
    sick = tiny_config(*BRIEF, *(f"model.{place}={cold}" for place in places))
    finding = the_finding(doctor(sick), "attention entropy")
    assert finding.what == "attention has collapsed: every head attends to a single key"
    assert "encoder.layers.0.self_attention, decoder.layers.0.self_attention" in finding.evidence
    assert "lower training.schedule.learning_rate" in finding.cure


def test_targets_that_are_not_shifted_are_found(doctor, brief):
    finding = the_finding(doctor(brief("unshifted", "training.max_updates=80")), "shifted targets")
    assert finding.what == "the targets are not shifted: the model repeats its input"
    assert re.search(
        r"validation gave \d\.\d\d nats .* token is \d+\.\d\d\. At \d+% of the positions .* Validation bleu was",
        finding.evidence,
    )
    assert "read target[:, :-1] and predict target[:, 1:]" in finding.cure


def test_post_norm_without_warm_up_is_found(doctor, tiny_config):
    sick = tiny_config(*BRIEF, "model.norm=post", "training.schedule.warmup_steps=0")
    finding = the_finding(doctor(sick), "warm-up")
    assert finding.what == "a post-norm Transformer is trained without warm-up"
    assert finding.evidence.startswith(
        "model.norm=post, the learning rate reaches its peak of 0.01 at update 1, of 20; "
    )
    assert finding.cure == "set training.schedule.warmup_steps=10, or model.norm=pre"


def test_batches_that_are_mostly_padding_are_found(doctor, brief, tmp_path):
    words = ["a", "b", "c", "d", "e", "f", "g", "h"]
    lines = [" ".join(words[(i + j) % 8] for j in range(20 if i % 6 == 0 else 2 + i % 5)) for i in range(120)]
    for name, text in (("a.en", lines), ("a.fr", map(str.upper, lines))):
        numbered = (f"{line} {number}\n" for number, line in enumerate(text))
        (tmp_path / name).write_text("".join(numbered), encoding="utf-8")
    data = f"data={{kind: pairs, root: {tmp_path}, source: a.en, target: a.fr, validation_size: 8, test_size: 8}}"
    sick = brief("encoder_decoder", data, "tokenizer={kind: byte}", "training.batch_tokens=40000")
    finding = dict(doctor(sick).findings)["padding share"]
    assert re.search(r"6\d% of the source blocks, 6\d% of the target blocks", finding.evidence)
    assert "lower training.batch_tokens (now 40,000)" in finding.cure


# faults of a classifier


def test_a_classifier_that_pools_padding_is_found(doctor, tiny_labels_config):
    finding = the_finding(
        doctor(tiny_labels_config("model.kind=unmasked_encoder", "training.max_updates=5")), "padding mask"
    )
    assert finding.what == "padding changes the scores: a padding mask is missing"
    assert re.search(
        r"an item of \d+ tokens, padded to \d+: its scores change by [\d.]+ standard deviations", finding.evidence
    )
    assert "exclude it from the head's pooling" in finding.cure


def test_labels_that_do_not_belong_to_their_items_are_found(doctor, tiny_labels_config, labelled_files, tmp_path):
    random = Random(0)
    for name in ("train", "test"):
        lines = [line.split("\t") for line in (labelled_files / f"{name}.tsv").read_text("utf-8").splitlines()]
        labels = [label for _, label in lines]
        random.shuffle(labels)
        text = "".join(f"{item}\t{label}\n" for (item, _), label in zip(lines, labels, strict=True))
        (tmp_path / f"{name}.tsv").write_text(text, "utf-8")
    found = dict(doctor(tiny_labels_config(f"data.root={tmp_path}")).findings)
    finding = found["more than frequencies"]
    assert finding.what == "the model learned only the frequencies of the targets"
    assert re.search(r"from the frequencies of targets alone; \d+% right, \d+% by the most frequent", finding.evidence)
    assert "check that items and targets belong together" in finding.cure


def test_answers_that_are_right_and_too_certain_are_no_finding(trained_on_labels, tmp_path):
    folder = shutil.copytree(trained_on_labels().folder, tmp_path / "changed")
    text = (folder / "metrics.jsonl").read_text("utf-8")
    (folder / "metrics.jsonl").write_text(
        re.sub(r'("event": "validation".*"loss": )[\d.e-]+', r"\g<1>0.9", text), "utf-8"
    )
    diagnosis = run.load(folder).doctor()
    assert "more than frequencies" not in findings(diagnosis)
    assert "by the most frequent answer alone" in diagnosis.seen["more than frequencies"].measured


def test_a_classifier_without_positions_and_one_that_ignores_its_input_are_found(doctor, tiny_labels_config, tmp_path):
    finding = the_finding(
        doctor(tiny_labels_config("model.positions={kind: none}", "training.max_updates=5")), "order of elements"
    )
    assert finding.what == "the order of the input has no effect on the scores"
    shutil.rmtree(tmp_path / "sick")
    found = dict(
        doctor(
            tiny_labels_config("model.kind=blind", "training.max_updates=5", "model.positions={kind: none}")
        ).findings
    )
    assert found["order of elements"].what == "the input has no effect on the scores"


# other faults


def test_a_missing_causal_mask_is_found(doctor, brief):
    diagnosis = doctor(brief("foresighted"))
    assert findings(diagnosis)["future mask"] == "scores depend on later tokens: a causal mask is missing"


def test_a_model_that_knows_frequencies_alone_is_found(trained, tmp_path):
    folder = shutil.copytree(trained(KNOWN).folder, tmp_path / "changed")
    text = (folder / "metrics.jsonl").read_text("utf-8")
    (folder / "metrics.jsonl").write_text(re.sub(r'("took".*"loss": )[\d.]+', r"\g<1>5.5", text), "utf-8")
    diagnosis = run.load(folder).doctor()
    assert findings(diagnosis) == {"more than frequencies": "the model learned only the frequencies of the targets"}


def test_positions_that_are_missing_are_found(doctor, tiny_config):
    diagnosis = doctor(tiny_config(*BRIEF, "model.positions={kind: none}"))
    assert [finding.what for _, finding in diagnosis.findings] == [
        "the order of the source has no effect on the scores",
        "the order of the target so far has no effect on the scores",
    ]
    assert all("model.positions={kind: sinusoidal}" in finding.cure for _, finding in diagnosis.findings)


def test_a_decoder_that_never_asks_the_source_is_found(doctor, brief):
    found = dict(doctor(brief("deaf")).findings)
    assert found["attention entropy"].what == "attention has collapsed: all heads have uniform weights"
    assert found["attention entropy"].evidence.startswith("decoder.layers.0.cross_attention: ")
    finding = found["order of elements"]
    assert finding.what == "the source has no effect on the scores"
    assert finding.evidence.startswith("the source of other rows changes the scores by ")


def test_unknown_tokens_are_found(doctor, tiny_config):
    finding = the_finding(doctor(tiny_config(*BRIEF, "tokenizer.vocab_size=60")), "unknown tokens")
    assert re.search(
        r"\d+\.\d% of the source, \d+\.\d% of the target in validation, with word tokens", finding.evidence
    )
    assert "set tokenizer.kind=bpe" in finding.cure


@pytest.mark.parametrize(("side", "path"), [("source", "input.tokenizer"), ("target", "tokenizer")])
def test_unknown_tokens_name_the_tokenizer_of_their_side(side, path):
    recipe = {
        "task": "sequence_to_sequence",
        "data": {"kind": "table", "source": "a.tsv"},
        "input": {"kind": "text", "tokenizer": {"kind": "word", "vocab_size": 100}},
        "tokenizer": {"kind": "character"},
        "training": {"max_updates": 1},
    }
    tokens = {"source": torch.full((2, 3), 9), "target": torch.full((2, 3), 9)}
    tokens[side][0, 0] = UNK
    case = SimpleNamespace(
        config=load_recipe(recipe),
        probe=SimpleNamespace(inputs=tokens),
        trained=SimpleNamespace(model=None),
        unit=lambda name: "token",
        lengths=lambda name: [3, 3],
    )
    (finding,) = unknown_tokens(case).findings
    assert finding.cure.startswith(f"set {path}.kind=bpe, ") and f"or raise {path}.vocab_size" in finding.cure


@pytest.fixture
def with_curves(trained, tmp_path):
    """The healthy run with numbers of its metrics changed."""

    def change(training=lambda share, event: {}, validation=lambda share, event: {}):
        folder = shutil.copytree(trained(KNOWN).folder, tmp_path / "changed")
        events = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
        changes = {"train": training, "validation": validation}
        written = [
            {**event, **changes[event["event"]](event["update"] / 300, event)}
            for event in events
            if event["event"] in changes
        ]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in written), "utf-8")
        return run.load(folder).doctor()

    return change


CURVE_FAULTS = {
    "a loss that rises and falls": (
        "learning",
        "too high",
        lambda share, event: {"loss": 5 + 4 * share if share < 0.5 else 12 - 10 * share},
    ),
    "a spike": ("loss spikes", "has spikes", lambda share, event: {"loss": 9.0 if share == 0.5 else event["loss"]}),
    "a loss that rises again": ("learning", "too high", lambda share, event: {"loss": 2 - share if share < 0.7 else 4}),
    "a loss that stays": ("learning", "nothing was learned", lambda share, event: {"loss": 5.5 - share / 100}),
    "a loss that still falls": (
        "plateau",
        "while the loss was still falling",
        lambda share, event: {"loss": 6 - 5 * share},
    ),
    "gradients that vanish": (
        "gradient norms",
        "gradients vanish",
        lambda share, event: {"loss": 5 - share, "gradient_norm": 1e-7},
    ),
    "gradients that grow": (
        "gradient norms",
        "gradients explode",
        lambda share, event: {"gradient_norm": 2.0 ** (20 * share)},
    ),
    "memory": ("memory", "more memory than planned", lambda share, event: {"memory_peak_bytes": 1 << 36}),
}


@pytest.mark.parametrize("patience", [None, 3])
def test_a_training_within_its_budget_has_no_plateau_to_judge(patience):
    config = SimpleNamespace(training=SimpleNamespace(patience=patience))
    events = [{"event": "train", "update": 10 * at, "progress": at / 100, "loss": 6 - at / 20} for at in range(60)]
    with pytest.raises(LeftOut, match=r"^training is at 59% of its budget$"):
        plateau(Case(config, None, {}, events, None))


@pytest.mark.parametrize("case", CURVE_FAULTS)
def test_a_sick_curve_is_found(with_curves, case):
    name, what, training = CURVE_FAULTS[case]
    assert any(found == name and what in finding.what for found, finding in with_curves(training).findings)


def test_memory_is_compared_with_the_plan_alone():
    """The machine that trained the run may have more memory than this one."""
    config = SimpleNamespace(training=SimpleNamespace(batch_tokens=512))
    events = [{"event": "train", "update": 10, "progress": 0.1, "memory_bytes": 1 << 59}]
    assert not memory(Case(config, None, {"memory_bytes": 1 << 59}, events, None)).findings
    assert memory(Case(config, None, {"memory_bytes": 1 << 58}, events, None)).findings


@pytest.mark.parametrize(("norm", "explodes"), [(12.0, False), (200.0, True)])
def test_two_large_gradients_of_a_hundred_are_an_accident_and_two_bursts_are_not(trained, tmp_path, norm, explodes):
    folder = shutil.copytree(trained(KNOWN).folder, tmp_path / "changed")
    path = folder / "metrics.jsonl"
    last = [event for line in path.read_text().splitlines() if (event := json.loads(line))["event"] == "train"][-1]
    more = [last | {"update": last["update"] + n, "gradient_norm": norm if n in (30, 60) else 1.0} for n in range(100)]
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in more)
    assert ("gradient norms" in dict(run.load(folder).doctor().findings)) == explodes


def test_overfitting_is_found_where_what_is_kept_is_old(trained, tmp_path):
    folder = shutil.copytree(trained(KNOWN).folder, tmp_path / "changed")
    told = [
        {"event": "validation", "time": n, "update": 100 * n, "loss": 2 + abs(n - 1), "bleu": 0.0} for n in range(1, 5)
    ]
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in told)
    finding = dict(run.load(folder).doctor().findings)["overfitting"]
    assert "was lowest at update" in finding.evidence and "training.patience" in finding.cure


def test_what_is_kept_is_what_training_keeps():
    config = SimpleNamespace(metric=Metric("bleu", higher_is_better=True, noise=0.5))
    bleus = {100: 28.0, 200: 30.0, 300: 29.75, 400: 29.0}
    events = [{"event": "validation", "update": update, "loss": 2.0, "bleu": bleu} for update, bleu in bleus.items()]
    assert Case(config, None, {}, events, None).kept["update"] == 300


# health


def assert_healthy(diagnosis):
    assert findings(diagnosis) == {}
    assert diagnosis.seen.keys() | diagnosis.left_out.keys() == {check.name for check in CHECKS}
    return diagnosis


def test_a_healthy_translator_has_nothing(trained):
    diagnosis = assert_healthy(trained(KNOWN).doctor())
    assert set(diagnosis.left_out) == {"overfitting"}  # of two validations
    assert "2 items" in diagnosis.seen["padding mask"].measured or "4 items" in diagnosis.seen["padding mask"].measured


def test_a_healthy_language_model_has_nothing_and_no_padding(trained_on_text):
    diagnosis = assert_healthy(trained_on_text().doctor())
    assert set(diagnosis.left_out) == {"overfitting", "padding mask", "padding share"}


def test_a_healthy_classifier_has_nothing_and_writes_nothing(trained_on_labels):
    diagnosis = assert_healthy(trained_on_labels().doctor())
    why = "this model is not autoregressive: it reads its input at once"
    assert {name: diagnosis.left_out[name] for name in ("future mask", "shifted targets")} == {
        "future mask": why,
        "shifted targets": why,
    }
    assert set(diagnosis.left_out) <= {"future mask", "shifted targets", "overfitting"}
    assert re.search(
        r"nats per label in validation, 0\.6\d from the freq", diagnosis.seen["more than frequencies"].measured
    )
    assert diagnosis.seen["order of elements"].measured.startswith("another order of the input changes scores by ")


@pytest.mark.parametrize("kind", ["bag", "recurrent"])
def test_a_classifier_without_attention_has_nothing(trained_on_labels, kind):
    diagnosis = assert_healthy(trained_on_labels(f"model={{kind: {kind}}}", "training.max_updates=5").doctor())
    assert diagnosis.left_out["attention entropy"] == "this model has no attention"
    assert ("order of elements" in diagnosis.left_out) == (kind == "bag")


def test_a_healthy_reader_of_masked_text_has_nothing(doctor, text_file):
    recipe = {
        "task": "masked_language_modelling",
        "data": {"source": str(text_file), "validation_share": 0.2},
        "model": {"d_model": 32, "num_heads": 2, "num_layers": 1, "d_ff": 64, "max_length": 16, "dropout": 0.0},
        "training": {"max_updates": 20, "batch_tokens": 256, "validate_every": 20, "precision": "float32"},
    }
    diagnosis = assert_healthy(doctor(load_recipe(recipe)))
    assert {"future mask", "shifted targets"} <= set(diagnosis.left_out) and "padding mask" in diagnosis.seen


def test_images_have_neither_padding_nor_an_order_to_be_changed(doctor):
    pytest.importorskip("sklearn")
    recipe = {
        "task": "classification",
        "data": {"kind": "digits"},
        "input": {"kind": "image", "patch_size": 2},
        "model": {"d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 32, "max_length": 32, "dropout": 0.0},
        "training": {"max_updates": 20, "batch_tokens": 1024, "validate_every": 20, "precision": "float32"},
    }
    diagnosis = assert_healthy(doctor(load_recipe(recipe)))
    assert set(diagnosis.left_out) >= {"padding mask", "order of elements", "unknown tokens", "padding share"}
    assert "attention entropy" in diagnosis.seen


@pytest.mark.parametrize("kind", ["encoder_only", "unmasked_encoder"])
def test_items_of_several_parts_lose_the_padding_of_each_part(doctor, kind):
    pytest.importorskip("sklearn")
    recipe = {
        "task": "classification",
        "data": {"kind": "digit_questions", "train_size": 200, "validation_size": 40, "test_size": 20},
        "input": {
            "kind": "joined",
            "parts": {"question": {"kind": "text", "tokenizer": {"kind": "word"}}, "image": {"kind": "image"}},
        },
        "model": {"kind": kind, "d_model": 16, "num_heads": 2, "num_layers": 1, "d_ff": 32, "dropout": 0.0},
        "training": {"max_updates": 20, "batch_tokens": 2048, "validate_every": 20, "precision": "float32"},
    }
    recipe["input"]["parts"]["image"]["patch_size"] = 4
    diagnosis = doctor(load_recipe(recipe))
    assert "items lose their padding" in diagnosis.seen["padding mask"].measured
    assert ("padding mask" in dict(diagnosis.findings)) == (kind == "unmasked_encoder")


RECURRENT = "{kind: recurrent, embedding_size: 32, hidden_size: 64, dropout: 0.0, max_length: 48"


@pytest.mark.parametrize("decoder", ["sutskever", "bahdanau"])
def test_of_a_recurrent_model_is_left_out_what_it_has_not(doctor, tiny_config, decoder):
    model = f"model={RECURRENT}, decoder: {{kind: {decoder}}}}}"
    diagnosis = assert_healthy(doctor(tiny_config(model, *BRIEF)))
    assert diagnosis.left_out["warm-up"] == "the model has no Transformer"
    assert ("attention entropy" in diagnosis.left_out) == (decoder == "sutskever")
    assert set(diagnosis.left_out) >= CURVES  # of 20 updates


@pytest.fixture
def small_recipe(corpus, text_file, labelled_files, waves, tmp_path):
    """What returns a recipe of the package on small files, which ends in seconds."""
    words = (labelled_files / "train.tsv").read_text("utf-8").split()
    lines = [f"{word} {word[0]}\n" + "\n" * (at % 9 == 8) for at, word in enumerate(words)]
    (tmp_path / "words.txt").write_text("".join(lines), encoding="utf-8")
    rows = [f"n{at}\t{at // 3 % 2}\t{['train', 'val', 'test'][at % 3]}\tw{at % 7}\n" for at in range(60)]
    (tmp_path / "nodes.tsv").write_text("".join(["node\tlabel\tsplit\twords\n", *rows]), encoding="utf-8")
    edges = "".join(f"n{at}\tn{(at + step) % 60}\n" for at in range(60) for step in (3, 6))
    (tmp_path / "edges.tsv").write_text("source\ttarget\n" + edges, encoding="utf-8")
    noise = np.random.default_rng(0).integers(-8000, 8000, (40, 2400), dtype=np.int16)
    for at, samples in enumerate(noise):
        write_recording(tmp_path / f"{at % 2}_ann_{at}.wav", Recording(samples, 8000))
    recordings = [f"data.root={tmp_path}", "data.source=.", r"data.test=.*_.?[5-9]\.wav", "data.validation_share=0.3"]
    for at, pixels in enumerate(np.random.default_rng(1).integers(0, 255, (40, 8, 8), dtype=np.uint8)):
        (tmp_path / "photos" / str(at % 2)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "photos" / str(at % 2) / f"{at}.png")
    photos = [f"data.root={tmp_path}", "data.source=photos"]
    by_task = {
        "forecasting": [
            f"data={{root: {waves.parent}, source: waves.csv, train: 400, validation: 110, test: 110}}",
            "input.history=48",
            "head.horizon=12",
        ],
        "language_modelling": [f"data={{source: {text_file}}}", "model.max_length=32"],
        "masked_language_modelling": [
            f"data={{root: {labelled_files}, source: train.tsv, text: '1', validation_share: 0.2}}"
        ],
        "matching": ["data.validation_share=0.2"],
        "node_classification": [
            f"data={{root: {tmp_path}, nodes: nodes.tsv, edges: edges.tsv}}",
            "model.max_length=64",
            "training.max_epochs=null",
        ],
        "tagging": [f"data={{root: {tmp_path}, source: words.txt, test: words.txt}}"],
    }
    made = ["data.train_size=500", "data.validation_size=20", "data.test_size=20"]
    by_data = {
        "digits": [],
        "digit_sequences": [*recordings, "data.train_size=40", "data.validation_size=8", "data.test_size=4"],
        "folders": recordings,
        "graph_families": ["data.size=240", "data.test_size=40"],
        "grammar": [*made, "tokenizer.vocab_size=400", "data.heldout_size=20"],
        "grammar_trees": ["data.train_size=4000", "data.test_size=20", "data.heldout_size=20"],
        "pairs": [
            f"data={{kind: pairs, root: {corpus}, source: a.en, target: a.fr, validation_size: 10, test_size: 4}}",
            "tokenizer={kind: word}",
        ],
        "table": [f"data={{root: {labelled_files}, source: train.tsv, test: test.tsv, text: '1', label: '2'}}"],
    }
    by_name = {
        "sound_classification": [r"data.label=(\d)_.*"],
        "ud-tagging": ["input.tokenizer.vocab_size=null"],
    }

    def load(name):
        recipe = config.recipe(name)
        small = ["training.max_minutes=null", "training.max_updates=20", "training.validate_every=20"]
        small += ["training.batch_tokens=300", "training.precision=float32", "training.attention_kernel=sdpa"]
        small += make_earlier(recipe, tmp_path, lambda name, folder: run.train(load(name), folder, lambda line: None))
        of_images = name == "image_classification"
        of_data = photos if of_images else by_data.get(recipe["data"].get("kind", "table"), made)
        return load_recipe(recipe, [*small, *by_task.get(recipe["task"], of_data), *by_name.get(name, [])], origin=name)

    return load


FAST = ["demo", "shakespeare", "ladder/linear"]


@pytest.mark.parametrize("name", FAST)
def test_a_recipe_has_nothing(doctor, small_recipe, name):
    assert_healthy(doctor(small_recipe(name)))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in config.recipes() if name not in FAST])
def test_every_recipe_has_nothing(doctor, small_recipe, name):
    assert_healthy(doctor(small_recipe(name)))


UPDATES = {"demo": 800, "copy": 900, "reverse": 900}
"""About what their minutes come to on two cores: a busy machine would stop them early."""


@pytest.mark.slow
@pytest.mark.parametrize("name", UPDATES)
def test_a_recipe_that_learned_all_it_can_has_nothing(tmp_path, regardant, name):
    """As it is shipped, curves and all."""
    budget = ["training.max_minutes=null", f"training.max_updates={UPDATES[name]}"]
    run.train(load_recipe(config.recipe(name), budget, origin=name), tmp_path / "run", lambda line: None)
    assert_healthy(run.load(tmp_path / "run").doctor())
    said = regardant("doctor", tmp_path / "run")
    assert (said.code, said.lines[0]) == (0, "nothing found")


# parts


def test_heads_are_told_apart_by_where_they_look():
    """[2, 4, 5, 6] weights: stuck on key 3, one key each, all alike, and in between; the last key is padding."""
    weights = torch.zeros(2, 4, 5, 6)
    weights[:, 0, :, 3] = 1
    weights[:, 1, torch.arange(5), torch.arange(5)] = 1
    weights[:, 2, :, :5] = 1 / 5
    weights[:, 3, :, :5] = torch.tensor([0.4, 0.3, 0.1, 0.1, 0.1])
    real = torch.tensor([[True] * 5 + [False]] * 2)
    stuck, each, alike, between = judged(weights, real[:, :5], real, causal=False)
    assert (stuck.stuck, stuck.one_hot, stuck.uniform, stuck.entropy) == (True, True, False, 0)
    assert (each.stuck, each.one_hot, each.uniform) == (False, True, False)
    assert (alike.stuck, alike.one_hot, alike.uniform) == (False, False, True)
    assert alike.entropy == pytest.approx(1)
    assert (between.stuck, between.one_hot, between.uniform) == (False, False, False)
    assert 0.8 < between.entropy < 1


def test_a_causal_query_is_held_to_the_keys_before_it():
    weights = torch.tril(torch.ones(4, 4)) / torch.arange(1, 5)[:, None]
    real = torch.ones(1, 4, dtype=torch.bool)
    (alike,) = judged(weights[None, None], real, real, causal=True)
    assert alike.uniform and alike.entropy == pytest.approx(1)


def test_tokens_run_backwards_between_their_ends():
    rows = torch.tensor([[SOS, 5, 6, 7, 8], [5, 6, EOS, PAD, PAD]])
    lengths = torch.tensor([5, 3])
    assert reversed_between(rows, lengths, first=1).tolist() == [[SOS, 7, 6, 5, 8], [5, 6, EOS, PAD, PAD]]
    assert reversed_between(rows, lengths, first=0).tolist() == [[7, 6, 5, SOS, 8], [6, 5, EOS, PAD, PAD]]


class Scored(Case):
    """A case of a text whose scores are a function of its tokens."""

    def scores(self, inputs):
        return self.open(next(iter(inputs.values())))

    def unit(self, name):
        return "token"


def scored(tokens, score, model=EncoderOnly):
    """Return the case of a model of a kind that gives these scores of tokens [N, T]."""
    schedule = SimpleNamespace(model_dump=lambda: {"learning_rate": 0.1})
    config = SimpleNamespace(training=SimpleNamespace(schedule=schedule))
    case = Scored(config, None, {}, (), score)
    (name,) = model.inputs
    labels = [["token"] * int((row != PAD).sum()) for row in tokens]
    found = {"probe": Probe({name: tokens}, torch.zeros(len(tokens)), {name: labels})}
    vars(case).update(found, trained=SimpleNamespace(model=object.__new__(model)))
    return case


def unequal():
    """Return three rows of two, three and four tokens."""
    return torch.tensor([[5, 6, PAD, PAD], [7, 8, 9, PAD], [10, 11, 12, 13]])


def masked_padding(tokens):
    """Return a score of each token [N, T, 1], which is minus infinity for padding."""
    return tokens.float().masked_fill(tokens == PAD, -math.inf)[..., None]


@pytest.mark.parametrize("broken", [2, 3])
def test_nan_of_any_row_without_its_padding_is_found(broken):
    def score(tokens):
        return masked_padding(tokens) * (math.nan if tokens.shape == (1, broken) else 1)

    case = scored(unequal(), score)
    assert math.isnan(padding_change(case).size)
    (finding,) = padding_mask(case).findings
    assert finding.what == "scores are not finite" and f"an item of {broken} tokens" in finding.evidence


@pytest.mark.parametrize("broken", ["rolled", "backwards"])
def test_nan_of_another_order_is_found(broken):
    def score(tokens):
        first = tokens[2, 0]  # of 10, 11, 12, 13
        other = first == 7 if broken == "rolled" else first == 12
        return (tokens * torch.arange(1, 5)).float() * (math.nan if other else 1)

    (finding,) = order(scored(unequal(), score)).findings
    assert finding.what == "scores are not finite" and "learning_rate" in finding.cure


def test_a_score_that_padding_masks_is_a_change():
    def score(tokens):
        found = masked_padding(tokens)
        return found.index_fill(1, torch.tensor([0]), -math.inf) if tokens.shape[1] == 4 else found

    assert padding_change(scored(unequal(), masked_padding)).size == 0
    case = scored(unequal(), score)
    assert padding_change(case).size == math.inf
    assert [one.what for one in padding_mask(case).findings] == [
        "padding changes the scores: a padding mask is missing"
    ]


def test_a_score_that_a_later_token_masks_is_a_change():
    whole = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])

    def score(tokens):
        found = masked_padding(tokens)
        found[(tokens == 6).any(1) & (tokens == 11).any(1), 0] = -math.inf  # the first row with the end of the second
        return found

    assert future_change(scored(whole, masked_padding, DecoderOnly)).size == 0
    case = scored(whole, score, DecoderOnly)
    assert future_change(case).size == math.inf
    assert [one.what for one in future_mask(case).findings] == [
        "scores depend on later tokens: a causal mask is missing"
    ]


def test_the_padding_of_other_rows_is_no_effect_of_their_elements():
    """A model that reads nothing but masks padding answers the same of other rows, wherever both have a token."""
    (finding,) = order(
        scored(unequal(), lambda tokens: masked_padding(tokens.clamp(max=1) * torch.arange(1, 5)))
    ).findings
    assert finding.what == "the input has no effect on the scores"


# the command


def test_the_command_tells_what_it_found_and_ends_well(regardant, trained, tmp_path):
    folder = shutil.copytree(trained(KNOWN).folder, tmp_path / "r")
    told = regardant("doctor", folder)
    assert (told.code, told.lines[:3]) == (0, ["nothing found", "", "checked"])
    assert any(line.startswith("  gradient norms") for line in told.lines)
    change_record(folder, lambda content: content["plan"].update(source_padding=0.62))
    told = regardant("doctor", folder)
    assert (told.code, told.lines[0]) == (0, "much of the computation is spent on padding  (padding share)")
    assert told.lines[1].startswith("  evidence  62% of the source blocks")
    assert told.lines[2].startswith("  cure      lower training.batch_tokens")


def test_json_has_findings_what_was_checked_and_what_was_left_out(regardant, trained):
    said = regardant("doctor", trained(KNOWN).folder, "--json")
    content = json.loads(said.out, parse_constant=pytest.fail)
    assert (said.code, said.err) == (0, "")
    assert content.keys() == {"findings", "checked", "left_out"}
    assert content["findings"] == []
    assert [one["name"] for one in content["left_out"]] == ["overfitting"]
    assert {one["name"] for one in content["checked"]} == {check.name for check in CHECKS} - {"overfitting"}


def test_the_page_is_offline_and_draws_the_curves(regardant, trained, tmp_path):
    assert regardant("doctor", trained(KNOWN).folder, "--page", tmp_path / "a.html").code == 0
    text = (tmp_path / "a.html").read_text("utf-8")
    assert not re.search(r"https?:|\bsrc=|\bhref=|url\(|@import|<script|<link|<iframe|\bon\w+=", text)
    assert text.count("<section>") == 5  # three with a picture, what passed, what was left out
    assert all(name in text for name in ("future mask", "overfitting", "2 validations are too few"))
    assert text.count("<svg") == 3  # gradient norms, losses, entropies
    assert "encoder.layers.0.self_attention" in text and "passed" in text
    assert "nothing found</h1>" in text


def test_without_its_data_a_run_keeps_its_curves(trained, tmp_path):
    folder = shutil.copytree(trained(KNOWN).folder, tmp_path / "r")
    shutil.rmtree(folder / "data")
    diagnosis = assert_healthy(run.load(folder).doctor())
    assert "holds no validation text" in diagnosis.left_out["shifted targets"]
    assert diagnosis.seen.keys() >= CURVES - {"more than frequencies"}
    assert not (folder / "data").exists()


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_damaged_weights_are_refused_and_weights_that_are_not_saved_yet_are_left_out(own_run, regardant, damage):
    weights = own_run / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    if damage == "missing":
        weights.unlink()
    said = regardant("doctor", own_run)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "model.safetensors" in said.err
    change_record(own_run, lambda content: content["files"].pop("model.safetensors"))
    weights.unlink(missing_ok=True)
    said = regardant("doctor", own_run)
    assert said.code == 0 and "has no model.safetensors yet" in said.out


def test_a_folder_that_is_no_run_is_one_line(regardant, tmp_path):
    said = regardant("doctor", tmp_path)
    assert (said.code, said.out) == (2, "")
    assert "is no run" in said.err and said.err.count("\n") == 1
