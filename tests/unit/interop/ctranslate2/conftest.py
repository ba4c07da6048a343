"""A vocabulary, models of any shape over it, and exports of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from regardant import config as configuration
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizers
from regardant.interop.ctranslate2.export import export
from regardant.interop.ctranslate2.search import CTranslate2Searcher
from regardant.interop.ctranslate2.threads import Choice, Threads
from regardant.models import EncoderDecoder, EncoderDecoderConfig
from tests.models import over_pairs

CORPUS = ["the cat sat on the mat . did the old dog sleep ? it never ate , they said !"]
SHAPE: dict[str, Any] = {
    "preset": None,
    "d_model": 16,
    "num_heads": 4,
    "d_ff": 24,
    "max_length": 24,
    "encoder": {"num_layers": 2},
    "decoder": {"num_layers": 2},
}


@pytest.fixture(scope="session")
def tokenizers() -> Tokenizers:
    return Tokenizers.train(TokenizerConfig(kind="word"), CORPUS, CORPUS, 100)


@pytest.fixture(scope="session")
def build(tokenizers: Tokenizers) -> Callable[..., EncoderDecoder]:
    """An untrained model of SHAPE with fields set as by --set, none of whose numbers is like another."""

    def make(*overrides: str) -> EncoderDecoder:
        config = configuration.load(EncoderDecoderConfig, SHAPE, overrides, origin="model")
        torch.manual_seed(0)
        model = over_pairs(config, tokenizers.source.vocab_size, tokenizers.target.vocab_size).eval()
        with torch.no_grad():
            for parameter in model.parameters():  # norms and biases too, which begin as ones and zeros
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
        return model

    return make


@pytest.fixture
def searcher(tokenizers: Tokenizers, tmp_path: Path) -> Callable[..., CTranslate2Searcher]:
    """What decodes a model in CTranslate2."""

    def make(model: EncoderDecoder, quantization: str = "float32") -> CTranslate2Searcher:
        export(model, tokenizers, tmp_path / quantization, quantization)
        return CTranslate2Searcher(tmp_path / quantization, tokenizers, Choice(Threads(1, 1), Threads(1, 1)), "cpu")

    return make
