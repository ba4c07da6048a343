"""Recordings of sound in files, read and written by soundfile (libsndfile).

Shape legend: N samples.
"""

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regardant.data.item_files import ItemFile, read_item_file, shown_name, unreadable_file
from regardant.errors import ConfigError, DataError

LARGEST = 32768
"""16-bit sample value of amplitude 1."""


FILES = "the path of a .wav or .flac file"
"""Description of the files that can be read, for messages."""


class Recording(NamedTuple):
    """Sound of one channel."""

    samples: NDArray[np.int16]
    """[N]"""
    rate: int
    """Samples per second."""


def read_recording(file: ItemFile) -> Recording:
    """Return the sound of a .wav or .flac file in 16 bits a sample: the mean of its channels.

    Raises DataError for a file that cannot be read, ConfigError if soundfile is not installed.
    """
    soundfile = _soundfile()
    try:
        amplitudes, rate = soundfile.read(io.BytesIO(read_item_file(file, FILES)), dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise unreadable_file(file, ValueError(error.error_string), FILES) from error
    if not len(amplitudes):
        raise DataError(f"{shown_name(file)} holds no sound: give a longer recording, or leave it out")
    if not np.isfinite(amplitudes).all():
        raise DataError(f"{shown_name(file)} has samples that are not finite: save it again, or leave it out")
    samples = np.rint(amplitudes.mean(1) * LARGEST).clip(-LARGEST, LARGEST - 1)
    return Recording(samples.astype(np.int16), rate)


def write_recording(path: Path, recording: Recording) -> None:
    """Write a .wav file of 16 bits a sample. Raises ConfigError if soundfile is not installed."""
    _soundfile().write(path, recording.samples, recording.rate, subtype="PCM_16")


def _soundfile() -> Any:
    try:
        import soundfile
    except (ModuleNotFoundError, OSError) as error:  # OSError: libsndfile is missing
        raise ConfigError("sound files need soundfile: pip install 'regardant[sound]'") from error
    return soundfile
