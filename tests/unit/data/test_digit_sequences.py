"""Sequences of spoken digits: what is joined, and where each digit is."""

import itertools

import numpy as np
import pytest
import soundfile
from numpy.testing import assert_array_equal

from regardant.data.digit_sequences import DIGITS, DigitSequencesConfig
from regardant.errors import DataError

RATE = 1000


@pytest.fixture
def folder(tmp_path):
    """Recordings of two speakers, of which each is a constant of its own."""
    names = itertools.product(range(3), ("ann", "bob"), range(4))
    for number, (digit, speaker, index) in enumerate(names):
        samples = np.full(20 + number, 100 + number, np.int16)
        soundfile.write(tmp_path / f"{digit}_{speaker}_{index}.wav", samples, RATE)
    return tmp_path


def config(folder, **fields):
    given = {"train_size": 50, "validation_size": 10, "test_size": 10, "validation_share": 0.3}
    return DigitSequencesConfig(source=str(folder), test=r".*_0\.wav", **{**given, **fields})


def files(folder):
    """The digit, speaker and index of each recording by its constant."""
    return {int(soundfile.read(path, dtype="int16")[0][0]): path.stem.split("_") for path in folder.iterdir()}


def test_digits_of_one_speaker_follow_each_other_with_silence_between(folder):
    known = files(folder)
    for one in config(folder).sequences(1)["train"]:
        samples, rate = one.recording
        assert rate == RATE and 3 <= len(one.spans) <= 7
        parts = [samples[start:end] for start, end in one.spans]
        assert all(len(set(part.tolist())) == 1 for part in parts)
        digits = [known[int(part[0])] for part in parts]
        assert [DIGITS[digit] for digit, _, _ in digits] == one.text.split()
        assert len({speaker for _, speaker, _ in digits}) == 1
        for (_, end), (start, _) in zip(one.spans, one.spans[1:], strict=False):
            assert 50 <= start - end <= 200 and not samples[end:start].any()
        assert one.spans[0][0] == 0 and one.spans[-1][1] == len(samples)


def test_no_recording_is_in_two_splits(folder):
    known, used = files(folder), {}
    for split, found in config(folder).sequences(1).items():
        used[split] = {int(one.recording.samples[start]) for one in found for start, _ in one.spans}
    assert not used["train"] & used["validation"] and not (used["train"] | used["validation"]) & used["test"]
    assert {known[number][2] for number in used["test"]} == {"0"}


def test_the_seed_decides(folder):
    first, again, other = (config(folder).read(seed)["train"] for seed in (1, 1, 2))
    assert [text for _, text in first] == [text for _, text in again] != [text for _, text in other]
    assert_array_equal(first[0][0].samples, again[0][0].samples)


def test_files_of_a_command_line_become_sequences(folder):
    assert len(config(folder).given(folder)) == 10


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"speaker": r"\d-(.*)"}, r"wav does not match data\.speaker, .*: correct it, or leave the file out$"),
        ({"label": r"\d_(.*)_.*"}, r"wav has the label 'ann', not a digit from 0 to 9: correct"),
    ],
)
def test_names_without_a_digit_or_a_speaker_are_one_line(folder, fields, message):
    with pytest.raises(DataError, match=message):
        config(folder, **fields).read(1)


def test_recordings_of_two_rates_are_refused(folder):
    soundfile.write(folder / "1_ann_9.wav", np.ones(5, np.int16), 2 * RATE)
    with pytest.raises(DataError, match=r"has recordings of 1000 and 2000 samples a second: convert them to one rate$"):
        config(folder).read(1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"speaker": "("}, r"is not a regular expression: missing \), unterminated subpattern"),
        ({"speaker": ".*"}, r"needs one pair of parentheses, around the speaker, as in"),
        ({"speaker": "(.*){9999999999}"}, "is not a regular expression: the repetition number is too large"),
        ({"most_silence_ms": float("inf")}, "should be a finite number"),
    ],
)
def test_fields_that_cannot_be_right_are_refused(folder, fields, message):
    with pytest.raises(ValueError, match=message):
        config(folder, **fields)


def test_bounds_in_the_wrong_order_are_refused(folder):
    with pytest.raises(ValueError, match=r"least_digits \(5\) and least_silence_ms \(50\) must be at most most_digits"):
        config(folder, least_digits=5, most_digits=4)
