"""The tokenizers of Marian's folders: source.spm, target.spm and the ids of their pieces in vocab.json.

Kudo and Richardson 2018, "SentencePiece", https://arxiv.org/abs/1808.06226. A .spm file is a protocol buffer
(sentencepiece_model.proto), of which pieces, scores, the kind of model and the table of normalised characters are read.
"""

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tokenizers as hf
from tokenizers import decoders, models, normalizers, pre_tokenizers

from regardant.errors import DataError

SOURCE, TARGET, VOCABULARY = "source.spm", "target.spm", "vocab.json"

PIECE, TRAINER, NORMALISER = 1, 2, 3
"""Field numbers of a ModelProto."""

UNIGRAM = 1
"""Number of the unigram model in TrainerSpec.ModelType."""

VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5
"""Wire types of protocol buffers."""

OF_THE_OTHER_SIDE = -1e4
"""Score of a piece that only the other language has: it is chosen where no other piece spells a character."""

LANGUAGE = re.compile(r">>.+<<")
"""Pattern of a piece that names the target language."""


@dataclass(frozen=True)
class Model:
    """Contents of a .spm file that are used."""

    scores: dict[str, float]
    """Scores by piece."""
    characters: bytes
    """Compiled table of the normaliser (precompiled_charsmap). Empty: there is none."""


def has_sentence_pieces(folder: Path) -> bool:
    """Return whether a folder has the files of Marian's tokenizers."""
    return all((folder / name).is_file() for name in (SOURCE, TARGET, VOCABULARY))


def read_backends(folder: Path) -> tuple[hf.Tokenizer, hf.Tokenizer]:
    """Return the tokenizers of source and target, which share their ids. Raises DataError for a damaged file."""
    try:
        ids: dict[str, int] = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
        pieces = sorted(ids, key=ids.__getitem__)
        if [ids[piece] for piece in pieces] != list(range(len(pieces))):
            raise ValueError("ids have gaps")
    except (OSError, ValueError, AttributeError, LookupError, TypeError) as error:
        raise DataError(f"{folder / VOCABULARY} is not a vocabulary ({error}): restore it") from error
    source, target = (_backend(read_model(folder / name), pieces) for name in (SOURCE, TARGET))
    return source, target


def read_model(path: Path) -> Model:
    """Return the used contents of a .spm file. Raises DataError for a damaged file, and a model that is not unigram."""
    scores: dict[str, float] = {}
    characters, kind = b"", UNIGRAM
    try:
        for field, value in _fields(path.read_bytes()):
            if field == PIECE and isinstance(value, bytes):
                parts = dict(_fields(value))
                piece, score = parts[1], parts.get(2, bytes(4))
                assert isinstance(piece, bytes) and isinstance(score, bytes)
                scores[piece.decode()] = struct.unpack("<f", score)[0]
            elif field == TRAINER and isinstance(value, bytes):
                kind = next((int(number) for name, number in _fields(value) if name == 3), UNIGRAM)
            elif field == NORMALISER and isinstance(value, bytes):
                characters = next((bytes(table) for name, table in _fields(value) if name == 2), b"")
    except (OSError, ValueError, KeyError, IndexError, AssertionError, struct.error, TypeError) as error:
        raise DataError(f"{path} is not a SentencePiece model ({error}): restore it") from error
    if kind != UNIGRAM or not scores:
        raise DataError(f"{path} is a SentencePiece model of type {kind}, and only unigram models can be imported")
    return Model(scores, characters)


def _backend(model: Model, pieces: list[str]) -> hf.Tokenizer:
    """Return a tokenizer of the `tokenizers` library that finds the same pieces, with their indices as ids."""
    vocabulary = [(piece, model.scores.get(piece, OF_THE_OTHER_SIDE)) for piece in pieces]
    backend = hf.Tokenizer(models.Unigram(vocabulary, unk_id=pieces.index("<unk>")))
    steps: list[normalizers.Normalizer] = [normalizers.Precompiled(model.characters)] if model.characters else []
    backend.normalizer = normalizers.Sequence(
        [*steps, normalizers.Strip(), normalizers.Replace(hf.Regex(" {2,}"), " ")]
    )
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.add_special_tokens([name for name in ("</s>", "<unk>", "<pad>") if name in pieces])
    backend.add_tokens([hf.AddedToken(one, rstrip=True, normalized=False) for one in pieces if LANGUAGE.fullmatch(one)])
    return backend


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field of a message: a varint as an int, any other type as its bytes."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        field, kind = key >> 3, key & 7
        if kind == VARINT:
            value, at = _varint(content, at)
            yield field, value
            continue
        if kind == BYTES:
            length, at = _varint(content, at)
        else:
            length = {FOUR_BYTES: 4, EIGHT_BYTES: 8}[kind]
        if at + length > len(content):
            raise ValueError("it ends within a field")
        yield field, content[at : at + length]
        at += length


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the varint at offset `at`, and the offset after it."""
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
