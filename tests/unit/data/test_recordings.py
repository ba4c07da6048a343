"""Files of sound: the samples that are read, and what is refused."""

import sys
import zipfile

import numpy as np
import pytest
import soundfile
from numpy.testing import assert_array_equal

from regardant.data.recordings import Recording, read_recording, write_recording
from regardant.errors import ConfigError, DataError

RATE = 8000


def noise(*shape, seed=0):
    return np.random.default_rng(seed).integers(-(2**15), 2**15, shape).astype(np.int16)


@pytest.mark.parametrize("suffix", [".wav", ".flac"])
def test_samples_of_16_bits_are_read_as_they_are(tmp_path, suffix):
    soundfile.write(tmp_path / f"a{suffix}", noise(100), RATE, subtype="PCM_16")
    found = read_recording(tmp_path / f"a{suffix}")
    assert found.rate == RATE and found.samples.dtype == np.int16
    assert_array_equal(found.samples, noise(100))


def test_what_is_written_is_read(tmp_path):
    write_recording(tmp_path / "a.wav", Recording(noise(50), RATE))
    assert_array_equal(read_recording(tmp_path / "a.wav").samples, noise(50))


def test_a_file_of_an_archive_is_read(tmp_path):
    soundfile.write(tmp_path / "a.wav", noise(100), RATE)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(tmp_path / "a.wav", "a.wav")
    found = read_recording(zipfile.Path(tmp_path / "a.zip", "a.wav"))
    assert_array_equal(found.samples, noise(100))


def test_channels_are_averaged(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.stack([[100, -200, 32767], [300, -400, 32767]], 1).astype(np.int16), RATE)
    assert read_recording(tmp_path / "a.wav").samples.tolist() == [200, -300, 32767]


def test_amplitudes_beyond_one_are_cut(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.array([0.5, 1.5, -2.0]), RATE, subtype="FLOAT")
    assert read_recording(tmp_path / "a.wav").samples.tolist() == [16384, 32767, -32768]


BROKEN = {
    "missing.wav": (lambda path: None, r"cannot be read \(No such file or directory\): give the path of a \.wav or"),
    "folder.wav": (lambda path: path.mkdir(), r"cannot be read \(Is a directory\): give the path of a \.wav or \.flac"),
    "text.wav": (
        lambda path: path.write_text("no sound"),
        r"cannot be read \(.*\): give the path of a \.wav or \.flac",
    ),
    "cut.flac": (lambda path: path.write_bytes(b"fLaC\0\0"), r"cannot be read \(.*\): give the path of a \.wav or"),
    "empty.wav": (lambda path: soundfile.write(path, noise(0), RATE), r"holds no sound: give a longer recording"),
    "nan.wav": (
        lambda path: soundfile.write(path, np.array([0.0, np.nan]), RATE, subtype="FLOAT"),
        r"has samples that are not finite: save it again, or leave it out$",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_is_no_recording_is_one_line(tmp_path, name):
    make, message = BROKEN[name]
    make(tmp_path / name)
    with pytest.raises(DataError, match=rf"{name} {message}") as refusal:
        read_recording(tmp_path / name)
    assert "\n" not in str(refusal.value) and "BytesIO" not in str(refusal.value)


def test_without_soundfile_one_line_names_the_command_that_installs_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "soundfile", None)
    with pytest.raises(ConfigError, match=r"^sound files need soundfile: pip install 'regardant\[sound\]'$"):
        read_recording(tmp_path / "a.wav")
