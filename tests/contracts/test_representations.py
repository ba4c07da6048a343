"""Every representation: padding changes no answer, every part of an item does, and inputs do not depend on targets."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regardant.data.graphs import Graph
from regardant.data.questions import ContextQuestion
from regardant.data.recordings import Recording
from regardant.data.series import Series
from regardant.modalities import (
    GraphModalityConfig,
    GraphsModalityConfig,
    ImageModalityConfig,
    JoinedModalityConfig,
    ModalityConfig,
    SeriesModalityConfig,
    SoundModalityConfig,
    TextModalityConfig,
    VideoModalityConfig,
    WaveformModalityConfig,
)
from regardant.modalities.questions import QuestionsModalityConfig
from regardant.modalities.words import LabelledWords, WordsModalityConfig
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads import SequenceClassConfig

GENERATOR = np.random.default_rng(0)
TEXTS = ["the old cat sees the dog", "a dog", "the cat sees a bird"]
IMAGES = [GENERATOR.random((8, 8)).astype(np.float32) for _ in TEXTS]
VIDEOS = [GENERATOR.random((4, 8, 8)).astype(np.float32) for _ in TEXTS]
SOUNDS = [Recording(GENERATOR.integers(-99, 99, size).astype(np.int16), 8000) for size in (4000, 900, 2100)]
GRAPH = Graph([*"abcdef"], np.eye(6, dtype=np.float32), np.array([[0, 1], [1, 2], [3, 4]]))
TIMES = np.arange(20.0)
SERIES = Series("t", TIMES.astype(str), ["a"], np.sin(TIMES)[:, None])
GRAPHS = [
    Graph([*"abcdef"[:size]], GENERATOR.random((size, 3)).astype(np.float32), np.array([[0, 1], [1, 2]]))
    for size in (6, 3, 4)
]

CASES = {
    "text": (TextModalityConfig(), TEXTS, TEXTS),
    "image": (ImageModalityConfig(patch_size=4), IMAGES, IMAGES),
    "video": (VideoModalityConfig(patch_size=4, tubelet_frames=2), VIDEOS, VIDEOS),
    "sound": (SoundModalityConfig(sample_rate=8000), SOUNDS, SOUNDS),
    "waveform": (WaveformModalityConfig(sample_rate=8000), SOUNDS, SOUNDS),
    "graph": (GraphModalityConfig(), [GRAPH], [0, 3]),
    "graphs": (GraphsModalityConfig(distance_bias=2), GRAPHS, GRAPHS),
    "series": (SeriesModalityConfig(history=8, patch_length=4, stride=2), [SERIES], [SERIES]),
    "joined": (
        JoinedModalityConfig(
            parts={
                "sound": SoundModalityConfig(sample_rate=8000),
                "text": TextModalityConfig(),
                "image": ImageModalityConfig(patch_size=4),
            }
        ),
        both := [
            {"sound": sound, "text": text, "image": image}
            for sound, text, image in zip(SOUNDS, reversed(TEXTS), IMAGES, strict=True)
        ],
        both,
    ),
}
"""The kind of item, the items that it is fitted to, and items of unequal length where there are such."""

SIZES = {"d_model": 16, "num_heads": 2, "num_layers": 2, "d_ff": 32, "dropout": 0.0, "max_length": 64}


def test_every_kind_of_item_is_listed():
    assert {kind for kind, made in ModalityConfig.kinds().items() if made.__module__.startswith("regardant.")} == {
        *CASES
    }


def built(name, pooling):
    """Return the codec of a case, its encoded items, and a model that reads them."""
    modality, items, read = CASES[name]
    codec = modality.fit(items)
    encoded = codec.encode(read)
    if name == "series":
        encoded = [encoded[0][start : start + 8, 0] for start in (0, 5, 11)]
    positions = {"kind": "none"} if name in ("graph", "graphs") else {"kind": "sinusoidal"}
    torch.manual_seed(0)
    config = EncoderOnlyConfig(**SIZES, positions=positions)
    head = SequenceClassConfig(pooling=pooling, dropout=0.0)
    return codec, encoded, config.build(codec.representation(), lambda d_model: head.build(d_model, 3)).eval()


@pytest.mark.parametrize(
    ("name", "pooling"),
    [
        (name, pooling)
        for name in CASES
        for pooling in ("mean", "class_token", "last")
        if not (pooling == "last" and name in ("graph", "graphs"))  # nodes have no order
    ],
)
def test_padding_changes_no_answer(name, pooling):
    codec, encoded, model = built(name, pooling)
    encoded = [*encoded, *([np.arange(5, dtype=np.int32)] if name == "graph" else [])]
    with torch.inference_mode():
        together = model.scores(codec.collate(encoded))
        for row, one in enumerate(encoded):
            assert_close(model.scores(codec.collate([one]))[0], together[row], atol=1e-5, rtol=0)
    assert (together[0] - together[1]).abs().max() > 1e-4


@pytest.mark.parametrize("part", ["sound", "text", "image"])
def test_a_part_that_is_exchanged_among_items_changes_every_answer(part):
    codec, encoded, model = built("joined", "mean")
    items = CASES["joined"][2]
    others = [{**one, part: other[part]} for one, other in zip(items, [*items[1:], items[0]], strict=True)]
    with torch.inference_mode():
        before, after = (model.scores(codec.collate(given)) for given in (encoded, codec.encode(others)))
    assert (before - after).abs().amax(1).min() > 1e-4


def test_items_of_several_parts_in_another_order_have_the_same_answers():
    codec, encoded, model = built("joined", "mean")
    with torch.inference_mode():
        before, after = (model.scores(codec.collate(given)) for given in (encoded, [*encoded[1:], encoded[0]]))
    assert_close(after, before.roll(-1, 0), atol=1e-5, rtol=0)


def test_the_inputs_of_words_do_not_change_with_their_labels():
    words = [text.split() for text in TEXTS]
    first, second = ([LabelledWords(one, [label] * len(one)) for one in words] for label in (0, 1))
    codec = WordsModalityConfig().fit(first)
    inputs, others = (codec.collate(codec.encode(items)) for items in (first, second))
    assert torch.equal(inputs, others)
    assert not torch.equal(codec.targets(codec.encode(first)), codec.targets(codec.encode(second)))


def test_the_inputs_of_questions_do_not_change_with_their_answers():
    first, second = (
        [ContextQuestion("who sees", text, (text.split()[word],), text.index(text.split()[word])) for text in TEXTS]
        for word in (0, 1)
    )
    codec = QuestionsModalityConfig().fit(first)
    encoded = [codec.encode(items) for items in (first, second)]
    assert torch.equal(codec.collate(encoded[0]), codec.collate(encoded[1]))
    assert not any(np.array_equal(*both) for both in zip(*encoded, strict=True))
