"""Translate the lines of standard input with CTranslate2 and the tokenizers of this folder.

pip install ctranslate2 tokenizers
echo "a dog sleeps ." | python sample.py
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
from tokenizers import Tokenizer


class Model:
    """A translator, a tokenizer for each side and the settings of the search."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        self.source = Tokenizer.from_file(str(folder / "source_tokenizer.json"))
        own = folder / "target_tokenizer.json"
        self.target = Tokenizer.from_file(str(own)) if own.is_file() else self.source
        self.known = self.target.get_vocab()
        self.engine = ctranslate2.Translator(str(folder), inter_threads=max(1, threads), intra_threads=1)

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Return the translation of each text."""
        found = [""] * len(texts)
        rows = [row for row, text in enumerate(texts) if text.strip()]
        beams = self.settings["beam_size"]
        results = self.engine.translate_batch(
            [self.pieces(texts[row]) for row in rows],
            beam_size=beams,
            # The engine is done when as many hypotheses have ended as there are beams, long before a likely one might.
            patience=2 if beams > 1 else 1,
            length_penalty=self.settings["length_penalty"],
            max_decoding_length=max((self.limit(texts[row]) for row in rows), default=1),
            min_decoding_length=0,
            max_input_length=0,
            suppress_sequences=[[token] for token in self.settings["never"]],
            max_batch_size=1024,
            batch_type="tokens",
        )
        for row, result in zip(rows, results, strict=True):
            found[row] = self.target.decode([self.known[piece] for piece in result.hypotheses[0]])
        return found

    def scores(self, texts: Sequence[str], references: Sequence[str]) -> list[Any]:
        """Return the log-probabilities [T] of the tokens of each reference, its end included."""
        targets = [self.target.encode(reference).tokens[:-1] for reference in references]
        results = self.engine.score_batch([self.pieces(text) for text in texts], targets, max_input_length=0)
        return [np.array(result.log_probs) for result in results]

    def pieces(self, text: str) -> list[str]:
        """Return the tokens of a source without its end, which the engine adds. A longer text is cut."""
        pieces: list[str] = self.source.encode(text).tokens[:-1]
        return pieces[: self.settings["max_length"] - 1]

    def limit(self, text: str) -> int:
        """Return the most tokens of a translation."""
        length = len(self.pieces(text)) + 1
        limit = int(length * self.settings["max_length_ratio"]) + self.settings["max_length_extra"]
        return int(min(limit, self.settings["max_length"] - 1))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in Model(Path(__file__).parent).answers(sys.stdin.read().splitlines()))
