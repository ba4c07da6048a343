import math

import numpy as np
import pytest
import torch

from regardant.errors import DataError
from regardant.evaluation import language
from regardant.evaluation.language import TextScore, score_text
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.recurrent import RecurrentLanguageModelConfig
from tests.models import over_text

CPU = torch.device("cpu")
CONTEXT = 6


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_length": CONTEXT}
    return over_text(DecoderOnlyConfig(**sizes), 11).eval()


@pytest.mark.parametrize("length", [2, 6, 7, 8, 31])
@pytest.mark.parametrize("batch_tokens", [1, 20, 10**6])
def test_every_token_but_the_first_costs_its_surprise_after_its_window(model, monkeypatch, length, batch_tokens):
    monkeypatch.setattr(language, "BATCH_TOKENS", batch_tokens)
    tokens = np.random.default_rng(1).integers(5, 11, length)
    nats = 0.0
    for place in range(1, length):
        first = (place - 1) // CONTEXT * CONTEXT
        with torch.no_grad():
            logits = model.scores(torch.from_numpy(tokens[first:place])[None])[0, -1]
        nats -= float(torch.log_softmax(logits, -1)[tokens[place]])
    score = score_text(model, tokens, length, CPU)
    assert score.nats == pytest.approx(nats, rel=1e-5)
    assert (score.tokens, score.characters) == (length - 1, length - 1)


def test_characters_of_the_first_token_are_given_and_not_scored(model):
    tokens = np.array([5, 6, 7])
    assert score_text(model, tokens, 10, CPU, given=4).characters == 6
    with pytest.raises(DataError, match=r"^a text of 4 characters has none after its first token, .*: give a longer"):
        score_text(model, tokens, 4, CPU, given=4)


def test_the_measures_are_those_of_the_definitions():
    score = TextScore(nats=math.log(2) * 12, tokens=6, characters=4)
    assert score.loss == pytest.approx(2 * math.log(2))
    assert score.perplexity == pytest.approx(4)
    assert score.nats_per_character == pytest.approx(3 * math.log(2))
    assert score.bits_per_character == pytest.approx(3)
    assert score.as_dict().keys() == {"loss", "perplexity", "bits_per_character", "tokens", "characters"}


@pytest.fixture(scope="module")
def carrier():
    torch.manual_seed(0)
    sizes = {"embedding_size": 8, "hidden_size": 12, "num_layers": 2, "max_length": CONTEXT}
    made = over_text(RecurrentLanguageModelConfig(**sizes), 11).eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter)
    return made


@pytest.mark.parametrize("length", [2, 6, 7, 31])
@pytest.mark.parametrize("batch_tokens", [1, 20, 10**6])
def test_a_state_is_carried_through_the_whole_text(carrier, monkeypatch, length, batch_tokens):
    monkeypatch.setattr(language, "BATCH_TOKENS", batch_tokens)
    text = torch.from_numpy(np.random.default_rng(1).integers(5, 11, length))
    with torch.no_grad():
        logits = carrier.scores(text[None, :-1])[0]
    nats = torch.nn.functional.cross_entropy(logits, text[1:], reduction="sum").item()
    score = score_text(carrier, text.numpy(), length, CPU)
    assert score.nats == pytest.approx(nats, rel=1e-5)
    assert (score.tokens, score.characters) == (length - 1, length - 1)


def test_a_long_text_is_read_as_streams_that_begin_without_a_state(carrier, monkeypatch):
    text = np.random.default_rng(1).integers(5, 11, 36)
    apart = sum(score_text(carrier, part, len(part), CPU).nats for part in (text[:13], text[12:25], text[24:]))
    monkeypatch.setattr(language, "STREAM_TOKENS", 11)
    monkeypatch.setattr(language, "BATCH_TOKENS", 12)
    score = score_text(carrier, text, len(text), CPU)
    assert score.nats == pytest.approx(apart, rel=1e-5)
    assert score.tokens == 35
