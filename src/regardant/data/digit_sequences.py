"""Spoken digits one after the other: recordings of single digits by one speaker, joined with short silences.

The start and end of each digit are known, so that attention can be compared with them.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from regardant.data.digit_words import WORDS
from regardant.data.folders import LabelledFilesConfig, compiled
from regardant.data.item_files import ItemFile
from regardant.data.labelled import Labelled, Sets
from regardant.data.recordings import Recording, read_recording
from regardant.errors import DataError

DIGITS = {str(digit): word for digit, word in enumerate(WORDS)}
"""Words of the digits, by label."""


class DigitSequence(NamedTuple):
    """Sequence of digits spoken by one speaker."""

    recording: Recording
    text: str
    """Words of the digits, separated by spaces."""
    spans: Sequence[tuple[int, int]]
    """(start, end) of each digit in samples; the end is exclusive."""


class DigitSequencesConfig(LabelledFilesConfig):
    """Sequences of recordings of digits, such as those of the Free Spoken Digit Dataset. Each split has its own
    recordings."""

    kind: Literal["digit_sequences"] = "digit_sequences"

    label: str = r"(\d)_.*"
    """Regular expression for the names of files, the digit in parentheses."""

    speaker: str = r"\d_(.*)_\d+\.wav"
    """Regular expression for the names of files, the speaker in parentheses."""

    train_size: int = Field(4000, gt=0)
    """Sequences to train on."""

    validation_size: int = Field(300, gt=0)
    """Sequences to validate on."""

    test_size: int = Field(300, gt=0)
    """Sequences to test on."""

    least_digits: int = Field(3, gt=0)
    """Fewest digits of a sequence."""

    most_digits: int = Field(7, gt=0)
    """Most digits of a sequence."""

    least_silence_ms: float = Field(50.0, ge=0, allow_inf_nan=False)
    """Shortest silence between two digits, in milliseconds."""

    most_silence_ms: float = Field(200.0, ge=0, allow_inf_nan=False)
    """Longest silence between two digits, in milliseconds."""

    @field_validator("speaker")
    @classmethod
    def marks_the_speaker(cls, pattern: str) -> str:
        """Refuse an invalid pattern, or one without exactly one pair of parentheses."""
        if compiled(pattern).groups != 1:
            raise ValueError(r"needs one pair of parentheses, around the speaker, as in \d_(.*)_\d+\.wav")
        return pattern

    @model_validator(mode="after")
    def bounds_ascend(self) -> Self:
        """Refuse bounds in the wrong order."""
        if self.least_digits > self.most_digits or self.least_silence_ms > self.most_silence_ms:
            raise ValueError(
                f"least_digits ({self.least_digits}) and least_silence_ms ({self.least_silence_ms:g}) must be at most "
                f"most_digits ({self.most_digits}) and most_silence_ms ({self.most_silence_ms:g})"
            )
        return self

    def read(self, seed: int) -> Sets:
        return {split: [(one.recording, one.text) for one in found] for split, found in self.sequences(seed).items()}

    def given(self, data: Path) -> list[Labelled]:
        return [(one.recording, one.text) for one in self._joined(super().given(data), self.test_size, 0)]

    def sequences(self, seed: int) -> dict[str, list[DigitSequence]]:
        """Return the sequences of all splits. Raises DataError."""
        sizes = {"train": self.train_size, "validation": self.validation_size, "test": self.test_size}
        return {split: self._joined(items, sizes[split], seed) for split, items in super().read(seed).items()}

    def _joined(self, items: Sequence[Labelled], count: int, seed: int) -> list[DigitSequence]:
        """Return `count` sequences of recordings, drawn with the seed."""
        of_speaker: defaultdict[str, list[tuple[Recording, str]]] = defaultdict(list)
        for file, digit in items:
            if digit not in DIGITS:
                raise DataError(f"{file} has the label {digit!r}, not a digit from 0 to 9: correct data.label")
            of_speaker[self._speaker_of(file)].append((read_recording(file), DIGITS[digit]))
        rates = sorted({recording.rate for each in of_speaker.values() for recording, _ in each})
        if len(rates) > 1:
            found = " and ".join(map(str, rates))
            raise DataError(f"{self.source} has recordings of {found} samples a second: convert them to one rate")
        generator, speakers = np.random.default_rng(seed), sorted(of_speaker)
        joined = []
        for _ in range(count):
            own = of_speaker[speakers[generator.integers(len(speakers))]]
            length = generator.integers(self.least_digits, self.most_digits, endpoint=True)
            chosen = [own[number] for number in generator.integers(len(own), size=length)]
            silences = generator.uniform(self.least_silence_ms, self.most_silence_ms, length - 1)
            joined.append(_join(chosen, [round(each * rates[0] / 1000) for each in silences]))
        return joined

    def _speaker_of(self, file: ItemFile) -> str:
        match = re.fullmatch(self.speaker, file.name)
        if match is None:
            raise DataError(f"{file} does not match data.speaker, {self.speaker}: correct it, or leave the file out")
        return match[1] or ""


def _join(digits: Sequence[tuple[Recording, str]], silences: Sequence[int]) -> DigitSequence:
    """Join recordings, with `silences` samples of silence between neighbours."""
    parts, spans, at = [], [], 0
    for (recording, _), silence in zip(digits, [*silences, 0], strict=True):
        parts += [recording.samples, np.zeros(silence, np.int16)]
        spans.append((at, at + len(recording.samples)))
        at += len(recording.samples) + silence
    rate = digits[0][0].rate
    return DigitSequence(Recording(np.concatenate(parts), rate), " ".join(word for _, word in digits), spans)
