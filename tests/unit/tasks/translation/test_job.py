import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from regardant.data.vocabulary import PAD
from regardant.evaluation.translation import corpus_bleu
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate
from regardant.layers import linear as linears
from regardant.layers.linear import Layouts
from regardant.tasks.base import VALIDATION_SHARE
from regardant.tasks.observation import SAMPLES
from regardant.tasks.sequence_to_sequence.job import DECODING_COST
from regardant.tasks.translation.task import Translation

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("job")


@pytest.fixture
def job(folder, tiny_config):
    """The job of TINY with fields set, over one text."""
    return lambda *overrides: Translation().prepare(tiny_config(*overrides), folder, lambda line: None).job


@pytest.mark.parametrize("accumulate", [1, 7, 1000])
def test_validation_left_open_takes_at_most_a_tenth_of_the_tokens(tiny_config, tmp_path, accumulate):
    overrides = ["training.validate_every=null", f"training.accumulate={accumulate}", "data.validation_size=600"]
    made = Translation().prepare(tiny_config(*overrides), tmp_path, lambda line: None).job
    batches = [made.load(planned).count for planned in made.plan(0)]
    updates = [sum(batches[start : start + accumulate]) for start in range(0, len(batches), accumulate)]
    validation = sum(made.validation.load(planned).count for planned in made.validation.plan(0))
    trained_on = made.validate_every * sum(updates) / len(updates)
    assert 0.09 < DECODING_COST * validation / trained_on <= VALIDATION_SHARE == 0.1


def test_an_interval_that_is_given_stays(job):
    assert job("training.validate_every=7").validate_every == 7


def test_the_plan_of_an_epoch_can_be_repeated_and_another_epoch_differs(job):
    first, again, next_epoch = job().plan(0), job().plan(0), job().plan(1)
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in again]
    assert [batch.tolist() for batch in first] != [batch.tolist() for batch in next_epoch]


def test_every_pair_that_fits_is_in_an_epoch_once(job):
    made = job("model.max_length=12")
    pairs = made.corpus.train
    fitting = sorted(((pairs.source_lengths <= 12) & (pairs.target_lengths <= 12)).nonzero()[0].tolist())
    taken = sorted(made.batches.kept[index] for batch in made.plan(0) for index in batch)
    assert taken == fitting
    assert made.batches.too_long == len(pairs) - len(fitting) > 0


@pytest.mark.parametrize("more", ["training.label_smoothing=0.2", "training.z_loss=0.1"])
def test_smoothing_and_z_loss_are_in_the_loss_and_not_in_the_plain_one(job, trained, more):
    made = job("training.label_smoothing=0", more)
    made.model.load_state_dict(trained().translator.model.state_dict())
    batch = made.load(made.plan(0)[0])
    with torch.no_grad():
        found, scores = made.loss(made.model, batch, CPU), made.model.scores(**batch.inputs)
    plain = cross_entropy(scores.mT, batch.targets, ignore_index=PAD, reduction="sum")
    assert float(found.plain) == pytest.approx(float(plain), rel=1e-5)
    assert float(found.total) > 1.1 * float(plain)


def test_validation_is_of_all_pairs_whatever_their_batches(job, trained):
    made = job()
    made.model.load_state_dict(trained().translator.model.state_dict())
    made.model.eval()
    with torch.inference_mode():
        numbers = made.validate(made.model, CPU)
        pairs = made.corpus.splits.validation
        tokenizer = made.corpus.tokenizers.target
        total, tokens, hypotheses = 0.0, 0, []
        for number in range(len(pairs)):
            batch = made.corpus.validation.batch([number])
            loss = made.model(**batch.inputs, targets=batch.targets)
            total, tokens = total + float(loss.plain), tokens + int(loss.count)
            found = generate(made.model, batch.source, GenerationConfig(beam_size=1), max_length=48)
            hypotheses.append(tokenizer.decode(found[0][0].tokens))
    references = [tokenizer.normalise(text) for text in pairs["target"]]
    assert numbers["loss"] == pytest.approx(total / tokens, rel=1e-4)
    assert numbers["perplexity"] == pytest.approx(math.exp(total / tokens), rel=1e-3)
    assert numbers["bleu"] == pytest.approx(corpus_bleu(hypotheses, references, made.config.evaluation), abs=1e-6)
    assert 0 < numbers["bleu"] < 100


def test_a_validation_in_bfloat16_decodes_as_a_search_in_bfloat16(job, trained):
    made = job()
    made.model.load_state_dict(trained().translator.model.state_dict())
    made.model.eval()
    pairs, tokenizer, found = made.corpus.validation, made.corpus.tokenizer, []
    with torch.inference_mode(), Layouts(torch.bfloat16).in_use():
        for planned in made.validation.plan(0):
            best = generate(made.model, pairs.batch(planned).source, GenerationConfig(beam_size=1), max_length=48)
            found += [tokenizer.decode(one.tokens) for one, *_ in best]
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        made.validate(made.model, CPU)
        assert torch.is_autocast_enabled("cpu")
    order = [int(number) for planned in made.validation.plan(0) for number in made.validation.kept[planned]]
    written = {row["source"]: row["translation"] for row in made.samples}
    expected = dict(zip(order, found, strict=True))
    assert written == {made.corpus.sources[number]: expected[number] for number in made.validation.kept[:SAMPLES]}


def test_each_weight_is_laid_out_once_in_a_validation_and_anew_in_the_next(job, monkeypatch):
    made, weights, lay_out = job(), [], linears._lay_out
    monkeypatch.setattr(linears, "_lay_out", lambda weight, *rest: weights.append(weight) or lay_out(weight, *rest))
    made.model.eval()
    counts = []
    for _ in range(2):
        weights.clear()
        with torch.inference_mode():
            made.validate(made.model, CPU)
        counts.append(len(weights))
    assert counts[0] == counts[1] == len({id(weight) for weight in weights}) > 10


def test_the_largest_batches_have_most_places_and_most_pairs_of_them(job):
    made = job("training.batch_tokens=150")

    def sizes(planned):
        batch = made.load(planned)
        rows, source, target = len(batch.source), batch.source.shape[1], batch.target.shape[1] - 1
        return rows * source, rows * target, rows * (source + target), rows * (source + target) ** 2

    largest = made.batches.largest_batches()
    assert 1 < len(largest) <= 4
    assert [max(of_one) for of_one in zip(*map(sizes, largest), strict=True)] == [
        max(of_one) for of_one in zip(*map(sizes, made.plan(0)), strict=True)
    ]
