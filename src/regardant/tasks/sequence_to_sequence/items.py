"""Items with a text each: read once, encoded, and kept in the run folder.

RUN/data/tokens/NAME           encoded pairs of a split
RUN/data/NAME.pairs.jsonl      the names of their sources, and their targets
RUN/target_tokenizer.json      the tokenizer of the targets
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regardant.data.batching import EncodedPairs, id_dtype
from regardant.data.item_files import ItemFile, shown_name
from regardant.data.tokenizers import Tokenizer, Tokenizers
from regardant.errors import RunError
from regardant.files import write_atomically
from regardant.modalities import Codec
from regardant.tasks.base import Log
from regardant.tasks.sequence_to_sequence.config import SequenceToSequenceTaskConfig
from regardant.tasks.sequence_to_sequence.corpus import Corpus
from regardant.tasks.sequence_to_sequence.prepare import count_words, vocab_size_for
from regardant.tasks.take_over import copy_files, run_of_vocabulary

MARKER = "splits.json"
"""Name of the file that is written last: a folder that has it is complete."""

TARGET_TOKENIZER = "target_tokenizer.json"


def read_items(config: SequenceToSequenceTaskConfig, run: Path, log: Log) -> Corpus:
    """Read and encode items into RUN/data, or open those that an earlier start left there."""
    folder = run / "data"
    if not (folder / MARKER).is_file():
        _keep(config, run, log)
    codec, tokenizer = config.input.load(run), load_target_tokenizer(run)
    sources, references = read_texts(folder, "validation")
    splits = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    return Corpus(
        codec,
        tokenizer,
        load_pairs(folder, "train", codec),
        load_pairs(folder, "validation", codec),
        sources,
        references,
        {name: count for name, count in splits["pairs"].items() if name not in ("train", "validation")},
        splits["fingerprints"],
    )


def with_chosen_data(config: SequenceToSequenceTaskConfig, run: Path, log: Log) -> SequenceToSequenceTaskConfig:
    """Return the configuration with the unset fields of `data` chosen from the data, unless RUN/data is complete.

    Raises DataError.
    """
    if (run / "data" / MARKER).is_file():
        return config
    return config.model_copy(update={"data": config.data.chosen(log)})


def load_target_tokenizer(run: Path) -> Tokenizer:
    """Return the tokenizer of a run's targets. Raises DataError."""
    return Tokenizers.load(run / TARGET_TOKENIZER).target


def load_pairs(folder: Path, name: str, codec: Codec) -> EncodedPairs:
    """Return the encoded pairs of a split. Raises DataError."""
    return EncodedPairs.load(codec, folder / "tokens" / name)


def read_texts(folder: Path, name: str) -> tuple[list[str], list[str]]:
    """Return the names of a split's sources, and its targets. Raises RunError for a damaged folder."""
    path = folder / f"{name}.pairs.jsonl"
    try:
        # A line ends at a line feed and nowhere else: a text may hold U+2028.
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        return [one["source"] for one in lines], [one["target"] for one in lines]
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{path} is damaged ({error}): train into another folder") from error


def name_of(item: Any, number: int) -> str:
    """Return the name of an item for people: a text itself, the path of a file, or its number."""
    if isinstance(item, str):
        return item
    return shown_name(item) if isinstance(item, ItemFile) else f"item {number}"


def _keep(config: SequenceToSequenceTaskConfig, run: Path, log: Log) -> None:
    sets, folder = config.data.read(config.seed), run / "data"
    folder.mkdir(parents=True, exist_ok=True)
    earlier = run_of_vocabulary(config.training)
    if earlier is not None:
        log(f"vocabulary taken over from {earlier}")
        copy_files([*config.input.files, TARGET_TOKENIZER], earlier, run)
    else:
        config.input.fit([item for item, _ in sets["train"]]).save(run)
        texts = [text for _, text in sets["train"]]
        asked = config.tokenizer.vocab_size or vocab_size_for(count_words(texts))
        tokenizer = Tokenizer.train(config.tokenizer, texts, asked)
        Tokenizers(tokenizer, tokenizer).save(run / TARGET_TOKENIZER)
    codec, tokenizer = config.input.load(run), load_target_tokenizer(run)
    log(codec.describe())
    fingerprints = {name: _keep_split(folder, name, items, codec, tokenizer) for name, items in sets.items()}
    counts = {name: len(items) for name, items in sets.items()}
    write_atomically(folder / MARKER, json.dumps({"pairs": counts, "fingerprints": fingerprints}, indent=1) + "\n")


def _keep_split(folder: Path, name: str, pairs: Sequence[tuple[Any, str]], codec: Codec, tokenizer: Tokenizer) -> str:
    """Write a split; return its fingerprint."""
    sources = codec.encode([item for item, _ in pairs])
    dtype = id_dtype(tokenizer.vocab_size)
    targets = [np.array(ids, dtype) for ids in tokenizer.encode_batch([text for _, text in pairs])]
    EncodedPairs.build(codec, [(sources, targets)], folder / "tokens" / name)
    digest, lines = hashlib.sha256(), []
    for number, ((item, text), source) in enumerate(zip(pairs, sources, strict=True), 1):
        digest.update(np.ascontiguousarray(source).tobytes())
        digest.update(text.encode())
        lines.append(json.dumps({"source": name_of(item, number), "target": text}, ensure_ascii=False) + "\n")
    write_atomically(folder / f"{name}.pairs.jsonl", "".join(lines))
    return digest.hexdigest()
