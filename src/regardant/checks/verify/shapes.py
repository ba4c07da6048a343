"""Anything as a sequence: numbers of tokens of text, images and sound."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from regardant.checks.verify.check import COURSE, Claim
from regardant.checks.verify.layers import parameters
from regardant.data.batching import PairBatch, pad
from regardant.data.grammar import LECTURE_SENTENCES
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import EOS, SOS
from regardant.data.words import words
from regardant.models.representations import Blocks, InputShape, JoinedParts, Patches, patches, tokens
from regardant.positions.learned import LearnedConfig
from regardant.positions.none import NoPositions


@Claim(
    "N-44",
    "A 224 × 224 image in 16 × 16 patches",
    COURSE,
    lecture={"tokens": "196", "numbers a token": "768", "learned positions": "num_patches + 1"},
    true={"tokens": "196", "numbers a token": "768", "learned positions": "197", "with a class token": "197"},
    verdict="right",
    note="The extra position is that of the class token, which is learned here as one vector with the token.",
).measured
def image_patches() -> dict[str, int]:
    d_model, side, count = 512, 16, (224 // 16) ** 2
    positions = LearnedConfig().build(d_model=d_model, num_heads=1, head_size=d_model, max_length=count, causal=False)
    image = torch.zeros(1, 224, 224, 3)
    cut = Patches(InputShape(d_model, positions, class_token=True), side, channels=3)
    return {
        "tokens": cut.embed(image).values.shape[1],
        "numbers a token": cut.projection.in_features,
        "learned positions": (parameters(cut) - parameters(cut.projection)) // d_model,
        "with a class token": cut(image).values.shape[1],
    }


@Claim(
    "N-45",
    "“Hello world” as characters",
    COURSE,
    lecture="h e l l o _ w o r l d",
    true={"tokens": "h e l l o ▁ w o r l d", "count": "11"},
    verdict="right",
    note="Lower-cased; the project writes a space as ▁.",
).measured
def characters() -> dict[str, Any]:
    text = "Hello world"
    tokenizer = Tokenizer.train(TokenizerConfig(kind="character", lowercase=True), [text], 100)
    ids = tokenizer.encode(text)
    return {"tokens": tokenizer.tokens(ids), "count": len(ids)}


@Claim(
    "N-46",
    "Words of “The agreement on the …”",
    COURSE,
    lecture={"words": "14"},
    true={"words": "12", "tokens with the full stop and the end": "14"},
    verdict="wrong",
    note="Bahdanau's figure has 14 tokens, counting the full stop and the end of the sentence.",
).measured
def sentence_words() -> dict[str, int]:
    sentence = LECTURE_SENTENCES[1].source
    tokens = [word.text for word in words(sentence)]
    return {
        "words": len([token for token in tokens if token != "."]),
        "tokens with the full stop and the end": len(tokens) + 1,
    }


@Claim(
    "N-47",
    "Teacher forcing: inputs and targets",
    COURSE,
    lecture={"tokens read and said": "4 5", "read": "SOS Le chat s'est", "said": "Le chat s'est assis EOS"},
    true={"tokens read and said": "5 5", "read": "SOS Le chat s'est assis", "said": "Le chat s'est assis EOS"},
    verdict="wrong",
    note="Both are one sequence, shifted by one position: target[:, :-1] and target[:, 1:].",
).measured
def teacher_forcing() -> dict[str, Any]:
    names = {SOS: "SOS", EOS: "EOS", 10: "Le", 11: "chat", 12: "s'est", 13: "assis"}
    batch = PairBatch(source=torch.zeros(1, 1), target=pad([[10, 11, 12, 13]], sos=True))
    read, said = batch.inputs["target"], batch.targets
    return {
        "tokens read and said": [read.shape[1], said.shape[1]],
        "read": [names[token] for token in read[0].tolist()],
        "said": [names[token] for token in said[0].tolist()],
    }


@Claim(
    "N-48",
    "Sound subsampled by 100, 10 and 1",
    COURSE,
    lecture="coarse, medium and fine",
    true={
        "tokens of 16,000 samples": "160 1600 16000",
        "what 440 Hz becomes at every 100th": "40",
    },
    verdict="partly",
    note="The shapes are right, but subsampling without a low-pass filter aliases 440 Hz to 40 Hz. Computed in NumPy.",
).measured
def subsampled() -> dict[str, Any]:
    second = np.sin(2 * math.pi * 440 * np.arange(16_000) / 16_000)
    coarse = second[::100]
    return {
        "tokens of 16,000 samples": [len(second[::step]) for step in (100, 10, 1)],
        "what 440 Hz becomes at every 100th": int(np.abs(np.fft.rfft(coarse)).argmax()),
    }


@Claim(
    "N-49",
    "An image and a text as one sequence",
    COURSE,
    lecture="216 512",
    true="216 512",
    verdict="right",
    note="196 patches and 20 words, joined by the project's representation of items of several parts.",
).measured
def image_and_text() -> list[int]:
    joined = JoinedParts(InputShape(512, NoPositions()), {"image": patches(16, channels=3), "text": tokens(100)})
    items = Blocks([torch.zeros(1, 224, 224, 3), torch.full((1, 20), 10)])
    return list(joined(items).values[0].shape)


@Claim(
    "N-61",
    "np.array([1, 2, 3]) * 2",
    COURSE,
    lecture=None,
    true="2 4 6",
    verdict="unstated",
    note="The lecture shows the code without its output.",
).measured
def doubled() -> NDArray[np.int64]:
    return np.array([1, 2, 3]) * 2
