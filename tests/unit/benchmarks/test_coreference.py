"""The experiment on pronouns: its sentences need pronoun, adjective and noun, and its measure sees the right noun."""

import pytest
import torch

from benchmarks.experiments import coreference, reader
from benchmarks.experiments.coreference import ADJECTIVES, FIRST_ADJECTIVE, FIRST_FILLER, FIRST_NOUN, NOUNS, PRONOUN


def drawn(size, seed=9):
    return coreference.draw(torch.Generator().manual_seed(seed), size)


def kinds(tokens, first, number):
    """Places and classes of the nouns or the adjectives of a sentence."""
    places = ((tokens >= first) & (tokens < first + 2 * number)).nonzero().flatten()
    return places, (tokens[places] - first) // number


def with_adjectives_exchanged(tokens, answers):
    """The same words, and the noun that the other adjective fits."""
    exchanged, others = tokens.clone(), answers.clone()
    for row in range(len(tokens)):
        places, _ = kinds(tokens[row], FIRST_ADJECTIVE, ADJECTIVES)
        exchanged[row, places] = tokens[row, places.flip(0)]
        nouns = tokens[row, kinds(tokens[row], FIRST_NOUN, NOUNS)[0]] - FIRST_NOUN
        asked = answers[row] >= 0
        others[row, asked] = nouns[nouns != answers[row, asked]]
    return exchanged, others


def test_a_sentence_has_both_classes_and_the_adjective_after_the_pronoun_decides():
    for tokens, answers in zip(*drawn(200), strict=True):
        (pronoun,) = (tokens == PRONOUN).nonzero().flatten()
        nouns, noun_kinds = kinds(tokens, FIRST_NOUN, NOUNS)
        adjectives, adjective_kinds = kinds(tokens, FIRST_ADJECTIVE, ADJECTIVES)
        assert sorted(noun_kinds.tolist()) == sorted(adjective_kinds.tolist()) == [0, 1]
        assert (nouns < pronoun).all() and (tokens >= FIRST_FILLER).sum() == coreference.LENGTH - 5
        (decides,) = adjective_kinds[adjectives == pronoun + 1]
        (meant,) = tokens[nouns[noun_kinds == decides]] - FIRST_NOUN
        assert answers[pronoun] == meant and (answers >= 0).sum() == 1


def test_the_other_adjective_stands_on_both_sides_of_the_pronoun():
    tokens, _ = drawn(200)
    pronoun = (tokens == PRONOUN).int().argmax(-1)
    places = torch.stack([kinds(row, FIRST_ADJECTIVE, ADJECTIVES)[0] for row in tokens])
    other = torch.where(places[:, 0] == pronoun + 1, places[:, 1], places[:, 0])
    assert 0.2 < (other < pronoun).float().mean() < 0.8


@pytest.fixture(scope="module")
def trained():
    model = coreference.build(0, num_layers=1)
    reader.fit(model, coreference.draw, steps=400, rate=coreference.RATE)
    return model


def test_a_reader_finds_the_noun_that_the_pronoun_s_adjective_fits(trained):
    tokens, answers = drawn(200)
    assert reader.accuracy(trained, tokens, answers) > 0.9
    assert reader.accuracy(trained, *with_adjectives_exchanged(tokens, answers)) > 0.9


@pytest.mark.parametrize("first", [PRONOUN, FIRST_NOUN, FIRST_ADJECTIVE], ids=["pronoun", "nouns", "adjectives"])
def test_without_one_of_the_three_it_cannot_know(trained, first):
    tokens, answers = drawn(400)
    number = {PRONOUN: 1, FIRST_NOUN: 2 * NOUNS, FIRST_ADJECTIVE: 2 * ADJECTIVES}[first]
    hidden = torch.where((tokens >= first) & (tokens < first + number), FIRST_FILLER, tokens)
    assert reader.accuracy(trained, hidden, answers) < 0.7


def test_the_preference_is_for_the_right_noun_and_not_for_a_class(monkeypatch):
    tokens, answers = drawn(300)
    right = tokens == FIRST_NOUN + answers.amax(-1, keepdim=True)
    nouns = (tokens >= FIRST_NOUN) & (tokens < FIRST_ADJECTIVE)
    first_class = nouns & (tokens < FIRST_NOUN + NOUNS)
    for looked_at, expected in ((right, 1.0), (nouns & ~right, -1.0), (first_class, 0.0)):
        weights = looked_at.float()[None, :, None, None].expand(1, -1, 1, coreference.LENGTH, -1)
        monkeypatch.setattr(reader, "attention_weights", lambda model, given, weights=weights: weights)
        assert coreference.preference(None, tokens, answers) == pytest.approx(expected, abs=1e-6)
