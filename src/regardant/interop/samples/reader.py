"""Answer the lines of standard input with the graph of this folder: model.onnx, or model.pt2 of torch.export.

pip install numpy tokenizers, and onnxruntime or torch
echo "a fine film" | python sample.py

Shape legend: T tokens, C classes or words of a vocabulary.
"""

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer


class Model:
    """A model that reads a text in one pass: a graph, a tokenizer and settings such as the labels."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.graph = open_onnx(folder, threads) if (folder / "model.onnx").is_file() else open_program(folder)

    def answers(self, texts: Sequence[str]) -> list[str]:
        """Return the answer to each text: a label, a label for each word, words for blanks, or a vector.

        A blank text has an empty answer, and so has a text without tokens.
        """
        return [self.answer(text, *self.scores([text])) if text.strip() and self.ids(text) else "" for text in texts]

    def scores(self, texts: Sequence[str], references: Sequence[str] = ()) -> list[Any]:
        """Return the scores of each text: [C], or [T, C] for each token."""
        return [self.graph(np.array([self.ids(text)]))[0] for text in texts]

    def ids(self, text: str) -> list[int]:
        """Return the token ids of a text, cut to the model's length."""
        if self.settings["task"] == "tagging":
            ids = [token for token, _ in self.words(text)]
        elif self.settings["task"] == "masked_language_modelling":
            ids = self.with_blanks(text)
        else:
            ids = self.tokenizer.encode(text).ids
        longest, after = self.settings["max_length"], self.settings["after"]
        return ids if len(ids) <= longest else [*ids[: longest - len(after)], *after]

    def with_blanks(self, text: str) -> list[int]:
        """Return the token ids of a text, with that of the mask in place of each [MASK]."""
        after, mask = self.settings["encoded_after"], self.settings["mask_id"]
        if after is None:  # the tokenizer reads a mask in a text
            return list(self.tokenizer.encode(text.replace("[MASK]", self.settings["mask"])).ids)
        first, *others = text.split("[MASK]")
        ids, skipped = list(self.tokenizer.encode(first).ids), len(self.tokenizer.encode(after).ids)
        for part in others:  # encoded after a full stop, so that it starts with a space only where the text has one
            ids += [mask, *self.tokenizer.encode(after + part).ids[skipped:]]
        return ids

    def words(self, text: str) -> list[tuple[int, bool]]:
        """Return the token ids of a text, tokenised word by word, each with True if it begins a word."""
        found: list[tuple[int, bool]] = []
        for word in text.split():
            before, space = (self.settings["before"], self.settings["space"]) if found else ("", [])
            ids = self.tokenizer.encode(before + word, add_special_tokens=False).ids
            found += [(token, False) for token in space]
            found += [(token, place == 0) for place, token in enumerate(ids)]
        return found

    def answer(self, text: str, scores: Any) -> str:
        """Return the answer to a text, from its scores."""
        task, labels = self.settings["task"], self.settings["labels"]
        if task == "classification":
            return str(labels[int(scores.argmax())])
        if task == "tagging":
            first = [place for place, (_, begins) in enumerate(self.words(text)) if begins and place < len(scores)]
            return " ".join(labels[int(scores[place].argmax())] for place in first)
        if task == "masked_language_modelling":
            blanks = np.array(self.ids(text)) == self.settings["mask_id"]
            scores[:, self.settings["never"]] = -np.inf
            for token in scores[blanks].argmax(-1).tolist():
                text = text.replace("[MASK]", self.tokenizer.decode([token]), 1)
            return text
        return " ".join(f"{number:.6g}" for number in scores.tolist())


def open_onnx(folder: Path, threads: int) -> Callable[[Any], Any]:
    """Return the function that an ONNX graph computes."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)
    return lambda tokens: session.run(None, {"tokens": tokens})[0]


def open_program(folder: Path) -> Callable[[Any], Any]:
    """Return the function that a program of torch.export computes."""
    import torch

    program = torch.export.load(folder / "model.pt2").module()
    return lambda tokens: program(torch.from_numpy(tokens)).detach().numpy()


if __name__ == "__main__":
    given = [line.decode().rstrip("\r\n") for line in sys.stdin.buffer]  # only a line feed ends a line
    for answer in Model(Path(__file__).parent).answers(given):
        print(re.sub(r"[\r\n]+", " ", answer))
