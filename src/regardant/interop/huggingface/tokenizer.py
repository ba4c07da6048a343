"""Tokenizers of a folder: reading one with the ids of its special tokens, and writing the files of ours.

The folder's tokenizer differs from the run's by a table of five ids alone: `data.pretrained_tokenizers`.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tokenizers as hf

from regardant import config as configuration
from regardant.data.pretrained_tokenizers import PretrainedTokenizer
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import EOS, MASK, PAD, SOS, SPECIAL_TOKENS, UNK
from regardant.errors import DataError
from regardant.interop.huggingface.folder import (
    SPECIAL_TOKENS_MAP,
    TOKENIZER,
    TOKENIZER_CONFIG,
    read_json,
)
from regardant.interop.portable_tokenizers import decoder_of, require_portable, template_of

NAMES = {
    SOS: ("cls_token", "bos_token"),
    EOS: ("sep_token", "eos_token"),
    MASK: ("mask_token",),
    UNK: ("unk_token",),
    PAD: ("pad_token",),
}
"""Their names of our special tokens. One token with several of these names becomes the first of ours in ORDER."""

ORDER = (EOS, SOS, MASK, UNK, PAD)
"""Order in which special tokens are looked up: EOS first, since some vocabularies have one special token alone."""

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
"""Fields of an added token that is matched in a text exactly as it is spelt."""


def read_backend(folder: Path) -> hf.Tokenizer:
    """Return the tokenizer of a folder. Raises DataError if tokenizer.json is missing or damaged."""
    path = folder / TOKENIZER
    if not path.is_file():
        raise DataError(f"{folder} has no {TOKENIZER}: save it there with PreTrainedTokenizerFast.save_pretrained")
    try:
        return hf.Tokenizer.from_file(str(path))
    except Exception as error:  # the class that the library raises
        raise DataError(f"{path} holds no tokenizer ({error}): restore it") from error


def special_ids(
    folder: Path, config: Mapping[str, Any], backend: hf.Tokenizer, vocab_size: int
) -> tuple[int | None, ...]:
    """Return the ids of padding, start, end, unknown and mask; None for one that the vocabulary of `vocab_size` lacks.

    The start of an encoder-decoder is its decoder_start_token_id, even if that is another token's, as Marian's padding.
    """
    named = {**read_json(folder / SPECIAL_TOKENS_MAP), **read_json(folder / TOKENIZER_CONFIG)}
    found: dict[int, int] = {}
    start = _in_vocabulary(config.get("decoder_start_token_id"), vocab_size)
    if start is not None and config.get("is_encoder_decoder"):
        found[SOS] = start
    for ours in ORDER:
        for name in NAMES[ours]:
            theirs = _in_vocabulary(_id_of(name, named, config, backend), vocab_size)
            if ours not in found and theirs is not None and theirs not in found.values():
                found[ours] = theirs
    return tuple(found.get(ours) for ours in range(len(SPECIAL_TOKENS)))


def tokenizer_of(
    folder: Path, config: Mapping[str, Any], backend: hf.Tokenizer, *, vocab_size: int, joint: bool = True
) -> PretrainedTokenizer:
    """Return the tokenizer of a run whose model has `vocab_size` tokens. Raises DataError for an id beyond these."""
    if len(names := backend.get_vocab(with_added_tokens=True)) and (most := max(names.values())) >= vocab_size:
        raise DataError(f"config.json: vocab_size is {vocab_size}, and {TOKENIZER} has the id {most}: restore them")
    special = special_ids(folder, config, backend, vocab_size)
    given = {"kind": "pretrained", "vocab_size": vocab_size, "special": special, "joint": joint}
    return PretrainedTokenizer(configuration.load(TokenizerConfig, given, origin=str(folder)), backend)


def files_of(tokenizer: Tokenizer, *, max_length: int, writes: bool, ends: bool) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of each file that describes a tokenizer to transformers.

    max_length: maximum number of tokens that the model reads. ends: append EOS to each text. writes: the model writes
    texts. For one that does not, the tokens that the tokenizer puts around a text are cls_token and sep_token, too.

    Raises:
        RunError: a tokenizer that the library cannot compute by itself.
    """
    require_portable(tokenizer)
    content: dict[str, Any] = json.loads(tokenizer.backend.to_str())
    if not isinstance(tokenizer, PretrainedTokenizer):
        content["added_tokens"] = [{"id": n, "content": name, **FLAGS} for n, name in enumerate(SPECIAL_TOKENS)]
        content["decoder"] = decoder_of(tokenizer)
        content["post_processor"] = template_of(SPECIAL_TOKENS[EOS]) if ends else None
    around = () if writes else (*tokenizer.frame[0], *tokenizer.frame[1])
    special = tokenizer.config.special
    named = {
        name: tokenizer.pieces[ours]
        for ours, names in NAMES.items()
        if not special or special[ours] is not None
        for name in (names if ours in around else names[-1:])
    }
    described = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": max_length,
        **named,
    }
    yield TOKENIZER, json.dumps(content, ensure_ascii=False) + "\n"
    yield TOKENIZER_CONFIG, json.dumps(described, ensure_ascii=False, indent=1) + "\n"


def _id_of(name: str, named: Mapping[str, Any], config: Mapping[str, Any], backend: hf.Tokenizer) -> Any:
    given = named.get(name)
    content = given.get("content") if isinstance(given, Mapping) else given
    if isinstance(content, str) and (found := backend.token_to_id(content)) is not None:
        return found
    theirs = config.get(f"{name}_id")
    return theirs[0] if isinstance(theirs, list) and theirs else theirs


def _in_vocabulary(given: Any, vocab_size: int) -> int | None:
    """Return an id of the vocabulary, None for any other value: early Llama models have a pad_token_id of -1."""
    return given if isinstance(given, int) and 0 <= given < vocab_size else None
