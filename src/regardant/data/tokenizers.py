"""Text to ids and back without loss: nine kinds of vocabulary over the Hugging Face `tokenizers` library.

    character   every character is a token
    word        every word and every mark of punctuation
    whitespace  every run of characters between white space: in a tree, a bracket with its label
    byte        the 256 bytes of UTF-8; nothing to train
    bpe         the most frequent pairs merged again and again: Sennrich et al. 2016, https://arxiv.org/abs/1508.07909
    unigram     the likeliest pieces under a unigram model: Kudo 2018, https://arxiv.org/abs/1804.10959
    code        pieces as in bpe, for text whose white space has a meaning: every space, tab and line end is kept
    kmer        k letters of DNA: `kmers`
    pretrained  the tokenizer of an imported model, unchanged: `pretrained_tokenizers`

A piece carries the space before it (" sat"), so joining pieces gives the text back. `bpe`, `unigram` and `code` never
cross from a word into punctuation, and fall back to bytes for unseen characters.

Text cannot name a special token. Nothing is registered with the library as an added token, which the library would
look for in the text, and no piece can be spelt like a special token: "<" and "eos" are never in one piece, except in
kind whitespace, whose pieces begin with a space.
"""

import codecs
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import tokenizers as hf
from numpy.typing import NDArray
from tokenizers import models, normalizers, pre_tokenizers, trainers

from regardant.data.tokenizer_config import BYTES, PIECES, TokenizerConfig
from regardant.data.tokenizer_files import restored
from regardant.data.vocabulary import SPECIAL_TOKENS, UNK
from regardant.errors import ConfigError, DataError, first_line
from regardant.files import write_atomically

WORDS = r" ?\w+| ?[^\w\s]"
WHITESPACE = r" ?\S+"
CHARACTERS = r"[\s\S]"
CODE = r"\n[ \t]*| ?\w+| ?[^\w\s]+|[^\S\n]+(?!\S)|[^\S\n]+"  # a line end carries the indentation after it
PATTERNS = {"code": CODE, "whitespace": WHITESPACE, **dict.fromkeys(("word", "bpe", "unigram"), WORDS)}
EXACT = ("byte", "code")  # kinds that give back every character
UNKNOWN = {"word": " <unk>", "whitespace": " <unk>", "character": "\N{REPLACEMENT CHARACTER}"}
SIGNS = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "␍"})  # a line end in a name would break a table or a label


class Tokenizer:
    """Text to ids and back, for one language or several. Ids 0 to 4 are the special tokens of `vocabulary`."""

    has_words: ClassVar[bool] = True
    """True if tokens are parts of words."""

    frame: tuple[Sequence[int], Sequence[int]] = ((), ())
    """Ids before and after those of a text that is read whole, such as [CLS] and [SEP]."""

    own: ClassVar[dict[str, type["Tokenizer"]]] = {}
    """Classes by kind, for kinds with a class of their own. Importing a module registers its kind."""

    def __init_subclass__(cls, *, kind: str) -> None:
        Tokenizer.own[kind] = cls

    def __init__(self, config: TokenizerConfig, backend: hf.Tokenizer) -> None:
        self.config = config
        self.backend = backend
        self.hides_space = config.splits_words
        vocabulary = backend.get_vocab(with_added_tokens=False)
        self.vocab_size = len(vocabulary)
        self.pieces = sorted(vocabulary, key=vocabulary.__getitem__)
        """The vocabulary by id, each piece as the library spells it. No two are alike."""
        self._bytes = [piece.encode() for piece in self.pieces]
        self._bytes[: len(SPECIAL_TOKENS)] = [b""] * len(SPECIAL_TOKENS)
        self._bytes[UNK] = UNKNOWN.get(config.kind, "").encode()
        if config.kind in ("byte", *PIECES):
            first = len(SPECIAL_TOKENS)
            self._bytes[first : first + 256] = [bytes([byte]) for byte in range(256)]

    @classmethod
    def train(cls, config: TokenizerConfig, texts: Iterable[str], vocab_size: int) -> "Tokenizer":
        """Learn the vocabulary of `texts`; the same texts give the same vocabulary.

        `config.vocab_size` is binding, see there. If it is not set, `vocab_size` is the target, and the vocabulary
        is smaller if the texts support no more. Raises ConfigError if they do not support `config.vocab_size`.
        """
        if kind := cls.own.get(config.kind):
            return kind.train(config, texts, vocab_size)
        backend = _untrained(config)
        if config.kind != "byte":
            _learn(backend, config, texts, config.vocab_size or vocab_size)
        tokenizer = cls(config, hf.Tokenizer.from_str(json.dumps(_canonical(backend))))
        tokenizer._require_size()
        return tokenizer

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, without SOS and EOS."""
        return self.backend.encode(text).ids

    def locate(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text, and the (start, end) of each in the given text, in characters."""
        encoding = self.backend.encode(text)
        return encoding.ids, encoding.offsets

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of many texts, encoded on all cores."""
        return [encoding.ids for encoding in self.backend.encode_batch_fast(texts)]

    def encode_long(self, text: str) -> NDArray[np.integer]:
        """Return the ids of a text of any length: of kinds character and byte, a hundred times as fast as `encode`."""
        if self.config.kind not in ("character", "byte"):
            return np.array(self.encode(text), np.int64)
        text = _normalised(text, self.config, self.backend)
        if self.config.kind == "byte":
            return np.frombuffer(text.encode(), np.uint8).astype(np.int64) + len(SPECIAL_TOKENS)
        codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
        return self._id_of_code[np.minimum(codes, len(self._id_of_code) - 1)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of any ids. Special tokens are skipped, bytes that are no UTF-8 become �.

        UNK of the kinds in UNKNOWN is not skipped. `decode(encode(text)) == normalise(text)`, for every text.
        """
        text = b"".join(self._bytes[token] for token in ids).decode(errors="replace")
        return text.removeprefix(" ") if self.hides_space else text

    def decode_as_it_comes(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of ids in pieces, each as soon as its ids arrive. The joined pieces equal `decode(ids)`."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        hides_space = self.hides_space
        for raw in chain((self._bytes[token] for token in ids), [None]):
            if piece := decoder.decode(raw or b"", final=raw is None):
                shown = piece.removeprefix(" ") if hides_space else piece
                hides_space = False
                if shown:
                    yield shown

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Return each token as shown in figures: spaces as ▁, line feeds as ⏎, tabs as ⇥, carriage returns as ␍,
        bytes as their ASCII character or their number."""
        return [self._readable(token).translate(SIGNS) for token in ids]

    def between_words(self) -> tuple[list[int], str]:
        """Return the separators of words that are encoded one by one: tokens between two words, and the text to
        prepend to each word but the first."""
        return [] if self.config.splits_words else self.encode(" "), ""

    def spellings(self) -> list[bytes]:
        """Return the bytes of text that each token of the vocabulary stands for."""
        return list(self._bytes)

    def spans(self, ids: Iterable[int]) -> list[tuple[int, int]]:
        """Return the span of each token in `decode(ids)`. The spans join without gaps and cover the text.

        The space before a word belongs to the word's first token. Special tokens that `decode` skips have an empty
        span, and so have the bytes of a character before its last.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        parts = [decoder.decode(self._bytes[token]) for token in ids]
        if not parts:
            return []
        parts[-1] += decoder.decode(b"", final=True)
        hidden = int(self.hides_space and "".join(parts).startswith(" "))
        ends = accumulate((len(part) for part in parts), initial=0)
        return list(pairwise(max(end - hidden, 0) for end in ends))

    def normalise(self, text: str) -> str:
        """Return the text as restored from its ids; `normalisation` describes the changes in words."""
        text = self.backend.normalizer.normalize_str(text)
        if self.config.kind in UNKNOWN:
            pieces = [piece for piece, _ in self.backend.pre_tokenizer.pre_tokenize_str(text)]
            unknown = UNKNOWN[self.config.kind]
            text = "".join(unknown if self.backend.token_to_id(piece) is None else piece for piece in pieces)
        return text.removeprefix(" ") if self.hides_space else text

    def as_written(self, text: str) -> str:
        """Return a text as `decode` writes it, if only white space and the composition of characters differ.

        Any other text is returned unchanged: a difference in case or an unknown word is an error of a generated text.
        """
        written = self.normalise(text)
        return written if _letters(written) == _letters(text) else text

    @property
    def normalisation(self) -> str:
        """Human-readable description of `normalise`."""
        steps = ["lower-cased"] if self.config.lowercase else []
        if self.config.kind not in EXACT:
            steps += ["NFC"]
        if self.config.splits_words:
            steps += ["white space squeezed"]
        if self.config.kind in UNKNOWN:
            units = "characters" if self.config.kind == "character" else "words"
            steps += [f"unknown {units} become {UNKNOWN[self.config.kind].strip()}"]
        return ", ".join(steps) or "none"

    @cached_property
    def _id_of_code(self) -> NDArray[np.int64]:
        """Id of a character by its code point. The last entry stands for all code points that follow."""
        ids = {ord(piece): token for token, piece in enumerate(self.pieces) if len(piece) == 1}
        table = np.full(max(ids, default=0) + 2, UNK, np.int64)
        table[list(ids)] = list(ids.values())
        return table

    def _readable(self, token: int) -> str:
        raw = self._bytes[token]
        if token < len(SPECIAL_TOKENS) or len(raw) != 1:
            return self.pieces[token].replace(" ", "▁")
        return chr(raw[0]).replace(" ", "▁") if 32 <= raw[0] < 127 else self.pieces[token]

    def _require_size(self) -> None:
        asked, got, kind = self.config.vocab_size, self.vocab_size, self.config.kind
        if asked is None or asked == got or kind not in PIECES:
            return
        if asked > got:
            limit = f"at most {got}: set vocab_size to {got} or less"
        else:
            characters = sum(len(piece) == 1 for piece in self.pieces)
            # The unigram trainer prunes nothing unless it has one place to spare.
            least = len(SPECIAL_TOKENS) + len(BYTES) + characters + (kind == "unigram")
            limit = f"at least {least}, for its characters alone: set vocab_size to {least} or more"
        raise ConfigError(f"a {kind} vocab_size of {asked} does not fit this corpus, which gives {limit}")


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers of source and target; one and the same where the vocabulary is joint."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def train(cls, config: TokenizerConfig, sources: Iterable[str], targets: Iterable[str], vocab_size: int) -> Self:
        """Learn one vocabulary from both columns, or one from each. As `Tokenizer.train`."""
        if config.joint:
            tokenizer = Tokenizer.train(config, chain(sources, targets), vocab_size)
            return cls(tokenizer, tokenizer)
        return cls(*(Tokenizer.train(config, texts, vocab_size) for texts in (sources, targets)))

    def save(self, path: Path) -> None:
        """Write both tokenizers, with their configuration, to one JSON file."""
        content: dict[str, Any] = {"config": self.source.config.model_dump()}
        content["source"] = json.loads(self.source.backend.to_str())
        if self.target is not self.source:
            content["target"] = json.loads(self.target.backend.to_str())
        write_atomically(path, json.dumps(content, ensure_ascii=False, indent=1))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read tokenizers that `save` wrote; nothing in the file is executed. Raises DataError."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            config = TokenizerConfig(**content["config"])
            kind = Tokenizer.own.get(config.kind, Tokenizer)
            usual = None if config.kind in Tokenizer.own else _canonical(_untrained(config))
            is_own = config.kind != "pretrained"
            source = kind(config, restored(content["source"], usual, is_own=is_own))
            if config.joint:
                return cls(source, source)
            return cls(source, kind(config, restored(content["target"], usual, is_own=is_own)))
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}; give the tokenizer.json of a run") from None
        except Exception as error:  # all that the library raises for a damaged file
            why = f"{path} holds no tokenizer ({first_line(error)})"
            raise DataError(f"{why}: give the tokenizer.json of a run, unchanged") from error


def _untrained(config: TokenizerConfig) -> hf.Tokenizer:
    unknown = SPECIAL_TOKENS[UNK]
    model: models.Model
    match config.kind:
        case "word" | "whitespace" | "character":
            model = models.WordLevel(unk_token=unknown)
        case "byte":
            vocabulary = {piece: token for token, piece in enumerate([*SPECIAL_TOKENS, *BYTES])}
            model = models.BPE(vocabulary, [], unk_token=unknown, byte_fallback=True)
        case "bpe" | "code":
            model = models.BPE(unk_token=unknown, byte_fallback=True)
        case "unigram":
            model = models.Unigram()
    backend = hf.Tokenizer(model)
    # Composed last: the lower case of a sequence may compose where its upper case does not (H̱, ẖ).
    steps: list[normalizers.Normalizer] = [normalizers.Lowercase()] if config.lowercase else []
    if config.kind != "byte":
        pattern = PATTERNS.get(config.kind, CHARACTERS)
        backend.pre_tokenizer = pre_tokenizers.Split(hf.Regex(pattern), "isolated")
    if config.kind not in EXACT:
        steps += [normalizers.NFC()]
    if config.splits_words:
        # A space before the first word too, so that a word is one token wherever it stands.
        steps += [normalizers.Replace(hf.Regex(r"\s+"), " "), normalizers.Strip(), normalizers.Prepend(" ")]
    backend.normalizer = normalizers.Sequence(steps)
    return backend


def _learn(backend: hf.Tokenizer, config: TokenizerConfig, texts: Iterable[str], vocab_size: int) -> None:
    special = list(SPECIAL_TOKENS)
    trainer: trainers.Trainer
    match config.kind:
        case "bpe" | "code":
            # A piece seen once cannot be learnt from, so such pairs are not merged.
            trainer = trainers.BpeTrainer(
                vocab_size=vocab_size, min_frequency=2, special_tokens=special + BYTES, show_progress=False
            )
        case "unigram":
            trainer = trainers.UnigramTrainer(
                vocab_size=vocab_size,
                unk_token=SPECIAL_TOKENS[UNK],
                special_tokens=special + BYTES,
                show_progress=False,
            )
        case "character":
            backend.model = _frequent_characters((_normalised(text, config, backend) for text in texts), vocab_size)
            return
        case _:
            trainer = trainers.WordLevelTrainer(vocab_size=vocab_size, special_tokens=special, show_progress=False)
    try:
        backend.train_from_iterator(texts, trainer)
    except Exception as error:  # the library raises no narrower class; an error in `texts` is raised again
        if "not large enough to contain all chars" not in str(error):
            raise
        raise ConfigError(
            f"a {config.kind} vocab_size of {vocab_size} does not fit this corpus, which has more different "
            "characters: raise vocab_size"
        ) from None


def _frequent_characters(texts: Iterable[str], vocab_size: int) -> models.WordLevel:
    """Return the model that the library's trainer learns, which is slow: it splits texts by a regular expression."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    kept = sorted(counts, key=lambda character: (-counts[character], character))
    pieces = [*SPECIAL_TOKENS, *kept][:vocab_size]
    return models.WordLevel({piece: token for token, piece in enumerate(pieces)}, unk_token=SPECIAL_TOKENS[UNK])


def _normalised(text: str, config: TokenizerConfig, backend: hf.Tokenizer) -> str:
    if text.isascii() and not config.lowercase:  # its own normal form
        return text
    normalised: str = backend.normalizer.normalize_str(text)
    return normalised


def _letters(text: str) -> str:
    return "".join(unicodedata.normalize("NFC", text).split())


def _canonical(backend: hf.Tokenizer) -> dict[str, Any]:
    """Return the library's JSON without added tokens, made deterministic: equal texts give equal JSON."""
    content: dict[str, Any] = json.loads(backend.to_str())
    content["added_tokens"] = []
    model = content["model"]
    if model["type"] == "Unigram":
        model.update(unk_id=UNK, byte_fallback=True, vocab=_in_one_order(model["vocab"]))
    return content


def _in_one_order(vocabulary: list[tuple[str, float]]) -> list[tuple[str, float]]:
    # The trainer visits words in the random order of a hash table. That moves the last digits of every score, and
    # deals the scores of the rarest characters, 0.0001 apart from the lowest upwards, in another order each time.
    start = len(SPECIAL_TOKENS) + len(BYTES)
    learnt = vocabulary[start:]
    lowest = min((score for _, score in learnt), default=0.0)
    dealt = lowest + 0.0001 * sum(len(piece) == 1 for piece, _ in learnt)
    rounded = [(piece, round(lowest if len(piece) == 1 and score < dealt else score, 6)) for piece, score in learnt]
    return vocabulary[:start] + sorted(rounded, key=lambda entry: (-entry[1], entry[0]))
