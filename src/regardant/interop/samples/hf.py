"""Answer the lines of standard input with the model of this folder and transformers.

pip install torch transformers
echo "a fine film" | python sample.py

Shape legend: T tokens, C classes or words of a vocabulary.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers

CLASSES = {
    "classification": transformers.AutoModelForSequenceClassification,
    "masked_language_modelling": transformers.AutoModelForMaskedLM,
    "language_modelling": transformers.AutoModelForCausalLM,
    "translation": transformers.AutoModelForSeq2SeqLM,
    "sentence_embedding": transformers.AutoModel,
}


class Model:
    """A model of transformers and its tokenizer."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.settings = json.loads((folder / "settings.json").read_text(encoding="utf-8"))
        self.task = self.settings["task"]
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = CLASSES[self.task].from_pretrained(folder).eval()

    @torch.inference_mode()
    def answers(self, texts: Sequence[str]) -> list[str]:
        """Return the answer to each text: a label, words for blanks, a continuation, a translation, or a vector.

        A blank text has an empty answer, unless a language model continues it.
        """
        if self.task == "language_modelling":
            return [self.continuation(text) for text in texts]
        own = self.translation if self.task == "translation" else self.answer
        return [own(text) if text.strip() else "" for text in texts]

    @torch.inference_mode()
    def scores(self, texts: Sequence[str], references: Sequence[str] = ()) -> list[Any]:
        """Return an array for each text: logits [C], or [T, C] for each token; a vector; or the log-probabilities of
        the tokens of its reference (translation) or of the text itself (language modelling)."""
        if self.task == "translation":
            return [self.of_pair(*pair) for pair in zip(texts, references, strict=True)]
        return [self.of_text(text) for text in texts]

    def of_pair(self, text: str, reference: str) -> Any:
        """Return the log-probabilities [T] of the tokens of a reference, EOS included."""
        target = self.tokenizer(text_target=reference, return_tensors="pt")["input_ids"]
        start = torch.tensor([[self.model.config.decoder_start_token_id]])
        read = torch.cat([start, target[:, :-1]], 1)
        logits = self.model(**self.read(text), decoder_input_ids=read).logits
        return logits.log_softmax(-1)[0].gather(1, target[0, :, None])[:, 0].numpy()

    def of_text(self, text: str) -> Any:
        """Return the array of `scores` for a text."""
        read = self.read(text)
        if self.task == "sentence_embedding":
            vectors, real = self.model(**read).last_hidden_state, read["attention_mask"][..., None]
            return torch.nn.functional.normalize((vectors * real).sum(1) / real.sum(1), dim=-1)[0].numpy()
        logits = self.model(**read).logits[0]
        if self.task != "language_modelling":
            return logits.numpy()
        known, ids = logits.log_softmax(-1), read["input_ids"][0]
        return known[:-1].gather(1, ids[1:, None])[:, 0].numpy()

    def read(self, text: str) -> Any:
        """Return the token ids of a text, cut to the model's length, and their mask."""
        longest = self.settings["max_length"]
        if self.task == "masked_language_modelling":
            if self.settings["encoded_after"] is not None:
                ids = torch.tensor([self.with_blanks(text)[:longest]])
                return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            text = text.replace("[MASK]", self.settings["mask"])
        read = self.tokenizer(text, return_tensors="pt", truncation=True, max_length=longest)
        return {name: read[name] for name in ("input_ids", "attention_mask")}

    def with_blanks(self, text: str) -> list[int]:
        """Return the token ids of a text, with that of the mask in place of each [MASK]."""
        first, *others = text.split("[MASK]")
        after, ids = self.settings["encoded_after"], list(self.tokenizer.encode(first, add_special_tokens=False))
        skipped = len(self.tokenizer.encode(after, add_special_tokens=False))
        for part in others:  # encoded after a full stop, so that it starts with a space only where the text has one
            found = self.tokenizer.encode(after + part, add_special_tokens=False)
            ids += [self.tokenizer.mask_token_id, *found[skipped:]]
        return ids

    def translation(self, text: str) -> str:
        """Return a translation, by the search of generation_config.json, with a limit on its length by the source."""
        read = self.read(text)
        length = read["input_ids"].shape[1]
        limit = int(length * self.settings["max_length_ratio"]) + self.settings["max_length_extra"]
        written = self.model.generate(**read, max_length=min(limit + 1, self.settings["max_length"]))
        return str(self.tokenizer.decode(written[0], skip_special_tokens=True))

    def continuation(self, text: str) -> str:
        """Return a continuation by greedy decoding; empty for a text without tokens, or one that fills the context."""
        read = self.read(text)
        length = read["input_ids"].shape[1]
        count = min(self.settings["max_tokens"], self.settings["max_length"] - length)
        if not length or count < 1:
            return ""
        written = self.model.generate(**read, do_sample=False, max_new_tokens=count)[0].tolist()
        return self.text_after(written[:length], written)

    def text_after(self, given: list[int], whole: list[int]) -> str:
        """Return the text that tokens add to those given. Decoded alone, it could lose the space before it."""
        before, text, alone = (
            str(self.tokenizer.decode(ids, skip_special_tokens=True)) for ids in (given, whole, whole[len(given) :])
        )
        # Bytes that are no character change how the bytes before them are decoded.
        return text[len(before) :] if text.startswith(before) else alone

    def answer(self, text: str) -> str:
        """Return the answer to a text, from its scores."""
        scores = self.of_text(text)
        if self.task == "classification":
            return str(self.model.config.id2label[int(scores.argmax())])
        if self.task == "sentence_embedding":
            return " ".join(f"{number:.6g}" for number in scores.tolist())
        ids = self.read(text)["input_ids"][0]
        scores[:, self.settings["never"]] = -float("inf")
        blanks = (ids == self.tokenizer.mask_token_id).numpy()  # NumPy would take a tensor of one number as an index
        for token in scores[blanks].argmax(-1).tolist():
            text = text.replace("[MASK]", self.tokenizer.decode([token]), 1)
        return text


if __name__ == "__main__":
    given = [line.decode().rstrip("\r\n") for line in sys.stdin.buffer]  # only a line feed ends a line
    for answer in Model(Path(__file__).parent).answers(given):
        print(re.sub(r"[\r\n]+", " ", answer))
