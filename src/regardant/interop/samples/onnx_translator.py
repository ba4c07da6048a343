"""Translate the lines of standard input with the ONNX graphs of this folder.

pip install numpy onnxruntime tokenizers
echo "a dog sleeps ." | python sample.py

Shape legend: B sentences, W beams, S source length, T target length, V vocabulary.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

BATCH = 32
"""Sentences of a batch."""


class Model:
    """A translator: two graphs, a tokenizer for each side and the settings of the search."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        self.source = Tokenizer.from_file(str(folder / "tokenizer.json"))
        own = folder / "target_tokenizer.json"
        self.target = Tokenizer.from_file(str(own)) if own.is_file() else self.source
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(str(folder / name), options) for name in ("encoder.onnx", "decoder.onnx")
        )

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Return the translation of each text."""
        sources = [self.ids(text) for text in texts]
        order = sorted((row for row in range(len(texts)) if texts[row].strip()), key=lambda row: -len(sources[row]))
        found = [""] * len(texts)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            for row, tokens in zip(rows, self.search([sources[row] for row in rows]), strict=True):
                found[row] = self.target.decode(tokens)
        return found

    def scores(self, texts: Sequence[str], references: Sequence[str]) -> list[Any]:
        """Return the log-probabilities [T] of the tokens of each reference, EOS included."""
        found = []
        for text, reference in zip(texts, references, strict=True):
            written = self.target.encode(reference).ids
            tokens = np.array([[self.settings["start"], *written[:-1]]])
            keys, values = self.nothing(1)
            logits, _, _ = self.step(tokens, keys, values, self.encode([self.ids(text)]))
            found.append(np.take_along_axis(log_softmax(logits[0]), np.array(written)[:, None], 1)[:, 0])
        return found

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a source, EOS included, cut to the model's length."""
        ids: list[int] = self.source.encode(text).ids
        longest = self.settings["max_length"]
        return ids if len(ids) <= longest else [*ids[: longest - 1], self.settings["end"]]

    def encode(self, sources: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return the decoder's inputs for a batch of sources: encoded keys and values, and the mask of real tokens."""
        tokens = np.full((len(sources), max(map(len, sources))), self.settings["pad"])
        for row, source in zip(tokens, sources, strict=True):
            row[: len(source)] = source
        memory = self.encoder.run(None, {"tokens": tokens})
        return dict(zip(("memory_keys", "memory_values", "real"), memory, strict=True))

    def nothing(self, rows: int) -> list[Any]:
        """Return an empty cache: keys and values of no tokens."""
        return [np.zeros((layers, rows, heads, 0, size), np.float32) for layers, heads, size in self.settings["cache"]]

    def step(self, tokens: Any, keys: Any, values: Any, memory: dict[str, Any]) -> list[Any]:
        """Return the logits of the token after each of `tokens`, and the keys and values of all tokens."""
        found: list[Any] = self.decoder.run(None, {"tokens": tokens, "keys": keys, "values": values, **memory})
        return found

    def search(self, sources: Sequence[Sequence[int]]) -> list[list[int]]:
        """Return the best target of each source, by beam search."""
        beams, penalty = self.settings["beam_size"], self.settings["length_penalty"]
        extra, longest = self.settings["max_length_extra"], self.settings["max_length"] - 1
        lengths = np.array([len(source) for source in sources])
        limits = np.minimum((lengths * self.settings["max_length_ratio"]).astype(int) + extra, longest)
        going, memory = np.arange(len(sources)), self.encode(sources)
        keys, values = self.nothing(len(sources))
        written, totals = np.full((len(sources), 1, 1), self.settings["start"]), np.zeros((len(sources), 1), np.float32)
        best: list[list[int]] = [[] for _ in sources]
        best_score, num_ended = np.full(len(sources), -np.inf), np.zeros(len(sources), int)
        while len(going):
            count, width, length = written.shape
            logits, keys, values = self.step(written[:, :, -1].reshape(-1, 1), keys, values, memory)
            following = log_softmax(logits[:, -1]).reshape(count, width, -1)
            following[:, :, self.settings["never"]] = -np.inf
            sums = (totals[:, :, None] + following).reshape(count, -1)
            places = np.argpartition(-sums, min(2 * beams, sums.shape[1] - 1), 1)[:, : 2 * beams]
            places = np.take_along_axis(places, np.argsort(-np.take_along_axis(sums, places, 1), 1, kind="stable"), 1)
            sums, parents = np.take_along_axis(sums, places, 1), places // following.shape[2]
            newest = places % following.shape[2]
            ends = newest == self.settings["end"]
            for row, rank in zip(*np.nonzero(ends[:, :beams]), strict=True):  # EOS at a lower rank ends no beam
                sentence, score = going[row], sums[row, rank] / length**penalty
                num_ended[sentence] += 1
                if score > best_score[sentence]:
                    best_score[sentence], best[sentence] = score, written[row, parents[row, rank], 1:].tolist()
            live = np.argsort(ends, 1, kind="stable")[:, :beams]
            totals, parents, newest = (np.take_along_axis(one, live, 1) for one in (sums, parents, newest))
            history = np.take_along_axis(written, parents[:, :, None], 1)
            written = np.concatenate([history, newest[:, :, None]], 2)
            present, reachable = totals[:, 0] / length**penalty, totals[:, 0] / limits[going] ** penalty
            score, full = best_score[going], num_ended[going] >= beams
            done = (full & (present <= score)) | (reachable <= score) | (length >= limits[going])
            for row in np.nonzero(done & np.isinf(score))[0]:  # nothing ended within the limit
                best[going[row]] = written[row, 0, 1:].tolist()
            rows = (np.arange(count)[:, None] * width + parents)[~done].ravel()
            keys, values = keys[:, rows], values[:, rows]
            memory = {name: one[~done] if name == "real" else one[:, ~done] for name, one in memory.items()}
            going, written, totals = going[~done], written[~done], totals[~done]
        return best


def log_softmax(logits: Any) -> Any:
    """Return log-probabilities over the last axis."""
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


if __name__ == "__main__":
    given = [line.decode().rstrip("\r\n") for line in sys.stdin.buffer]  # only a line feed ends a line
    for answer in Model(Path(__file__).parent).answers(given):
        print(re.sub(r"[\r\n]+", " ", answer))
