"""Tokenizers of the Hugging Face library from their JSON, restricted to the settings that training writes."""

import json
from collections.abc import Mapping
from typing import Any

import tokenizers as hf

from regardant.data.vocabulary import SPECIAL_TOKENS

LEARNED = ("vocab", "merges")
"""Parts of a model that training learns. All others follow from its kind."""


def restored(content: Mapping[str, Any], usual: Mapping[str, Any] | None, *, is_own: bool = True) -> hf.Tokenizer:
    """Return a tokenizer from its JSON.

    `usual` is the JSON of an untrained tokenizer of the same kind, or None for a kind with any settings. `is_own` is
    True if the first ids must be those of the special tokens, False for an imported tokenizer.

    Raises ValueError for settings other than the usual ones (no normaliser, padding to a million tokens, BPE dropout),
    and for a vocabulary without the special tokens or with a gap in its ids; another Exception for other damage.
    """
    expected = content if usual is None else usual
    for part in sorted(content.keys() | expected.keys()):
        if _settings(content.get(part)) != _settings(expected.get(part)):
            raise ValueError(f"its {part} is not that of its kind")
    backend = hf.Tokenizer.from_str(json.dumps(content))
    if not is_own:
        return backend
    vocabulary = backend.get_vocab(with_added_tokens=False)
    if sorted(vocabulary.values()) != list(range(len(vocabulary))):
        raise ValueError("its ids are not 0, 1, 2, ...")
    if [backend.id_to_token(token) for token in range(len(SPECIAL_TOKENS))] != list(SPECIAL_TOKENS):
        raise ValueError("its first ids are not those of the special tokens")
    return backend


def _settings(part: Any) -> Any:
    """Return a part without its learned entries."""
    return {name: value for name, value in part.items() if name not in LEARNED} if isinstance(part, dict) else part
