"""The experiment on explanations: its sentences, and what permuted weights do to an answer, against explicit sums."""

import math

import pytest
import torch
from torch.testing import assert_close

from benchmarks.experiments import explanations, reader
from benchmarks.experiments.explanations import CUES, CUES_OF_A_SENTENCE, ENCODERS, LENGTH, PERMUTATIONS, SENSES

FIRST_FILLER = SENSES * CUES


def drawn(size, seed=9):
    return explanations.draw(torch.Generator().manual_seed(seed), size)


def untrained(name, scale=1.0):
    """A classifier with fresh weights; a larger scale makes its attention and its answers less even."""
    model = explanations.Classifier(ENCODERS[name](0))
    with torch.no_grad():
        for part in (model.attention.query.weight, model.attention.key.weight, model.answer.weight):
            part *= scale
    return model.eval()


def test_the_label_is_the_sense_of_most_cues():
    for tokens, answer in zip(*drawn(100), strict=True):
        senses = tokens[tokens < FIRST_FILLER] // CUES
        assert len(senses) == CUES_OF_A_SENTENCE and answer.tolist() == [int(senses.float().mean() > 0.5)]


def test_answers_under_permuted_weights_are_those_of_an_explicit_sum():
    model, (tokens,) = untrained("words alone", scale=3.0), drawn(1)[0]
    with torch.no_grad():
        values, weights = model.encoder.read(tokens), explanations.weights_of(model, tokens)[0]
        plain = model.answer(weights @ values).softmax(-1)
        orders = torch.rand(PERMUTATIONS, LENGTH, generator=torch.Generator().manual_seed(3)).argsort(-1)
        answers = [model.answer(weights[order] @ values).softmax(-1) for order in orders]
        assert_close(model(tokens[None])[0, 0].softmax(-1), plain)
    distances = torch.stack([(answer - plain).abs().sum() / 2 for answer in answers])
    moved, _ = explanations.permuted(model, tokens, torch.Generator().manual_seed(3))
    assert moved == pytest.approx(float(distances.median()), abs=1e-5) and moved > 0.01


def test_weights_of_an_answer_that_stays_may_move(monkeypatch):
    model, (tokens,) = untrained("words alone", scale=3.0), drawn(1)[0]
    generator = torch.Generator()
    few = explanations.permuted(model, tokens, generator.manual_seed(3))[1]
    monkeypatch.setattr(explanations, "SAME", 1.0)
    most = explanations.permuted(model, tokens, generator.manual_seed(3))[1]
    monkeypatch.setattr(explanations, "SAME", -1.0)
    assert explanations.permuted(model, tokens, generator.manual_seed(3))[1] == 0 <= few < most < math.log(2)


def test_nothing_moves_an_answer_whose_vectors_are_alike():
    model, (tokens,) = untrained("words alone", scale=3.0), drawn(1)[0]
    with torch.no_grad():
        model.encoder.embedding.weight.copy_(model.encoder.embedding.weight[:1].expand(explanations.VOCAB, -1))
    assert explanations.permuted(model, tokens, torch.Generator())[0] < 1e-6


def test_a_divergence_is_symmetric_and_between_nothing_and_log_two():
    one, other = torch.tensor([0.5, 0.5, 0.0]), torch.tensor([0.0, 0.2, 0.8])
    assert explanations.divergence(one, one) == 0
    assert explanations.divergence(one, other) == pytest.approx(float(explanations.divergence(other, one)))
    expected = (0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.35) + 0.2 * math.log(0.2 / 0.35) + 0.8 * math.log(2)) / 2
    assert explanations.divergence(one, other) == pytest.approx(expected)
    apart = explanations.divergence(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    assert apart == pytest.approx(math.log(2))


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_is_explained(name):
    model, (tokens, answers) = untrained(name), drawn(1)
    assert explanations.weights_of(model, tokens[0]).sum() == pytest.approx(1)
    assert all(-1 <= tau <= 1 for tau in explanations.agreements(model, tokens[0], answers[0]))


def test_attention_to_words_alone_finds_the_cues_and_agrees_with_other_explanations():
    model = explanations.Classifier(ENCODERS["words alone"](0))
    reader.fit(model, explanations.draw, steps=200, rate=explanations.RATE)
    tokens, answers = drawn(40)
    weights = torch.cat([explanations.weights_of(model.eval(), one) for one in tokens])
    on_cues = weights.masked_fill(tokens >= FIRST_FILLER, 0).sum(-1).mean()
    taus = torch.tensor([explanations.agreements(model, *one) for one in zip(tokens, answers, strict=True)]).mean(0)
    assert reader.accuracy(model, tokens, answers) > 0.9
    assert on_cues > 2 * CUES_OF_A_SENTENCE / LENGTH
    assert (taus > 0.4).all()
