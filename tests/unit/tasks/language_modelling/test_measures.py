import json
import shutil
from functools import partial

import numpy as np
import pytest
import torch

from regardant import run
from regardant.data.windows import consecutive_windows
from regardant.errors import ConfigError, DataError, RunError
from regardant.inspection import Attended, capture, flow, head_importance, logit_lens, measure_heads
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.tasks.language_modelling.measures import measure
from regardant.tasks.measures import says_little
from tests.models import loss_of_text, over_text

CPU = torch.device("cpu")
KIND = "decoder.self_attention"
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_layers": 2}


@pytest.fixture(scope="module")
def tokens(trained_on_text):
    """A text of 331 tokens."""
    return np.asarray(trained_on_text().trained._validation()[:331])


@pytest.fixture(scope="module")
def untrained(trained_on_text):
    """A model of a kind, and the tokenizer of its text."""
    tokenizer = trained_on_text().trained.tokenizer

    def make(**fields):
        torch.manual_seed(0)
        return over_text(DecoderOnlyConfig(**SIZES, **fields), tokenizer.vocab_size).eval(), tokenizer

    return make


@pytest.fixture(scope="module")
def long(untrained, tokens):
    """A model of windows of 32, measured over ten of them and one of 10."""
    model, tokenizer = untrained(max_length=32)
    return model, tokenizer, measure(model, tokenizer, "a", tokens, CPU)


def weights_of(model, window):
    """[L, H, T, T] of one window [T], which is read by itself."""
    with torch.no_grad(), capture(model, "*.weights") as records:
        model.scores(window[None])
    return torch.cat([records.whole(place) for place in records])


def windows_of(tokens, length):
    return [window for batch in consecutive_windows(tokens, length, length) for window in batch.tokens]


def test_every_window_counts_as_a_sentence(long, tokens):
    model, tokenizer, found = long
    windows = windows_of(tokens, 32)
    assert found.sentences == len(windows) == 11
    sentences = [
        Attended(weights_of(model, window[:-1]), torch.tensor([says_little(token) for token in tokenizer.tokens(ids)]))
        for window in windows
        for ids in [window[:-1].tolist()]
    ]
    expected = measure_heads(sentences, causal=True)
    for name in ("entropy_share", "idle", "distances", "coverage"):
        torch.testing.assert_close(getattr(found.heads[KIND], name), getattr(expected, name))
    passes = [partial(loss_of_text, model, window[None]) for window in windows]
    places = ["decoder.layers.0.self_attention", "decoder.layers.1.self_attention"]
    importance = head_importance(model, passes, places)
    torch.testing.assert_close(found.importance[KIND].gradient, importance.gradient)
    torch.testing.assert_close(found.importance[KIND].ablation, importance.ablation, rtol=0, atol=1e-5)


def test_flow_is_sought_as_if_a_window_ended_early(long, tokens):
    model, _, found = long
    begun = [window[:20] for window in windows_of(tokens, 32)[:3]]
    nothing = torch.zeros(20, dtype=torch.bool)
    expected = measure_heads(
        [Attended(flow(weights_of(model, one))[None, None], nothing) for one in begun], causal=True
    )
    assert found.flow[KIND].sentences == 3
    torch.testing.assert_close(found.flow[KIND].entropy_share, expected.entropy_share, rtol=1e-5, atol=1e-6)


def test_the_lens_reads_every_layer_over_all_windows(long, tokens):
    model, _, found = long
    ranks = [
        logit_lens(model, partial(model.scores, window[None, :-1]), window[None, 1:]).rank
        for window in windows_of(tokens, 32)
    ]
    expected = (torch.cat(ranks, 1) == 1).double().mean(1)
    assert [layer.first for layer in found.lens] == pytest.approx(expected.tolist())
    assert found.lens[-1].divergence == pytest.approx(0, abs=1e-6) and found.lens[0].divergence > 1e-3


def test_white_space_and_punctuation_say_little():
    little = [label for label in ("a", " ", "\n", ".", "<eos>", "<unk>") if says_little(label)]
    assert little == [" ", "\n", ".", "<eos>"]


@pytest.fixture
def own_text_run(trained_on_text, tmp_path):
    """A copy to write to."""
    return shutil.copytree(trained_on_text().folder, tmp_path / "run")


def test_a_run_is_measured_over_its_validation_text(regardant, own_text_run):
    said = regardant("measure", own_text_run)
    assert said.code == 0
    assert said.lines[0] == "validation: 53 windows"
    captions = [line for line in said.lines if line.startswith(("Decoder self-attention", "Logit lens"))]
    assert captions[0] == "Decoder self-attention: where each head attends"
    assert captions[1].startswith("Decoder self-attention: importance of each head")
    assert captions[2:] == [
        "Decoder self-attention: rollout down to the input",
        "Logit lens: prediction after each number of layers",
    ]
    assert max(map(len, said.lines)) <= 80
    kept = json.loads((own_text_run / "measures" / "validation.json").read_text("utf-8"))
    assert kept["lens"][-1]["first"] > kept["lens"][0]["first"]
    assert (own_text_run / "measures" / "validation.txt").read_text("utf-8") == said.out


def test_another_text_is_measured_under_its_name(regardant, own_text_run, text_file):
    said = regardant("measure", own_text_run, "--data", text_file, "--json")
    assert json.loads(said.out)["name"] == "a.txt"
    assert (own_text_run / "measures" / "a.txt.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        (
            {"treebank": "b.conllu"},
            ConfigError,
            "--treebank needs the encoder of a translator: leave it out",
        ),
        ({"data": ["one", "two"]}, ConfigError, "--data was given 2 times: give one file"),
    ],
)
def test_what_a_language_model_is_not_measured_over_is_one_line(own_text_run, arguments, error, told):
    with pytest.raises(error, match=told):
        run.load(own_text_run).measure(**arguments)


def test_a_text_too_short_and_a_run_without_text_are_one_line(own_text_run, tmp_path):
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(DataError, match="has 1 tokens: give a text of two at least"):
        run.load(own_text_run).measure(data=[tmp_path / "a.txt"])
    shutil.rmtree(own_text_run / "data")
    with pytest.raises(RunError, match="holds no validation text"):
        run.load(own_text_run).measure()
