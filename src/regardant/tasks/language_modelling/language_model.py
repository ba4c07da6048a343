"""A trained language model, which continues a text or scores it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regardant.config.run_files import EVALUATION, TOKENIZER, WEIGHTS
from regardant.data.text import MARKER, EncodedText, Tokens
from regardant.data.text_files import read_text
from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import UNK
from regardant.data.windows import consecutive_windows
from regardant.errors import DataError, RunError
from regardant.evaluation.language import TextScore, characters_of_first, score_text
from regardant.files import write_atomically
from regardant.generation.sampling import sample
from regardant.inspection import patch_positions
from regardant.inspection.lens import residual_stack
from regardant.interop.parity import TestTexts
from regardant.interop.settings import continued
from regardant.layers.linear import Layouts
from regardant.modalities.text import word_units
from regardant.models import CausalModel
from regardant.tasks.arguments import OWN_SETS, refuse_options, require_new_names
from regardant.tasks.base import Example, Prediction, Trained
from regardant.tasks.exchange import Exchange, perplexity
from regardant.tasks.inspection import Elements, Inspection, format_shares, likeliest, look, shown_inputs
from regardant.tasks.language_modelling.config import LanguageModellingConfig
from regardant.tasks.language_modelling.measures import measure
from regardant.tasks.language_modelling.prepare import build_model
from regardant.tasks.language_modelling.tracing import Trace
from regardant.tasks.measures import Measures, require_one_file
from regardant.tasks.probe import PROBE_ELEMENTS, PROBE_ROWS, Probe
from regardant.training.checkpoints import load_into

EXAMPLE_TOKENS = 4096
"""Number of validation tokens searched for examples."""

PIECE, PIECES = 64, 50
"""Maximum number of tokens of a piece of test text that an export continues too, and of pieces."""


class LanguageModel(Trained):
    """A model with its tokenizer and the folder it was trained in."""

    model: CausalModel

    def __init__(self, config: LanguageModellingConfig, folder: Path, device: torch.device) -> None:
        self.config, self.folder, self.device = config, folder, device
        self.tokenizer = Tokenizers.load(folder / TOKENIZER).target
        self.tokenizer.hides_space = False  # a continuation begins with the space before its first word
        model = build_model(config, self.tokenizer)
        load_into(model, folder / WEIGHTS)
        self.model = model.eval().to(device)
        self.layouts = Layouts()

    def generate(self, prompt: str, *, samples: int = 1, seed: int = 0, **generation: Any) -> list[str]:
        """Return texts that continue the prompt, without it. `generation` has fields of SamplingConfig."""
        rows = torch.stack(list(self._tokens(prompt, range(samples), seed, generation)), 1)
        return [self.tokenizer.decode(row) for row in rows.tolist()]

    def predict(self, items: Sequence[str], **options: Any) -> list[Prediction]:
        """Return a continuation of each text."""
        written = [self.generate(text, **options) for text in items]
        return [
            Prediction(text, samples[0], {"samples": samples}) for text, samples in zip(items, written, strict=True)
        ]

    def inspect(self, item: str, **options: Any) -> Inspection:
        """Return the inspection of a text. Raises DataError, ConfigError for any option."""
        refuse_options("a language model is inspected", options)
        ids = self._ids(item)
        batch = {"text": ids[None].to(self.device)}
        records, logits = look(self.model, batch)
        labels, next_tokens = self.tokenizer.tokens(ids.tolist()), likeliest(logits.cpu(), self.tokenizer)
        best = [(repr(token), share) for token, share in next_tokens[-1]]
        before = labels[: self._num_before]
        words = Elements(labels[len(before) :], word_units(self.tokenizer, item, labels[len(before) :]))
        return Inspection(
            item=item,
            answer=f"likeliest next: {format_shares(best[:1])}",
            note=f"Likeliest next tokens: {format_shares(best)}.",
            **shown_inputs(self.model, batch, {"text": words.after(before)}),
            records=records,
            shares=best,
            details={"next_tokens": next_tokens},
        )

    def trace(self, clean: str, corrupted: str) -> Trace:
        """Return which vectors of a clean text restore its likeliest next token in a corrupted text of equal length.

        Raises DataError for texts that cannot be compared, RunError for a model without a residual stream.
        """
        texts = [self._ids(text) for text in (clean, corrupted)]
        try:
            residual_stack(self.model)
        except ValueError as error:
            raise RunError(f"{error}, whose vectors could be patched: trace a Transformer") from error
        try:
            found = patch_positions(self.model, *(ids.to(self.device) for ids in texts))
        except ValueError as error:
            raise DataError(str(error)) from error
        of_clean, of_corrupted = (self.tokenizer.tokens(ids.tolist()) for ids in texts)
        return Trace(of_clean, of_corrupted, self.tokenizer.tokens([found.answer])[0], found)

    def stream(self, prompt: str, *, sample: int = 0, seed: int = 0, **generation: Any) -> Iterator[str]:
        """Yield the prompt and a sample of its continuation, piece by piece as it is drawn."""
        tokens = self._tokens(prompt, [sample], seed, generation)
        yield prompt
        yield from self.tokenizer.decode_as_it_comes(int(token) for token in tokens)

    def probe(self) -> Probe:
        """Return windows of the validation text."""
        tokens, context = self._validation(), self.config.model.max_length
        rows = max(4, min(PROBE_ROWS, PROBE_ELEMENTS // context))
        windows = next(consecutive_windows(tokens, context, rows * context)).tokens.to(self.device)
        labels = [self.tokenizer.tokens(row) for row in windows[:, :-1].tolist()]
        return Probe({"text": windows[:, :-1]}, windows[:, 1:], {"text": labels})

    def examples(self, count: int, folder: Path) -> list[Example]:
        """Return the first lines of the validation text, cut to the tokens that the model reads."""
        text = self.tokenizer.decode(self._validation()[:EXAMPLE_TOKENS].tolist())
        lines = [self._framed(self.tokenizer.encode_long(line)) for line in text.splitlines() if line.strip()]
        return [Example(self.tokenizer.decode(ids[: self.config.model.max_length].tolist())) for ids in lines[:count]]

    def score(self, text: str) -> TextScore:
        """Return the score of a text, given its first token: the special token before it, if the tokenizer puts one
        there.

        Raises DataError for a text of fewer than two tokens, special ones included, or without a character after the
        first token.
        """
        tokens = self._framed(self.tokenizer.encode_long(text))
        if len(tokens) < 2:
            raise DataError(f"a text of {len(tokens)} tokens cannot be scored: give two at least")
        return self._score(tokens, len(text))

    def measure(self, data: Sequence[Path] = (), treebank: Path | None = None) -> Measures:
        """Measure attention over the first windows of the validation text, or of the text in a file.

        Results are kept in RUN/measures.
        """
        require_one_file(data, treebank)
        name, tokens = (data[0].name, self._read(data[0])[0]) if data else ("validation", self._validation())
        found = measure(self.model, self.tokenizer, name, tokens, self.device)
        found.save(self.folder / "measures")
        return found

    def exchange(self, data: Sequence[Path] = ()) -> Exchange | None:
        """Return pieces of the run's test text, or of a file, with the run's continuations."""
        if not data and not (self.folder / "data" / MARKER).is_file():
            return None
        require_one_file(data)
        name, tokens = (data[0].name, self._read(data[0])[0]) if data else self._test_tokens()
        written = continued(self.config.model.max_length)
        length = min(PIECE, self.config.model.max_length - written - self._num_before)
        starts = range(0, max(1, len(tokens) - length), max(length, len(tokens) // PIECES))
        texts = [self.tokenizer.decode(tokens[start : start + length].tolist()) for start in starts][:PIECES]

        def answer(texts: Sequence[str]) -> list[str]:
            return [self.generate(text, temperature=0, max_tokens=written)[0] for text in texts]

        test = TestTexts(name, texts, texts, "perplexity", perplexity, lambda texts, answers: written * len(texts))
        return Exchange(test, answer, lambda texts, references: [self._log_probabilities(text) for text in texts])

    @property
    def _num_before(self) -> int:
        """Number of special tokens before a text."""
        return len(self.tokenizer.frame[0])

    def _framed(self, ids: Tokens) -> Tokens:
        """Return the ids of a text after those of the special tokens before it."""
        before, _ = self.tokenizer.frame
        return np.concatenate([np.array(before, ids.dtype), ids])

    def _ids(self, text: str) -> Tensor:
        """Return the tokens of a text to inspect [T], special ones included.

        Raises DataError for a text that is blank or too long.
        """
        if not text.strip():
            raise DataError("the text is blank: give a text to look at")
        ids = torch.from_numpy(self._framed(self.tokenizer.encode_long(text)))
        longest = self.config.model.max_length
        if len(ids) > longest:
            raise DataError(f"the text has {len(ids)} tokens, the model takes {longest}: shorten it")
        return ids

    def _log_probabilities(self, text: str) -> Any:
        """Return the log-probabilities of the tokens of a text after the first, [T - 1]."""
        ids = torch.from_numpy(self._framed(self.tokenizer.encode_long(text))[: self.config.model.max_length])[None]
        with torch.inference_mode():
            known = self.model.scores(text=ids.to(self.device))[0, :-1].log_softmax(-1).float().cpu()
        return known.gather(1, ids[0, 1:, None])[:, 0].numpy()

    def _test_tokens(self) -> tuple[str, Tokens]:
        text = EncodedText.load(self.folder / "data")
        name = "test" if "test" in text.tokens else "validation"
        return name, text.tokens[name]

    def evaluate(self, data: Sequence[Path] = (), **options: Any) -> dict[str, dict[str, Any]]:
        """Return the scores of the run's own texts, the test text first, or of files, by name. They are kept in
        RUN/evaluation.

        Raises ConfigError for any option, and for a file with the name of another text.
        """
        refuse_options("a language model is scored", options)
        require_new_names(data, self._own_names(), self.folder)
        scores = self._of_files(data) if data else self._of_own_text()
        for name, numbers in scores.items():
            write_atomically(self.folder / EVALUATION / f"{name}.json", json.dumps(numbers, indent=2) + "\n")
        return scores

    def summary(self, name: str, scores: dict[str, Any]) -> Sequence[str]:
        """Return the scores of a text as lines for people."""
        unknown = f", {scores['unknown']:,} of them unknown" if scores["unknown"] else ""
        return [
            f"{name}: loss {scores['loss']:.4f} nats a token, perplexity {scores['perplexity']:.3f}, "
            f"{scores['bits_per_character']:.4f} bits a character, {scores['tokens']:,} tokens{unknown}"
        ]

    def _tokens(self, prompt: str, samples: Sequence[int], seed: int, generation: dict[str, Any]) -> Iterator[Tensor]:
        ids = self.tokenizer.encode_long(prompt)
        if UNK in ids:
            # A special token of an imported tokenizer may stand in the text, of characters that are known.
            unknown = next((c for c in prompt if UNK in self.tokenizer.encode_long(c)), prompt)
            raise DataError(f"the prompt holds {unknown!r}, which the vocabulary lacks: leave it out")
        read = torch.from_numpy(self._framed(ids)).to(self.device)
        config = self.config.generation.replaced(**generation)
        return sample(self.model, read, config, samples=samples, seed=seed, layouts=self.layouts)

    def _own_names(self) -> list[str]:
        """Return the names of the run's own texts that are scored. Empty: the run holds no text."""
        if not (self.folder / "data" / MARKER).is_file():
            return []
        text = EncodedText.load(self.folder / "data")
        return [name for name in OWN_SETS if name in text.tokens]

    def _of_own_text(self) -> dict[str, dict[str, Any]]:
        if not (names := self._own_names()):
            raise RunError(f"{self.folder} holds no text: give some with --data")
        text = EncodedText.load(self.folder / "data")
        return {name: self._scored(text.tokens[name], text.characters[name]) for name in names}

    def _of_files(self, files: Sequence[Path]) -> dict[str, dict[str, Any]]:
        return {file.name: self._scored(*self._read(file)) for file in files}

    def _validation(self) -> Tokens:
        if not (self.folder / "data" / MARKER).is_file():
            raise RunError(f"{self.folder} holds no validation text")
        return EncodedText.load(self.folder / "data").tokens["validation"]

    def _read(self, file: Path) -> tuple[Tokens, int]:
        """Return the tokens, with the special ones before the text, and the number of characters of a file.

        Raises DataError for fewer than two tokens.
        """
        pieces = list(read_text(file))
        ids = (self.tokenizer.encode_long(piece) for piece in pieces)
        tokens = np.concatenate([self._framed(np.empty(0, np.int64)), *ids])
        if len(tokens) < 2:
            raise DataError(f"{file} has {len(tokens)} tokens: give a text of two at least")
        return tokens, sum(map(len, pieces))

    def _score(self, tokens: Tokens, characters: int) -> TextScore:
        given = characters_of_first(tokens, self.tokenizer)
        return score_text(self.model, tokens, characters, self.device, given=given)

    def _scored(self, tokens: Any, characters: int) -> dict[str, Any]:
        score = self._score(tokens, characters)
        return score.as_dict() | {"text_characters": characters, "unknown": int((tokens == UNK).sum())}
