import copy
import re

import numpy as np
import pytest
import torch

from regardant import run
from regardant.data.masking import count_targets
from regardant.data.vocabulary import MASK, PAD, SPECIAL_TOKENS
from regardant.errors import ConfigError, DataError
from regardant.modalities import TextModalityConfig
from regardant.modalities.text import TextCodec
from regardant.tasks import load_recipe, task_named
from regardant.tasks.items.data import EncodedItems
from regardant.tasks.masked_language_modelling.job import MaskedBatches
from regardant.tasks.masked_language_modelling.task import BLANK
from regardant.training.checkpoints import latest_checkpoint, load_checkpoint
from regardant.training.events import read_events
from tests.runs import STEADY
from tests.unit.data.pretrained import word_pieces

pytestmark = pytest.mark.xdist_group("masked")  # one process makes what all tests share

CPU = torch.device("cpu")

RECIPE = {
    "task": "masked_language_modelling",
    "data": {"source": "a.txt", "validation_share": 0.1},
    "input": {"tokenizer": {"kind": "word", "lowercase": True}},
    "model": {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_length": 16, "dropout": 0.2},
    "training": {
        "max_updates": 24,
        "batch_tokens": 128,
        "validate_every": 10,
        **STEADY,
        "schedule": {"kind": "constant", "learning_rate": 1e-2, "warmup_steps": 2},
    },
}


def silent(line):
    pass


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """The recipe with fields set as by --set, over sentences of 1 to 20 words."""
    folder = tmp_path_factory.mktemp("text")
    generator = np.random.default_rng(1)
    words = ["The", "cat", "dog", "bird", "sees", "likes", "hears", "a", "red", "old", "tree", "and", "then", "runs"]
    texts = [" ".join(generator.choice(words, generator.integers(1, 21))) for _ in range(150)]
    (folder / "a.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return lambda *overrides: load_recipe(copy.deepcopy(RECIPE), [f"data.root={folder}", *overrides])


@pytest.fixture(scope="module")
def whole(load, tmp_path_factory):
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert run.train(load(), folder, silent).finished
    return folder


@pytest.fixture
def job(load, tmp_path):
    return task_named("masked_language_modelling").prepare(load(), tmp_path / "run", silent).job


# batches


def test_a_text_longer_than_a_usual_batch_is_read_to_the_model_s_length(whole):
    trained = run.load(whole).trained
    trained.max_length = 10_000
    assert trained.batches(trained._splits()["validation"]).max_length == 10_000


def test_masks_are_equal_in_every_process_and_differ_between_epochs(job, load, tmp_path):
    other = task_named("masked_language_modelling").prepare(load(), tmp_path / "other", silent).job
    (epoch, *_), (another, *_) = job.plan(3), job.plan(4)
    batch, again = job.load(epoch), other.load(other.plan(3)[0])
    assert torch.equal(batch.inputs["input"], again.inputs["input"]) and torch.equal(batch.targets, again.targets)
    masked_anew = job.load(another._replace(indices=epoch.indices))
    assert not torch.equal(batch.targets, masked_anew.targets)
    assert not torch.equal(batch.targets, job.load(epoch._replace(number=99)).targets)


def test_spans_are_masked_where_the_recipe_asks_for_them(load, tmp_path):
    """All tokens of these texts are words. Of targets drawn one by one, a sixth has a target behind it."""
    shares = {}
    for masking in ("tokens", "spans"):
        config = load(f"masking={masking}", "model.max_length=64")
        job = task_named("masked_language_modelling").prepare(config, tmp_path / masking, silent).job
        assert job.targets_per_epoch == sum(job.load(planned).count for planned in job.plan(1))
        batches = [*map(job.batches.load, job.plan(0)), *map(job.validation.load, job.validation.plan(0))]
        chosen = [batch.targets != PAD for batch in batches]
        shares[masking] = sum(int((one[:, 1:] & one[:, :-1]).sum()) for one in chosen) / sum(map(torch.sum, chosen))
    assert shares["spans"] > 2 * shares["tokens"]


def test_whole_words_are_masked_where_the_recipe_asks_for_them(load, tmp_path):
    settings = ("masking=words", "input.tokenizer={kind: character}", "model.max_length=64")
    job = task_named("masked_language_modelling").prepare(load(*settings), tmp_path, silent).job
    for planned in job.plan(0)[:5]:
        texts = job.batches.inputs(planned)["input"]
        chosen = job.load(planned).targets != PAD
        inner = chosen & torch.from_numpy(~job.batches.starts(texts.numpy()))
        assert inner.any() and chosen[:, :-1][inner[:, 1:]].all()


def test_evaluation_masks_as_training_did(load, whole):
    loaded = run.load(whole)
    spans = copy.copy(loaded.trained)
    spans.config = load("masking=spans")
    assert spans.evaluate()["validation"]["loss"] != loaded.evaluate()["validation"]["loss"]


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_the_shares_of_processes_are_the_batch(job, processes):
    batch = job.load(max(job.plan(0), key=lambda planned: len(planned.indices)))
    shares = [batch.part(number, processes) for number in range(processes)]
    for number, share in enumerate(shares):
        assert torch.equal(share.inputs["input"], batch.inputs["input"][number::processes])
        assert torch.equal(share.targets, batch.targets[number::processes])
        assert share.count == int((share.targets != PAD).sum())
    assert sum(share.count for share in shares) == batch.count


def test_tokens_around_a_text_are_no_targets():
    codec = TextCodec(word_pieces())
    encoded = codec.encode(["the cat sat on a mat and the cats sat on a mat ."] * 4)
    batches = MaskedBatches(
        EncodedItems.of(encoded, [0] * 4), codec, masking="tokens", batch_tokens=64, max_length=30, seed=1
    )
    count = sum(batches.load(planned).count for planned in batches.plan(0))
    assert count == batches.targets_per_epoch < count_targets(batches.lengths).sum()


def test_targets_are_counted_before_any_batch_is_made(job):
    assert job.targets_per_epoch == sum(job.load(planned).count for planned in job.plan(0))
    assert job.targets_per_epoch == sum(job.load(planned).count for planned in job.plan(1))
    assert job.targets_per_epoch == count_targets(np.minimum(job.batches.split.rows, 16)).sum()


def test_validation_is_on_one_masking_and_the_loss_of_the_head(job):
    model = job.model.eval()
    first, again = job.validate(model, CPU), job.validate(model, CPU)
    assert first == again and first.keys() == {metric.name for metric in job.metrics}
    batches = [job.validation.load(planned) for planned in job.validation.plan(0)]
    with torch.inference_mode():
        losses = [job.loss(model, batch, CPU) for batch in batches]
        named = [model.scores(**batch.inputs).argmax(-1) == batch.targets for batch in batches]
    count = sum(batch.count for batch in batches)
    right = sum(int(one[batch.targets != PAD].sum()) for one, batch in zip(named, batches, strict=True))
    assert first["loss"] == pytest.approx(sum(float(loss.plain) for loss in losses) / count, rel=1e-5)
    assert first["perplexity"] == pytest.approx(np.exp(first["loss"]))
    assert first["accuracy"] == right / count


def test_one_matrix_may_serve_input_and_output(load, tmp_path):
    config = load("model.tie_embeddings=true")
    model = task_named("masked_language_modelling").prepare(config, tmp_path / "run", silent).job.model
    assert model.head.weight is model.input.table.weight


# training


def test_a_run_in_parts_ends_bit_equal(load, whole, tmp_path):
    for updates in (1, 13, 24):
        assert run.train(load(f"training.max_updates={updates}"), tmp_path / "parts", silent).finished
    states = [load_checkpoint(latest_checkpoint(folder)) for folder in (whole, tmp_path / "parts")]
    assert states[0]["cursor"]["epoch"] > 0
    torch.testing.assert_close(states[0]["model"], states[1]["model"], rtol=0, atol=0)
    torch.testing.assert_close(states[0]["average"], states[1]["average"], rtol=0, atol=0)


@pytest.mark.slow
def test_two_processes_learn_as_one(load, tmp_path):
    losses = []
    for processes in (1, 2):
        config = load("model.dropout=0", "training.max_updates=4", f"training.processes={processes}")
        assert run.train(config, tmp_path / str(processes), silent).finished
        events = read_events(tmp_path / str(processes) / "metrics.jsonl")
        losses.append([(event["loss"], event.get("gradient_norm", 0.0)) for event in events if "loss" in event])
    assert losses[0] == [pytest.approx(pair, rel=1e-4) for pair in losses[1]] and len(losses[0]) == 2


def test_evaluation_scores_the_validation_texts_or_those_of_a_file(whole, tmp_path):
    loaded = run.load(whole)
    own = loaded.evaluate()["validation"]
    assert own.keys() == {"loss", "perplexity", "accuracy", "tokens", "cut"} and 0 <= own["accuracy"] <= 1
    (tmp_path / "b.txt").write_text("the cat sees a bird\nthe dog\n", encoding="utf-8")
    assert loaded.evaluate(data=[tmp_path / "b.txt"])["b.txt"]["tokens"] == 2
    assert re.fullmatch(r"b: loss .* nats per masked token, .*", loaded.trained.summary("b", own)[0])
    (tmp_path / "long.txt").write_text(f"the cat\n{'the cat ' * 9}\n", encoding="utf-8")
    long = loaded.evaluate(data=[tmp_path / "long.txt"])["long.txt"]
    assert long["cut"] == 1
    assert loaded.trained.summary("long.txt", long)[0].endswith(" masked tokens; items cut to the model's length: 1")


# predictions


def test_blanks_are_filled_with_the_likeliest_words(whole):
    loaded = run.load(whole)
    (found,) = loaded.predict(["The [MASK] sees a [MASK] ."])
    first, second = found.details["blanks"]
    assert found.answer == f"The {first[0]['token']} sees a {second[0]['token']} ."
    shares = [candidate["probability"] for candidate in first]
    assert len(shares) == 5 and shares == sorted(shares, reverse=True) and 0 < sum(shares) <= 1
    assert len({candidate["token"] for candidate in first}) == 5
    assert found.as_dict()["item"] == "The [MASK] sees a [MASK] ."


def test_no_blank_is_filled_with_a_special_token(whole):
    trained = run.load(whole).trained
    with torch.no_grad():
        trained.model.head.weight[: len(SPECIAL_TOKENS)] += 100 * trained.model.head.weight[10].sign()
    tokens = {one["token"] for one in trained.predict(["[MASK] cat"])[0].details["blanks"][0]}
    assert tokens <= {piece.strip() for piece in trained.codec.tokenizer.pieces[len(SPECIAL_TOKENS) :]}


@pytest.mark.parametrize("kind", ["word", "character", "byte", "bpe", "unigram"])
def test_text_around_blanks_is_encoded_as_if_a_word_stood_there(kind):
    texts = ["a cat, a dog.", "x . x, x dog"] * 20
    codec = TextModalityConfig(tokenizer={"kind": kind}).fit(texts)
    found = codec.encode_with_blanks("a [MASK], a[MASK] dog[MASK]", "[MASK]").tolist()
    before, comma, after = ([*codec.tokenizer.encode(text)] for text in ("a ", ".,", ". dog"))
    stop = len(codec.tokenizer.encode("."))
    a = codec.tokenizer.encode("., a")[len(comma) :]
    assert found == [*before, MASK, *comma[stop:], *a, MASK, *after[stop:], MASK]
    text = codec.tokenizer.decode(found)  # in which special tokens are skipped
    assert text == ("a , a dog" if kind in ("character", "byte") else "a, a dog")


@pytest.mark.parametrize(
    ("items", "told"),
    [
        (["a [MASK]", "a cat"], r"item 2 has no blank to fill in: write one as in 'a \[MASK\] film'"),
        (["a <mask> cat"], "item 1 has no blank"),
        (["[MASK] " + "cat " * 16], "17 tokens are more than the model's 16: shorten"),
    ],
)
def test_what_cannot_be_filled_in_is_one_line(whole, items, told):
    with pytest.raises(DataError, match=told) as refusal:
        run.load(whole).predict(items)
    assert "\n" not in str(refusal.value)


def test_options_of_a_search_are_refused(whole):
    with pytest.raises(ConfigError, match="a run of masked_language_modelling predicts without nbest: leave that out"):
        run.load(whole).predict(["a [MASK]"], nbest=2)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("head.kind=sequence_class", "head.kind"),
        ("training.best_by=bleu", r"training\.best_by: given 'bleu'; allowed: loss, perplexity, accuracy"),
        ("input.kind=nothing", "input.kind"),
        ("model.kind=decoder_only", "model.kind: .*allowed: "),
        ("masking=lines", "masking: given 'lines'"),
    ],
)
def test_a_recipe_that_cannot_be_right_is_one_line(load, override, told):
    with pytest.raises(ConfigError, match=told) as refusal:
        load(override)
    assert "\n" not in str(refusal.value)


def test_a_text_with_a_blank_is_inspected_and_the_attention_measured(whole):
    loaded = run.load(whole)
    text = f"the {BLANK} cat"
    found = loaded.inspect(text)
    assert len(found.inputs["input"].labels) == 3 and found.inputs["input"].labels[1] == "<mask>"
    assert found.pictures[0].source == found.inputs["input"].labels
    (predicted,) = loaded.predict([text])
    assert found.answer == predicted.answer and found.shares[0][0] == predicted.details["blanks"][0][0]["token"]
    with pytest.raises(DataError, match="item 1 has no blank to fill in"):
        loaded.inspect("the cat")
    measures = loaded.measure()
    assert list(measures.heads) == ["encoder.self_attention"]
    assert measures.lens[-1].divergence == pytest.approx(0, abs=1e-5)
