import json
import math

import numpy as np
import pytest
import torch

from regardant.data.treebank import ROOT, ParsedSentence
from regardant.errors import DataError, RunError
from regardant.evaluation.alignment import alignment_error_rate, extract_links, parse_links
from regardant.inspection import attention_places, measure_heads
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.models.one_to_one import OneToOneConfig
from regardant.models.recurrent import RecurrentConfig
from regardant.tasks.measures import attended
from regardant.tasks.translation.look.alignment import error_rates, word_attention
from regardant.tasks.translation.look.measures import MeasuredPairs, between_words, measure, probes
from regardant.tasks.translation.use.translator import Translator
from tests.models import over_pairs

SOURCES = ["the cat sat on a mat .", "a dog ran .", "the old bird saw the big red house .", "it sat ."]
TARGETS = ["le chat assis .", "un chien courut .", "le vieux oiseau vit la grande maison rouge .", "il assis sur ."]
GOLD = [{(0, 0), (1, 1), (2, 2)}, {(0, 0), (1, 1)}, {(0, 0), (2, 2)}, {(0, 0), (1, 1)}]
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 16, "dropout": 0.0, "max_length": 16}
STACKS = {"encoder": {"num_layers": 2}, "decoder": {"num_layers": 2}}
CONFIGS = {
    "transformer": EncoderDecoderConfig(preset=None, **SIZES, **STACKS),
    "convolution": EncoderDecoderConfig(
        preset=None,
        **SIZES,
        encoder={"num_layers": 1, "self_attention": {"kind": "convolution"}},
        decoder={"num_layers": 1, "self_attention": {"kind": "convolution"}},
    ),
    "recurrent": RecurrentConfig(embedding_size=8, hidden_size=8, dropout=0.0),
    "one_to_one": OneToOneConfig(embedding_size=8, hidden_size=8, dropout=0.0),
}
CHAIN = ParsedSentence(
    "a red cat", ["a", "red", "cat"], [(0, 1), (2, 5), (6, 9)], [2, 2, ROOT], ["det", "amod", "root"]
)


@pytest.fixture(scope="module")
def translator():
    """Untrained, of a kind of model, over the words above."""
    from regardant.data.tokenizer_config import TokenizerConfig
    from regardant.data.tokenizers import Tokenizers

    tokenizers = Tokenizers.train(TokenizerConfig(kind="word"), SOURCES, TARGETS, 100)

    def make(kind):
        torch.manual_seed(0)
        size = tokenizers.source.vocab_size
        return Translator(over_pairs(CONFIGS[kind], size), tokenizers, torch.device("cpu"))

    return make


@pytest.fixture(scope="module")
def measured(translator):
    """What the Transformer's attention is, with gold links and a treebank."""
    return measure(translator("transformer"), MeasuredPairs("a", SOURCES, TARGETS, GOLD), [CHAIN] * 4)


KINDS = ["encoder.self_attention", "decoder.self_attention", "decoder.cross_attention"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_is_measured_as_if_it_stood_alone(translator, kind):
    model = translator("transformer")
    together = list(attended(model.model, probes(model, SOURCES, TARGETS), kind))
    for number, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        (alone,) = attended(model.model, probes(model, [source], [target]), kind)
        torch.testing.assert_close(together[number].weights, alone.weights, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(alone.weights.sum(-1), torch.ones(alone.weights.shape[:-1]))
        assert together[number].idle.tolist() == alone.idle.tolist()


def test_the_end_and_punctuation_are_idle_in_a_source_and_the_beginning_in_a_target(translator):
    model = translator("transformer")
    (source,) = attended(model.model, probes(model, SOURCES[:1], TARGETS[:1]), "encoder.self_attention")
    (target,) = attended(model.model, probes(model, SOURCES[:1], TARGETS[:1]), "decoder.self_attention")
    assert source.idle.tolist() == [False] * 6 + [True, True]  # the full stop, the end
    assert target.idle.tolist() == [True, False, False, False, True]  # the beginning, the full stop


def test_everything_is_measured_and_said(measured):
    assert list(measured.heads) == list(measured.importance) == KINDS
    assert list(measured.rollout) == list(measured.flow) == KINDS[:2]
    assert measured.heads[KINDS[0]].entropy.shape == measured.importance[KINDS[0]].ablation.shape == (2, 2)
    assert measured.rollout[KINDS[1]].entropy.shape == (2, 1)
    assert [layer.layers for layer in measured.lens] == [0, 1, 2]
    assert len(measured.explanations) == 2 * (2 + 1 + 1)
    assert all(-1 <= one.gradient <= 1 and -1 <= one.ablation <= 1 for one in measured.explanations)
    assert [score.relation for score in measured.relations] == ["amod", "det"]
    assert max(map(len, measured.lines())) <= 80
    text = "\n".join(measured.lines())
    for part in (
        "a: 4 pairs",
        "Encoder self-attention: where each head attends",
        "Cross-attention",
        "rollout",
        "Logit lens",
        "explanations",
    ):
        assert part in text


def test_the_numbers_of_heads_are_those_of_the_library(translator, measured):
    of = translator("transformer")
    for kind in KINDS:
        rows = attended(of.model, probes(of, SOURCES, TARGETS), kind)
        expected = measure_heads(rows, causal=kind == "decoder.self_attention")
        torch.testing.assert_close(measured.heads[kind].entropy_share, expected.entropy_share)
        torch.testing.assert_close(measured.heads[kind].distances, expected.distances)


def test_error_rates_are_those_of_each_head_s_links(translator, measured):
    words = word_attention(translator("transformer"), SOURCES, TARGETS)
    rates = error_rates(words, GOLD)
    assert rates.shape == (2, 2, 3)
    for place in np.ndindex(rates.shape):
        assert rates[place] == alignment_error_rate([extract_links(pair[place]) for pair in words], GOLD)
    assert measured.alignment == rates.tolist()


def test_json_holds_all_and_nothing_that_is_no_number(measured, tmp_path):
    measured.save(tmp_path)
    kept = json.loads((tmp_path / "a.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert kept == json.loads(json.dumps(measured.as_dict()))
    assert kept["heads"][KINDS[2]]["entropy"] == measured.heads[KINDS[2]].entropy.tolist()
    assert (tmp_path / "a.txt").read_text() == "".join(f"{line}\n" for line in measured.lines())


def test_a_recurrent_model_is_measured_where_it_attends(translator):
    found = measure(translator("recurrent"), MeasuredPairs("a", SOURCES, TARGETS), [CHAIN] * 4)
    assert list(found.heads) == ["decoder.cross_attention"]
    assert found.importance["decoder.cross_attention"].gradient.shape == (1, 1)
    assert not found.rollout and not found.lens and not found.relations
    assert found.notes == [
        "no logit lens: RecurrentEncoderDecoder has no residual stream that leads to its head",
        "no gold alignments of these pairs: no error rates",
        "no self-attention of the encoder to compare with the treebank",
    ]
    assert [one.rolled for one in found.explanations] == [False, False]
    assert found.lines()[-3:] == found.notes


def test_a_model_without_self_attention_is_measured_where_it_attends(translator):
    found = measure(translator("convolution"), MeasuredPairs("a", SOURCES, TARGETS))
    assert list(found.heads) == ["decoder.cross_attention"] and len(found.lens) == 2 and found.lines()


def test_a_model_without_attention_has_nothing_to_measure(translator):
    with pytest.raises(RunError, match="this model has no attention to measure"):
        measure(translator("one_to_one"), MeasuredPairs("a", SOURCES, TARGETS))


def test_pairs_that_do_not_fit_are_left_out_with_their_links(translator):
    sources, targets = ["the " * 40, *SOURCES[:2]], ["le", *TARGETS[:2]]
    model = translator("transformer")
    found = measure(model, MeasuredPairs("a", sources, targets, [{(0, 0)}, *GOLD[:2]]))
    assert found.sentences == 2
    assert found.alignment == error_rates(word_attention(model, SOURCES[:2], TARGETS[:2]), GOLD[:2]).tolist()
    with pytest.raises(DataError, match="a: none of the first pairs fits 16 tokens: give other ones"):
        measure(model, MeasuredPairs("a", sources[:1], targets[:1]))


def test_a_treebank_without_what_can_be_scored_is_one_line(translator):
    with pytest.raises(DataError, match="the treebank has too few sentences that fit the model"):
        measure(translator("transformer"), MeasuredPairs("a", SOURCES, TARGETS), [CHAIN])


def test_attention_between_parsed_words_is_summed_and_averaged_over_their_tokens(translator):
    model = translator("transformer")
    text = "Don't go"  # for the vocabulary three words, for the treebank too, but other ones
    parsed = ParsedSentence(
        text, ["Do", "n't", "go"], [(0, 2), (2, 5), (6, 8)], [2, 2, ROOT], ["aux", "advmod", "root"]
    )
    long = ParsedSentence(
        "the " * 40, ["the"] * 40, [(4 * n, 4 * n + 3) for n in range(40)], [ROOT] * 40, ["root"] * 40
    )
    found = list(between_words(model, [parsed, long, CHAIN]))
    assert [sentence.text for sentence, _ in found] == [text, CHAIN.text]
    for sentence, weights in found:
        assert weights.shape == (2, 2, len(sentence.words), len(sentence.words))
    (given,) = attended(model.model, probes(model, [CHAIN.text], ["le"]), "encoder.self_attention")
    torch.testing.assert_close(found[1][1].float(), given.weights[..., :3, :3])


def test_the_run_is_measured_over_its_validation_pairs_with_their_gold_links(trained):
    run = trained()
    found = run.measure()
    assert (found.name, found.sentences, found.explained) == ("validation", 40, 10)
    links = (run.folder / "data" / "links" / "validation.links").read_text().splitlines()
    pairs = run.trained._pairs_to_measure([])
    assert list(pairs.gold) == [parse_links(line) for line in links]
    words = word_attention(run.translator, pairs.sources, pairs.targets)
    assert found.alignment == error_rates(words, pairs.gold).tolist()
    assert math.isfinite(found.gradient_and_ablation) and found.gradient_and_ablation > 0.2
    first, *_, last = found.lens
    assert last.first > first.first and last.divergence == pytest.approx(0, abs=1e-5)
    assert sorted(path.name for path in (run.folder / "measures").iterdir()) == ["validation.json", "validation.txt"]
    assert attention_places(run.translator.model).keys() == found.heads.keys()
