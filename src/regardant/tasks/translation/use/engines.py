"""Engines that decode a run's translations: torch, or one that its model is exported to.

RUN/engines/NAME    an export, made at its first use and again when the weights change
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from regardant.config.did_you_mean import did_you_mean
from regardant.errors import ConfigError, RunError, first_line
from regardant.generation.config import GenerationConfig
from regardant.generation.length_penalty import Hypothesis
from regardant.generation.search import ModelSearcher, Searcher
from regardant.layers.linear import Layouts
from regardant.tasks.translation.use.translator import Translator

KNOWN = ("torch", "torch-bfloat16", "ctranslate2")

PATIENT = "-patient"
"""Suffix of the name of an engine whose beam search waits for more hypotheses to end."""


class Engines:
    """Translators of a run by engine."""

    def __init__(self, translator: Translator, folder: Path) -> None:
        self.folder = folder
        self.ready = {"torch": translator}

    def on(self, name: str) -> Translator:
        """Return a translator on `torch`, `torch-bfloat16` (bfloat16 products), `ctranslate2` (int8 weights),
        `ctranslate2-float32` and the like, or one of these whose search is patient, as `ctranslate2-int8-patient`.

        Raises ConfigError for an unknown engine or one that is not installed, RunError for a model that the engine
        cannot compute.
        """
        if name not in self.ready:
            plain = name.removesuffix(PATIENT)
            engine, _, quantization = plain.partition("-")
            if name == "torch-bfloat16":
                self.ready[name] = self._in_bfloat16()
            elif engine == "ctranslate2":
                self.ready[name] = self._on_ctranslate2(quantization or "int8", patient=plain != name)
            else:
                near = did_you_mean(name, KNOWN) or f": take {', '.join(KNOWN)} or ctranslate2-float32"
                raise ConfigError(f"there is no engine {name}{near}")
        return self.ready[name]

    def differences(self, sources: Sequence[NDArray[Any]]) -> dict[str, tuple[float, str]]:
        """Return the largest difference between an export's and the model's log-probability per token, in nats, and the
        source where it occurs, by name of an export in the folder. Both score the export's greedy translations.

        Only translations that end have a score. An export with none has the difference NaN and an empty place.

        Raises ConfigError if the engine is not installed, RunError for a damaged export.
        """
        native = self.ready["torch"]
        found: dict[str, tuple[float, str]] = {}
        for folder in sorted(self.folder.glob("ctranslate2-*")):
            written = self._greedy(folder, sources)
            best = [(number, one) for number, one in enumerate(written) if one.finished]
            scores = native.scores([sources[number] for number, _ in best], [one.tokens for _, one in best])
            off = [
                (abs(one.log_probability - score) / (len(one.tokens) + 1), f"validation item {number + 1}")
                for (number, one), score in zip(best, scores, strict=True)
            ]
            # A NaN is the largest: all comparisons with it are false, so that `max` alone could lose it.
            found[folder.name] = max(off, key=lambda one: (math.isnan(one[0]), one[0]), default=(math.nan, ""))
        return found

    def _greedy(self, folder: Path, sources: Sequence[NDArray[Any]]) -> list[Hypothesis]:
        """Return the export's greedy translation of each source. Raises RunError for a damaged export."""
        from regardant.interop.ctranslate2.export import require_intact  # an extra

        require_intact(folder)
        try:
            searcher = self._searcher(folder)
            length = self.ready["torch"].longest_written
            found = searcher.search(sources, [[] for _ in sources], GenerationConfig(beam_size=1), length)
        except (RuntimeError, ValueError, LookupError) as error:  # all that CTranslate2 raises for a damaged file
            why = f"{folder} cannot be read ({first_line(error)})"
            raise RunError(f"{why}: remove it; it is exported again when an engine needs it") from error
        return [one[0] for one in found]

    def _in_bfloat16(self) -> Translator:
        native = self.ready["torch"]
        searcher = ModelSearcher(
            native.model, native.codec, native.device, Layouts(torch.bfloat16), pieces=native.tokenizer.pieces
        )
        return Translator(native.model, native.tokenizers, native.device, searcher)

    def _on_ctranslate2(self, quantization: str, *, patient: bool) -> Translator:
        from regardant.interop.ctranslate2.export import exported  # an extra

        native = self.ready["torch"]
        folder = self.folder / f"ctranslate2-{quantization}"
        exported(native.model, native.tokenizers, folder, quantization)
        return Translator(native.model, native.tokenizers, native.device, self._searcher(folder, patient=patient))

    def _searcher(self, folder: Path, *, patient: bool = False) -> Searcher:
        """Return a searcher on the export in a folder."""
        from regardant.interop.ctranslate2.search import CTranslate2Searcher  # an extra
        from regardant.interop.ctranslate2.threads import choose_threads

        tokenizers, device = self.ready["torch"].tokenizers, self.ready["torch"].device
        cores = 1 if device.type == "cuda" else torch.get_num_threads()
        threads = choose_threads(folder, cores, tokenizers.source.pieces)
        return CTranslate2Searcher(folder, tokenizers, threads, device.type, patient=patient)
