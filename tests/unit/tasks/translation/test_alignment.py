import numpy as np
import pytest
import torch

from regardant.data.batching import pad
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizers
from regardant.data.words import words
from regardant.evaluation.alignment import parse_links
from regardant.inspection import capture
from regardant.models.encoder_decoder import EncoderDecoderConfig
from regardant.tasks.translation.look.alignment import MEAN_OF_HEADS, choose_alignment, links_by, word_attention
from regardant.tasks.translation.use.translator import Translator
from tests.models import over_pairs

PLAIN, SHIFTED = 0, 1
NUM_LAYERS, NUM_HEADS = 2, 3


def untrained(kind, texts):
    """A translator of tokens of this kind, learned from the texts, with random weights."""
    tokenizers = Tokenizers.train(TokenizerConfig(kind=kind), texts, texts, 300)
    sizes = {"d_model": 12, "num_heads": NUM_HEADS, "d_ff": 8, "max_length": 120}
    stacks = {"encoder": {"num_layers": 1}, "decoder": {"num_layers": NUM_LAYERS}}
    size = tokenizers.source.vocab_size
    model = over_pairs(EncoderDecoderConfig(preset=None, **sizes, **stacks), size)
    return Translator(model, tokenizers, torch.device("cpu"))


@pytest.mark.parametrize("kind", ["word", "bpe", "unigram", "character", "byte"])
def test_attention_is_between_the_words_of_the_text_whatever_the_tokens(kind, test_set):
    sources, targets = test_set.sources[:60], test_set.references[:60]  # more than one batch
    found = word_attention(untrained(kind, sources + targets), sources, targets)
    assert len(found) == 60
    for attention, source, target in zip(found, sources, targets, strict=True):
        assert attention.shape == (2, NUM_LAYERS, NUM_HEADS + 1, len(words(target)), len(words(source)))
        assert (attention >= 0).all()
        assert (attention[PLAIN].sum(-1) <= 1 + 1e-5).all()  # the rest goes to EOS and to spaces


@pytest.mark.parametrize("kind", ["word", "character"])
def test_words_that_the_vocabulary_lacks_keep_their_places(kind):
    (attention,) = word_attention(untrained(kind, ["a b c."]), ["a zèbre b qu'il c !"], ["b aujourd'hui xyz."])
    assert attention.shape[-2:] == (4, 7)


def test_the_last_head_is_the_mean_of_the_others(trained, test_set):
    for attention in word_attention(trained().translator, test_set.sources[:9], test_set.references[:9]):
        np.testing.assert_allclose(attention[:, :, -1], attention[:, :, :-1].mean(2), atol=1e-7)


def test_where_tokens_are_words_it_is_the_cross_attention_itself(trained, test_set):
    translator = trained().translator
    source, target = "The judge sleeps.", "Le juge dort."
    ids = [
        tokenizer.encode(text)
        for tokenizer, text in ((translator.tokenizers.source, source), (translator.tokenizers.target, target))
    ]
    with capture(translator.model, "*.cross_attention.weights") as records:
        translator.model.scores(pad(ids[:1]), pad(ids[1:], sos=True)[:, :-1])
    weights = records["decoder.layers.0.cross_attention.weights"][0][0].numpy()  # [H, T, S], both with EOS
    (attention,) = word_attention(translator, [source], [target])
    np.testing.assert_allclose(attention[PLAIN, 0, :-1], weights[:, :4, :4], atol=1e-6)
    np.testing.assert_allclose(attention[SHIFTED, 0, :-1], weights[:, 1:5, :4], atol=1e-6)


def test_a_pair_s_attention_does_not_depend_on_the_pairs_beside_it(trained, test_set):
    translator, sources, targets = trained().translator, test_set.sources[:20], test_set.references[:20]
    together = word_attention(translator, sources, targets)
    for number in range(20):
        (alone,) = word_attention(translator, [sources[number]], [targets[number]])
        np.testing.assert_allclose(together[number], alone, atol=1e-5)


def planted(gold, place, num_targets=6):
    """Random attention to six words but at `place`, (shift, layer, head), where the links of each sentence are."""
    random = np.random.default_rng(5)
    attention = []
    for links in gold:
        weights = random.random((2, NUM_LAYERS, NUM_HEADS + 1, num_targets, 6))
        weights[place] *= 0.01
        for source, target in links:
            weights[place][target, source] = 1.0
        attention.append(weights)
    return attention


GOLD = [{(0, 1), (1, 0), (2, 2), (3, 3), (4, 5), (5, 4)}, {(5, 0), (0, 5), (1, 1), (2, 3), (3, 2), (4, 4)}] * 4


@pytest.mark.parametrize("place", [(PLAIN, 0, 0), (PLAIN, 1, 2), (SHIFTED, 1, 0), (SHIFTED, 0, NUM_HEADS)])
def test_the_head_that_holds_the_links_is_chosen(place):
    choice = choose_alignment(planted(GOLD, place), GOLD)
    shift, layer, head = place
    named = MEAN_OF_HEADS if head == NUM_HEADS else head
    assert (choice.shift, choice.layer, choice.head) == (bool(shift), layer, named)
    assert choice.validation_error_rate == 0


def test_the_chosen_place_gives_the_links_of_other_pairs():
    other = [{(0, 0), (1, 2), (2, 1), (3, 4), (4, 3), (5, 5)}]
    place = (SHIFTED, 1, NUM_HEADS)
    choice = choose_alignment(planted(GOLD, place), GOLD)
    assert links_by(choice, planted(other, place)) == other


def test_a_threshold_for_words_that_come_from_two_is_chosen_with_the_head():
    gold = [{(0, 1), (1, 0), (2, 2), (3, 3), (4, 4), (5, 4)}, {(0, 0), (1, 0), (2, 4), (3, 3), (4, 2), (5, 1)}] * 4
    choice = choose_alignment(planted(gold, (PLAIN, 0, 1), num_targets=5), gold)
    assert (choice.head, choice.validation_error_rate) == (1, 0)
    assert choice.threshold < 1


def test_gold_links_of_the_grammar_count_the_same_words(test_set):
    for source, target, gold in zip(test_set.sources, test_set.references, test_set.gold, strict=True):
        links = parse_links(gold)
        assert {link[0] for link in links} == set(range(len(words(source))))
        assert {link[1] for link in links} <= set(range(len(words(target))))
