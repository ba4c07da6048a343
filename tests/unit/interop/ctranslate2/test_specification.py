"""A model and its export are one function, whatever shape the model has that CTranslate2 can compute."""

import copy
import random

import pytest
import torch

from regardant import config as configuration
from regardant.data.batching import pad
from regardant.errors import RunError
from regardant.generation.config import GenerationConfig
from regardant.generation.teacher_forcing import score_tokens
from regardant.interop.ctranslate2.specification import require_expressible
from regardant.models import EncoderDecoderConfig
from regardant.models.recurrent import RecurrentConfig

FIRST_WORD = 5
SHAPE = {"preset": None, "d_model": 16, "num_heads": 4, "d_ff": 24}
SHAPES = {
    "pre-norm": [],
    "post-norm": ["norm=post"],
    "learned positions": ["positions.kind=learned"],
    "positions on a grid": ["positions.kind=two_dimensional"],
    "no positions": ["positions.kind=none"],
    "rotary": ["positions.kind=rotary"],
    "rotary and SwiGLU": ["positions={kind: rotary, base: 50}", "feed_forward.kind=gated"],
    "rotary, grouped keys": ["positions.kind=rotary", "num_key_heads=2", "norm=post"],
    "rotary, one key head": ["positions.kind=rotary", "num_key_heads=1"],
    "rotary, wide heads": ["positions.kind=rotary", "key_size=6", "value_size=6"],
    "later waves": ["positions={kind: sinusoidal, first: 1}"],
    "bare embeddings": ["scale_embeddings=false"],
    "two matrices": ["tie_embeddings=target"],
    "three matrices": ["tie_embeddings=none"],
    "stacks of other heights": ["encoder.num_layers=3", "decoder.num_layers=1"],
    "grouped keys": ["num_key_heads=2"],
    "one key head": ["num_key_heads=1", "norm=post"],
    "wide heads": ["key_size=6", "value_size=6"],
    "queries are keys": ["projections=query_key"],
    "values are keys": ["projections=key_value", "num_key_heads=2"],
    "all are keys": ["projections=all"],
    "no scale": ["encoder.self_attention.scaled=false", "decoder.cross_attention.scaled=false"],
    "temperatures": ["decoder.self_attention.temperature=0.5", "decoder.cross_attention.temperature=3"],
    "rms norm": ["normalisation=rms_norm"],
    "rms norm after": ["normalisation=rms_norm", "norm=post"],
    "gelu": ["feed_forward.activation=gelu"],
    "SwiGLU": ["feed_forward.kind=gated"],
    "GLU": ["feed_forward={kind: gated, activation: sigmoid}"],
}


@pytest.mark.parametrize("overrides", SHAPES.values(), ids=SHAPES)
def test_an_export_finds_every_target_as_probable_as_the_model_does(build, searcher, overrides):
    model = build(*overrides)
    draw = random.Random(1)
    words = range(FIRST_WORD, model.head.weight.shape[0])
    sources, targets = ([draw.choices(words, k=length) for length in lengths] for lengths in ((3, 9, 22), (11, 2, 22)))
    expected = score_tokens(model, pad(sources), pad(targets, sos=True))
    engine = searcher(model)
    found = engine.engine.score_batch(
        [[engine.sources[token] for token in source] for source in sources],
        [[engine.targets[token] for token in target] for target in targets],
    )
    for row, one in enumerate(found):
        assert one.log_probs == pytest.approx(expected[row, : len(targets[row]) + 1].tolist(), abs=1e-4)
    assert expected.std() > 0.5, "what is everywhere as probable proves nothing"


@pytest.mark.parametrize("overrides", SHAPES.values(), ids=SHAPES)
def test_an_export_writes_step_by_step_what_it_scores_in_one_pass(build, searcher, overrides):
    model = build(*overrides)
    engine = searcher(model)
    sources, forced = [[5, 6, 7], [12, 9, 8, 7, 10, 11], [16, 15]], [9, 5, 14, 8, 10]
    found = engine.engine.translate_batch(
        [[engine.sources[token] for token in source] for source in sources],
        [[engine.targets[token] for token in forced]] * 3,
        beam_size=2,
        length_penalty=0,
        min_decoding_length=0,
        max_decoding_length=12,
        return_end_token=True,
        return_scores=True,
    )
    compared = 0
    for source, one in zip(sources, found, strict=True):
        pieces = one.hypotheses[0]
        if "<pad>" not in pieces:  # which ours reads as no token at all
            written = [engine.ids[piece] for piece in pieces if piece != "<eos>"]
            scores = score_tokens(model, pad([source]), pad([written], sos=True))[0, len(forced) : len(pieces)]
            assert one.scores[0] == pytest.approx(scores.sum().item(), abs=1e-3)
            compared += 1
    assert compared


def test_exporting_leaves_the_model_as_it_was(build, searcher):
    model = build()
    before = copy.deepcopy(model.state_dict())
    searcher(model, "int8")
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("quantization", ["int8", "int16", "float16", "bfloat16"])
def test_narrower_weights_write_nearly_as_probable_texts(build, searcher, quantization):
    """What a machine has no arithmetic for is widened again; what was rounded stays rounded."""
    model = build()
    sources = [[*range(5, 9 + length)] for length in range(6)]
    forced = [5, 7, 6, 9, 8, 5]  # of its own it may write other texts
    limit = GenerationConfig(beam_size=1, max_length_ratio=0, max_length_extra=len(forced))
    totals = {}
    for name in (quantization, "float32"):
        found = searcher(model, name).search(sources, [forced] * 6, limit, 23)
        totals[name] = sum(one.log_probability for (one,) in found)
    assert totals[quantization] == pytest.approx(totals["float32"], rel=0.05)
    assert totals[quantization] != totals["float32"]


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (
            ["positions.kind=alibi"],
            "model.positions.kind alibi (supported: sinusoidal, learned, two_dimensional, rotary, none)",
        ),
        (
            ["positions={kind: learned, combine: concatenate}", "tie_embeddings=none"],
            "model.positions.combine concatenate (supported: add)",
        ),
        (["encoder.self_attention.kind=window"], "model.encoder.self_attention.kind window"),
        (["encoder.self_attention.kind=cosine"], "model.encoder.self_attention.kind cosine"),
        (["decoder.self_attention.kind=linear"], "model.decoder.self_attention.kind linear"),
        (["decoder.cross_attention.kind=additive"], "model.decoder.cross_attention.kind additive"),
        (["projections=none"], "model.projections none"),
        (["value_size=5"], "model.value_size 5 (supported: the size of keys, 4)"),
        (["feed_forward.kind=convolution"], "model.feed_forward.kind convolution (supported: linear, gated)"),
        (["normalisation=layer_norm_sigma"], "model.normalisation.kind layer_norm_sigma"),
        (["attention_output=false"], "model.attention_output False (supported: True)"),
        (["residual=reversible"], "model.residual reversible (supported: add)"),
        (["memory=per_layer"], "model.memory per_layer (supported: final)"),
    ],
)
def test_what_it_cannot_compute_is_refused_by_name(overrides, told):
    with pytest.raises(RunError) as refused:
        require_expressible(configuration.load(EncoderDecoderConfig, SHAPE, overrides))
    message = str(refused.value)
    assert message.startswith(f"CTranslate2 cannot compute {told}")
    assert message.endswith("): use --engine torch")
    assert (message.count("model."), message.count("\n")) == (1, 0)


def test_all_that_stands_in_the_way_is_told_at_once():
    config = configuration.load(EncoderDecoderConfig, SHAPE, ["positions.kind=t5", "memory=per_layer"])
    with pytest.raises(RunError, match=r"model\.memory per_layer .*; model\.positions\.kind t5 "):
        require_expressible(config)


def test_another_model_is_refused_as_such():
    with pytest.raises(RunError) as refused:
        require_expressible(RecurrentConfig())
    expected = "CTranslate2 cannot compute model.kind recurrent (supported: encoder_decoder): use --engine torch"
    assert str(refused.value) == expected
