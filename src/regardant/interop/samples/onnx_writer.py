"""Continue the lines of standard input with the ONNX graph of this folder, by greedy decoding.

pip install numpy onnxruntime tokenizers
echo "once upon a time" | python sample.py

Shape legend: T tokens, V vocabulary.
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


class Model:
    """A language model: a graph and a tokenizer."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.graph = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Return a continuation of each text."""
        given = [self.tokenizer.encode(text).ids for text in texts]
        return [self.text_after(ids, [*ids, *self.continuation(ids)]) for ids in given]

    def text_after(self, given: list[int], whole: list[int]) -> str:
        """Return the text that tokens add to those given. Decoded alone, it could lose the space before it."""
        before, text, alone = (str(self.tokenizer.decode(ids)) for ids in (given, whole, whole[len(given) :]))
        # Bytes that are no character change how the bytes before them are decoded.
        return text[len(before) :] if text.startswith(before) else alone

    def scores(self, texts: Sequence[str], references: Sequence[str]) -> list[Any]:
        """Return the log-probabilities [T - 1] of the tokens of each text, given those before them."""
        found = []
        for text in texts:
            ids = np.array(self.tokenizer.encode(text).ids[: self.settings["max_length"]])
            known = log_softmax(self.step(ids[None], *self.nothing())[0][0])
            found.append(np.take_along_axis(known[:-1], ids[1:, None], 1)[:, 0])
        return found

    def continuation(self, ids: list[int]) -> list[int]:
        """Return the ids of a continuation of `ids`. The older half of a full context is dropped."""
        if not ids:  # an empty line has no continuation
            return []
        longest = self.settings["max_length"]
        written: list[int] = []
        seen = newest = ids[-longest:]
        keys, values = self.nothing()
        while len(written) < self.settings["max_tokens"]:
            if len(seen) > longest:
                seen = newest = seen[-(longest // 2) :]
                keys, values = self.nothing()
            logits, keys, values = self.step(np.array([newest]), keys, values)
            logits[0, -1, self.settings["never"]] = -np.inf
            token = int(logits[0, -1].argmax())
            if token == self.settings["end"]:
                break
            written.append(token)
            newest, seen = [token], [*seen, token]
        return written

    def nothing(self) -> list[Any]:
        """Return an empty cache: keys and values of no tokens."""
        return [np.zeros((layers, 1, heads, 0, size), np.float32) for layers, heads, size in self.settings["cache"]]

    def step(self, tokens: Any, keys: Any, values: Any) -> list[Any]:
        """Return the logits of the token after each of `tokens`, and the keys and values of all tokens."""
        found: list[Any] = self.graph.run(None, {"tokens": tokens, "keys": keys, "values": values})
        return found


def log_softmax(logits: Any) -> Any:
    """Return log-probabilities over the last axis."""
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


if __name__ == "__main__":
    given = [line.decode().rstrip("\r\n") for line in sys.stdin.buffer]  # only a line feed ends a line
    for answer in Model(Path(__file__).parent).answers(given):
        print(re.sub(r"[\r\n]+", " ", answer))
