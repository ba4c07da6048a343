"""Choice of the engine that `auto` means: the first one that is faster than torch and translates as well.

Engines translate validation text of the run and are compared with torch. The result is kept beside their exports:

RUN/engines/choice.json    made when it is first needed, and again for other weights
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from regardant.errors import ConfigError, RunError, WriteError
from regardant.evaluation.translation import TranslationMetrics, corpus_bleu
from regardant.files import write_atomically
from regardant.generation.config import GenerationConfig
from regardant.tasks.base import Log
from regardant.tasks.translation.use.engines import Engines
from regardant.tasks.translation.use.translator import Translator

TRIED = ("ctranslate2-int8", "ctranslate2-int8-patient", "ctranslate2-float32", "ctranslate2-float32-patient")
"""Engines beside torch, in the order in which they are preferred."""

BLEU_LOST = 0.1
"""Maximum BLEU that an engine may lose on the validation text."""

FEWEST, SENTENCES = 100, 500
"""Minimum number of validation sentences for which 0.1 BLEU is meaningful, and the maximum translated, which takes some
seconds for a small model."""


@dataclass(frozen=True)
class ComparedEngine:
    """Comparison of an engine's translations with those of torch."""

    name: str
    identical: float
    """Share of translations that are identical."""
    bleu_lost: float
    """BLEU of torch less that of the engine."""
    speedup: float
    """Seconds of torch divided by those of the engine."""

    @property
    def passes(self) -> bool:
        """True if the engine is faster than torch and loses at most BLEU_LOST."""
        return self.bleu_lost <= BLEU_LOST and self.speedup > 1

    def __str__(self) -> str:
        return f"{self.name} {self.speedup:.1f} times as fast, BLEU {-self.bleu_lost:+.2f}"


@dataclass(frozen=True)
class EngineChoice:
    """The engine of a run, and the comparisons that chose it."""

    engine: str
    reason: str
    compared: tuple[ComparedEngine, ...] = ()
    origin: str = ""
    """SHA-256 of the weights and of the versions of regardant and ctranslate2. Empty for a choice that is not kept."""

    def __str__(self) -> str:
        return f"engine {self.engine} ({self.reason})"

    def save(self, path: Path) -> None:
        """Keep the choice."""
        write_atomically(path, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def load(cls, path: Path, origin: str) -> Self | None:
        """Return the kept choice. None if no choice for these weights and versions is kept."""
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            compared = tuple(ComparedEngine(**one) for one in kept.pop("compared"))
            found = cls(**kept, compared=compared)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):  # absent, or changed by hand
            return None
        return found if found.origin == origin and found.engine in ("torch", *TRIED) else None


def choose_engine(
    engines: Engines,
    validation_text: Callable[[], Mapping[str, Sequence[str]]],
    generation: GenerationConfig,
    metrics: TranslationMetrics,
    log: Log,
) -> EngineChoice:
    """Return the kept choice, or compare engines on the validation text (`source`, `target`), and keep the choice.

    The first engine of TRIED that passes is chosen, else torch. In a run folder that cannot be written to, the choice
    is made anew each time. Raises DataError if the text is needed and cannot be read.
    """
    native = engines.on("torch")
    if native.device.type != "cpu":
        return EngineChoice("torch", "other engines are chosen only on a CPU")
    try:
        from regardant.interop.ctranslate2.export import origin_of  # not installed where it has no wheel
    except ConfigError as error:
        return EngineChoice("torch", str(error))
    origin, path = origin_of(native.model), engines.folder / "choice.json"
    if (kept := EngineChoice.load(path, origin)) is not None:
        return kept
    text = validation_text()  # the library that reads it takes half a second to import
    sources = list(text["source"][:SENTENCES])
    if len(sources) < FEWEST:
        return EngineChoice(
            "torch", f"{len(sources)} validation sentences are too few to compare engines: {FEWEST} needed"
        )
    log(f"comparing engines on {len(sources)} validation sentences, once for these weights")
    choice = _compare(engines, sources, list(text["target"][:SENTENCES]), generation, metrics, origin)
    for name in set(TRIED) - {choice.engine}:
        engines.ready.pop(name, None)  # frees its copies of the weights
    if choice.origin:
        with suppress(RunError):  # another user's run may be read-only
            choice.save(path)
    return choice


def _compare(
    engines: Engines,
    sources: list[str],
    references: list[str],
    generation: GenerationConfig,
    metrics: TranslationMetrics,
    origin: str,
) -> EngineChoice:
    ours, seconds = _translate(engines.on("torch"), sources, generation)
    bleu = corpus_bleu(ours, references, metrics)
    compared: list[ComparedEngine] = []
    for name in TRIED:
        try:
            theirs, taken = _translate(engines.on(name), sources, generation)
        except (OSError, WriteError) as error:  # not kept: the disk may have room next time
            reason = error.strerror if isinstance(error, OSError) else str(error)
            return EngineChoice("torch", f"{engines.folder / name} cannot be written ({reason})")
        except (RunError, ConfigError) as error:  # a model, or a search, that the engine cannot compute
            return EngineChoice("torch", str(error), origin=origin)
        identical = sum(one == other for one, other in zip(ours, theirs, strict=True)) / len(ours)
        compared.append(
            ComparedEngine(name, identical, bleu - corpus_bleu(theirs, references, metrics), seconds / taken)
        )
        if compared[-1].passes:
            break
    chosen, comparisons = compared[-1], "; ".join(map(str, compared))
    if chosen.passes:
        reason = f"compared with torch on {len(sources)} validation sentences: {comparisons}"
        return EngineChoice(chosen.name, reason, tuple(compared), origin)
    reason = (
        f"no other engine is faster and within {BLEU_LOST} BLEU on {len(sources)} validation sentences: {comparisons}"
    )
    return EngineChoice("torch", reason, tuple(compared), origin)


def _translate(translator: Translator, sources: list[str], generation: GenerationConfig) -> tuple[list[str], float]:
    """Return the translations, and the seconds they took after a warm-up."""
    translator.generate(sources[:1], generation)
    start = time.perf_counter()
    found = [one.text for one in translator.generate(sources, generation)]
    return found, time.perf_counter() - start
