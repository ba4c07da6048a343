"""Tokenizers of runs as files of the `tokenizers` library, which encodes and decodes with them by itself."""

import json
from typing import Any

from regardant.data.pretrained_tokenizers import PretrainedTokenizer
from regardant.data.tokenizer_config import PIECES
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import EOS, SPECIAL_TOKENS
from regardant.errors import RunError

KINDS = ("character", "word", "byte", *PIECES)
"""Kinds of our tokenizers that the library can compute by itself."""


def portable(tokenizer: Tokenizer, *, ends: bool = False, continues: bool = False) -> str:
    """Return the content of a tokenizer.json that encodes and decodes as `tokenizer` does.

    ends: append EOS to each text, and add no other token. continues: keep the space before the first word in decoding.
    Raises RunError for a tokenizer that the library cannot compute by itself.
    """
    require_portable(tokenizer)
    content: dict[str, Any] = json.loads(tokenizer.backend.to_str())
    if not isinstance(tokenizer, PretrainedTokenizer):
        content["decoder"] = decoder_of(tokenizer, continues=continues)
        content["post_processor"] = template_of(SPECIAL_TOKENS[EOS]) if ends else None
    elif ends and (end := tokenizer.rows[EOS]) is not None:
        # A run adds EOS alone. The tokenizer's own file may add none: those made from .spm files do not.
        content["post_processor"] = template_of(tokenizer.pieces[EOS], end)
    return json.dumps(content, ensure_ascii=False) + "\n"


def require_portable(tokenizer: Tokenizer) -> None:
    """Raise RunError for a tokenizer that the library cannot compute by itself."""
    if tokenizer.config.kind not in (*KINDS, "pretrained"):
        raise RunError(f"tokenizer.kind {tokenizer.config.kind}")


def decoder_of(tokenizer: Tokenizer, *, continues: bool = False) -> dict[str, Any]:
    """Return the decoder of a tokenizer.json, which joins pieces to a text as `Tokenizer.decode` does."""
    parts: list[dict[str, Any]] = [{"type": "ByteFallback"}, {"type": "Fuse"}]
    if tokenizer.config.splits_words and not continues:
        parts.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {"type": "Sequence", "decoders": parts}


def template_of(end: str, number: int = EOS) -> dict[str, Any]:
    """Return the post-processor of a tokenizer.json that appends EOS to a text: a piece `end` of the id `number`."""
    text: list[dict[str, Any]] = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": end, "type_id": 0}}]
    special = {end: {"id": end, "ids": [number], "tokens": [end]}}
    pair = [*text, {"Sequence": {"id": "B", "type_id": 0}}]
    return {"type": "TemplateProcessing", "single": text, "pair": pair, "special_tokens": special}
