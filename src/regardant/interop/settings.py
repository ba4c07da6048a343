"""Settings of an exported model, which its sample reads: ids of special tokens, labels, the search."""

from typing import Any

from regardant.data.pretrained_tokenizers import PretrainedTokenizer
from regardant.data.tokenizers import Tokenizer
from regardant.data.vocabulary import EOS, MASK, NEVER_WRITTEN, PAD, SOS
from regardant.errors import RunError
from regardant.interop.given import Given
from regardant.interop.portable_tokenizers import portable

SETTINGS = "settings.json"

MOST_CONTINUED = 64
"""Maximum number of tokens that a language model's sample writes."""

SEARCH = ("beam_size", "length_penalty", "max_length_ratio", "max_length_extra")
"""Fields of the generation configuration that a translator's sample reads."""


def settings_of(given: Given) -> dict[str, Any]:
    """Return the settings of a run over texts. Raises RunError for other items, and a search that no sample does."""
    config, model = given.config, given.model
    if given.tokenizers is None:
        raise RunError(f"the items of this run of {config.task} are not texts: export runs over texts")
    own = given.tokenizers.target
    rows = file_ids(own)
    # A tokenizer without padding of its own (Marian's also starts targets) gets an id that it does not use.
    pad = rows[PAD] if rows[PAD] is not None else 1 + max(one for one in rows if one is not None)
    found: dict[str, Any] = {"task": config.task, "max_length": model.max_length(model.inputs[0]), "pad": pad}
    found["never"] = [rows[token] for token in NEVER_WRITTEN if rows[token] is not None]
    if hasattr(config, "generation"):
        found |= {"start": rows[SOS], "end": rows[EOS]}
    if config.task == "translation":
        if config.generation.no_repeat_ngram_size or config.generation.trees:
            raise RunError("sample.py cannot search with generation.no_repeat_ngram_size or trees: leave them out")
        return found | {name: getattr(config.generation, name) for name in SEARCH}
    if config.task == "language_modelling":
        if not config.generation.ends and rows[EOS] is not None:
            found["never"].append(rows[EOS])
        return found | {"max_tokens": continued(found["max_length"])}
    _, after = own.frame
    found |= {"labels": given.labels, "after": [rows[token] for token in after]}
    if config.task == "masked_language_modelling":
        found |= {"mask": own.pieces[MASK], "mask_id": rows[MASK], "encoded_after": _encoded_after(own)}
    if config.task == "tagging":
        space, before = own.between_words()
        found |= {"space": [rows[token] for token in space], "before": before, "after": []}
    return found


def continued(max_length: int) -> int:
    """Return the number of tokens that a sample writes, for a model with a context length of `max_length`."""
    return min(MOST_CONTINUED, max_length // 2)


def file_ids(tokenizer: Tokenizer) -> list[int | None]:
    """Return the id in a tokenizer's file for each of our ids, None where it has none."""
    if isinstance(tokenizer, PretrainedTokenizer):
        return tokenizer.rows
    return list(range(tokenizer.vocab_size))


def tokenizer_files(given: Given, names: tuple[str, str]) -> dict[str, str]:
    """Return the content of the tokenizer files of sources and targets, by name: one file if they share a tokenizer."""
    assert given.tokenizers is not None
    source, target = given.tokenizers.source, given.tokenizers.target
    task = given.config.task
    kept = {"ends": task == "translation", "continues": task == "language_modelling"}
    files = {names[0]: portable(source, **kept)}
    if target is not source:
        files[names[1]] = portable(target, **kept)
    return files


def _encoded_after(tokenizer: Tokenizer) -> str | None:
    """Return the text after which a sample encodes the part of a text after a blank, as `TextCodec.encode_with_blanks`
    does, so that the part starts with a space only where the text has one. None: the tokenizer reads masks itself."""
    if isinstance(tokenizer, PretrainedTokenizer):
        return None
    return "." if tokenizer.config.splits_words else ""  # kind whitespace, which splits no full stop, is not portable
