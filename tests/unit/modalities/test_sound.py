"""Recordings to log-mel frames: what a frame is, what is measured, what is refused."""

import base64
import io
import json
import math
import re

import numpy as np
import pytest
import soundfile
import torch
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from pydantic import ValidationError

from regardant.data.recordings import Recording
from regardant.errors import ConfigError, DataError, RunError
from regardant.modalities import SoundModalityConfig
from regardant.modalities.log_mel import LogMel, mel, mel_filters
from regardant.models.representations import InputShape
from regardant.positions.none import NoPositions

RATE = 8000
SMALL = SoundModalityConfig(sample_rate=RATE, num_mels=10, subsampling=4)
STRIDE = 320
"""Samples of an element: 4 frames of 10 ms."""


def noise(count, seed=0, loud=3000.0):
    return (np.random.default_rng(seed).normal(size=count) * loud).clip(-32768, 32767).astype(np.int16)


def tone(frequency, seconds=0.5, rate=RATE):
    return torch.sin(2 * math.pi * frequency * torch.arange(int(seconds * rate)) / rate)


@pytest.fixture
def codec():
    return SMALL.fit([Recording(noise(3000 + 200 * seed, seed), RATE) for seed in range(5)])


# frames


def test_the_mel_scale_is_that_of_htk():
    assert mel(0) == 0 and mel(1000) == pytest.approx(1000, abs=0.1) and mel(8000) == pytest.approx(2840.0, abs=0.1)


def test_bands_are_triangles_that_meet_at_their_centres():
    filters = mel_filters(10, RATE, 4096).numpy()
    assert filters.shape == (2049, 10) and filters.min() == 0 and filters.max() <= 1
    centres = 700 * (10 ** (np.arange(1, 11) * mel(RATE / 2) / 11 / 2595) - 1)
    assert_allclose(filters.argmax(0) * RATE / 4096, centres, atol=RATE / 4096)
    between = slice(int(centres[0] * 4096 / RATE) + 1, int(centres[-1] * 4096 / RATE))
    assert_allclose(filters[between].sum(1), 1, atol=1e-4)


@pytest.mark.parametrize("frequency", [200, 700, 1500, 3000])
def test_a_tone_is_loudest_in_the_band_around_it(frequency):
    frames = LogMel(RATE, 200, 80, 10)(tone(frequency)[None])[0]
    centres = 700 * (10 ** (torch.arange(1, 11) * mel(RATE / 2) / 11 / 2595) - 1)
    assert int(frames[5].argmax()) == int((centres - frequency).abs().argmin())


def test_frames_are_those_of_an_explicit_loop():
    samples = torch.from_numpy(noise(800).astype(np.float32)) / 32768
    found = LogMel(RATE, 200, 80, 10)(samples[None])[0]
    filters, padded = mel_filters(10, RATE, 256), torch.cat([samples, torch.zeros(256)])
    window = 0.5 - 0.5 * torch.cos(2 * math.pi * torch.arange(200) / 200)
    for number, frame in enumerate(found):
        part = torch.zeros(256)
        part[:200] = padded[number * 80 : number * 80 + 200] * window
        expected = (torch.fft.rfft(part).abs() ** 2 @ filters).clamp_min(1e-10).log10()
        torch.testing.assert_close(frame, expected, atol=1e-4, rtol=1e-4)
    assert len(found) == 10


def test_silence_is_finite():
    assert (LogMel(RATE, 200, 80, 10)(torch.zeros(1, 800)) == -10).all()


# statistics


def test_training_frames_have_mean_0_and_deviation_1_by_band():
    recordings = [Recording(noise(STRIDE * 20, seed), RATE) for seed in range(10)]
    codec = SMALL.fit(recordings)
    frames = codec.frames(codec.encode(recordings)).flatten(0, 1)
    assert frames.shape == (10 * 80, 10)
    assert_allclose(frames.mean(0), 0, atol=1e-4)
    assert_allclose(frames.std(0, correction=0), 1, atol=1e-4)


def test_frames_that_only_fill_the_last_element_do_not_count():
    samples = noise(STRIDE + 120)  # a whole element, then a frame and a half: two frames are silent
    statistics = SMALL.fit([Recording(samples, RATE)]).statistics
    amplitudes = torch.from_numpy(np.pad(samples, (0, 200)).astype(np.float32)) / 32768
    frames = LogMel(RATE, 200, 80, 10)(amplitudes[None])[0].double()
    assert (frames[6:] == -10).all() and (frames[:6] > -10).all()
    assert_allclose(statistics.mean, frames[:6].mean(0), rtol=1e-6)
    assert_allclose(statistics.deviation, frames[:6].std(0, correction=0), rtol=1e-6)


def test_statistics_are_those_of_training_recordings_whatever_else_is_encoded(codec):
    before = codec.collate(codec.encode([Recording(noise(1000), RATE)]))
    quiet = codec.collate(codec.encode([Recording(noise(1280, loud=30), RATE)]))
    assert quiet.mean() < -1.5  # not 0, as a recording normalised by itself
    assert torch.equal(codec.collate(codec.encode([Recording(noise(1000), RATE)])), before)


def test_a_band_that_is_the_same_everywhere_is_not_divided_by_zero():
    codec = SMALL.fit([Recording(np.zeros(1000, np.int16), RATE)])
    assert codec.collate([noise(STRIDE)]).isfinite().all()


def test_a_codec_comes_back_from_a_run(codec, tmp_path):
    codec.save(tmp_path)
    assert SMALL.files == ("sound.json",) and (tmp_path / "sound.json").is_file()
    loaded = SMALL.load(tmp_path)
    assert torch.equal(loaded.collate([noise(STRIDE * 3)]), codec.collate([noise(STRIDE * 3)]))
    described = "recordings of 8,000 samples a second in frames of 40 ms and 10 mel bands"
    assert loaded.describe() == codec.describe() == described


@pytest.mark.parametrize("content", [None, "{", '{"mean": [1]}', '{"mean": [0], "deviation": [1]}'])
def test_a_damaged_file_of_statistics_is_one_line(tmp_path, content):
    if content is not None:
        (tmp_path / "sound.json").write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=r"^.*sound.json is damaged \(.*: restore it or train again$"):
        SMALL.load(tmp_path)


@pytest.mark.parametrize(("rate", "num_mels"), [(48000, 80), (16000, 80), (11025, 40), (8000, 40), (2000, 20)])
def test_sample_rate_and_bands_are_chosen_from_training_recordings(tmp_path, rate, num_mels):
    codec = SoundModalityConfig().fit([Recording(noise(rate, seed), rate) for seed in range(2)])
    codec.save(tmp_path)
    for found in (codec, SoundModalityConfig().load(tmp_path)):
        assert re.fullmatch(
            rf"recordings of {rate:,} samples a second in frames of (40|39\.9) ms and {num_mels} mel bands",
            found.describe(),
        )
        assert found.collate([noise(rate // 2)]).shape == (1, 13, 4 * num_mels)


def test_a_run_of_an_earlier_version_has_its_sample_rate_in_the_recipe(codec, tmp_path):
    codec.save(tmp_path)
    kept = json.loads((tmp_path / "sound.json").read_text("utf-8"))
    (tmp_path / "sound.json").write_text(json.dumps({name: kept[name] for name in ("mean", "deviation")}), "utf-8")
    assert torch.equal(SMALL.load(tmp_path).collate([noise(STRIDE)]), codec.collate([noise(STRIDE)]))
    with pytest.raises(RunError, match=r"sound.json is damaged \(no sample rate\): restore it or train again"):
        SoundModalityConfig().load(tmp_path)


def test_a_mix_of_sample_rates_is_one_line():
    told = r"^item 3 has 16,000 samples a second, the recordings before it 8,000: convert all to one rate$"
    with pytest.raises(DataError, match=told):
        SoundModalityConfig().fit([Recording(noise(900), each) for each in (RATE, RATE, 16000)])


def test_a_sample_rate_without_frames_is_one_line():
    told = r"^input: window_ms \(25\) and hop_ms \(10\) must each hold a sample at 20 samples a second: raise them$"
    with pytest.raises(ConfigError, match=told):
        SoundModalityConfig().fit([Recording(noise(900), 20)])


# elements


@pytest.mark.parametrize(("samples", "elements"), [(1, 1), (320, 1), (321, 2), (640, 2), (3200, 10)])
def test_elements_are_counted_and_named_by_their_start(codec, samples, elements):
    assert codec.lengths(np.array([samples])).tolist() == [elements]
    one = noise(samples)
    assert codec.labels(one) == [f"{0.04 * number:.2f} s" for number in range(elements)]
    block = codec.collate([one])
    assert block.shape == (1, elements, 40) and block.isfinite().all()
    assert codec.representation()(InputShape(8, NoPositions()))(block).values.shape == (1, elements, 8)


def test_an_element_holds_the_frames_that_begin_in_it(codec):
    one = noise(STRIDE * 3)
    frames = codec.frames([one])[0]
    torch.testing.assert_close(codec.collate([one])[0], frames.view(3, 40))


def test_a_recording_is_the_same_alone_and_among_longer_ones(codec):
    short, long = noise(700, 1), noise(2000, 2)
    together, alone = codec.collate([short, long]), codec.collate([short])
    torch.testing.assert_close(together[:1, :3], alone)
    assert together[0, 3:].isnan().all() and together[1].isfinite().all()


def test_a_cut_recording_has_its_first_elements(codec):
    one = noise(STRIDE * 5 + 7)
    cut = codec.cut(one, 3)
    assert_array_equal(cut, one[: STRIDE * 3])
    assert codec.lengths(np.array([len(cut)])).tolist() == [3]
    assert codec.cut(one, 6) is not None and len(codec.cut(one, 6)) == len(one)


def test_a_page_draws_the_spectrogram_below_the_elements(codec):
    one = np.concatenate([noise(STRIDE * 4), noise(STRIDE * 2, loud=10)])
    layout = codec.layout(one)
    assert (layout.rows, layout.columns, list(layout.labels)) == (1, 6, codec.labels(one))
    assert layout.is_grid and layout.height == pytest.approx(1 / 3)
    with Image.open(io.BytesIO(base64.b64decode(layout.picture.partition(",")[2]))) as picture:
        shades = np.asarray(picture)
    assert shades.shape == (10, 24) and shades.min() == 0 and shades.max() == 255
    assert shades[:, :12].mean() > shades[:, 16:].mean() + 50  # louder is brighter
    high = codec.layout((tone(3000).numpy() * 20000).astype(np.int16))
    with Image.open(io.BytesIO(base64.b64decode(high.picture.partition(",")[2]))) as picture:
        assert np.asarray(picture)[:, 5].argmax() < 3  # high bands above


# items


def test_a_file_and_its_recording_are_the_same_item(codec, tmp_path):
    soundfile.write(tmp_path / "a.flac", noise(900), RATE)
    (from_file,), (expected,) = (
        codec.encode([one]) for one in (codec.parse(str(tmp_path / "a.flac")), Recording(noise(900), RATE))
    )
    assert_array_equal(from_file, expected)
    (again,) = codec.encode([codec.parse(codec.argument(expected, tmp_path, "b"))])
    assert_array_equal(again, expected)


def test_another_sample_rate_is_one_line_with_the_setting(codec, tmp_path):
    soundfile.write(tmp_path / "a.wav", noise(900), 16000)
    told = r"a\.wav has 16,000 samples a second, the run's recordings 8,000: convert it, or train with input\.sample_"
    with pytest.raises(DataError, match=told):
        codec.encode([codec.parse(str(tmp_path / "a.wav"))])
    with pytest.raises(DataError, match=r"^item 2 has 11,025 samples a second"):
        SMALL.fit([Recording(noise(900), RATE), Recording(noise(900), 11025)])


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (
            "a text",
            r"^item 1 is of type str, not a recording: give the path of a \.wav or \.flac file, or another input",
        ),
        (np.zeros(100), r"^item 1 is of type ndarray, not a recording"),
        (Recording(noise(0), RATE), r"^item 1 holds no sound: give a longer recording$"),
    ],
)
def test_what_is_no_recording_is_one_line(codec, item, message):
    for read in (SMALL.fit, codec.encode):
        with pytest.raises(DataError, match=message):
            read([item])


def test_no_training_recordings_are_refused():
    with pytest.raises(DataError, match=r"^there are no training recordings: give some$"):
        SMALL.fit([])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"num_mels": 200},
            r"num_mels \(200\) gives bands without a frequency at 8,000 samples a second: lower",
        ),
        (
            {"hop_ms": 0.05},
            r"window_ms \(25\) and hop_ms \(0\.05\) must each hold a sample at 8,000 samples a second: raise",
        ),
        ({"subsampling": 3}, "subsampling"),
        ({"sample_rate": 0}, "sample_rate"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        SoundModalityConfig(**{"sample_rate": RATE, **fields})


@pytest.mark.parametrize(("rate", "num_mels"), [(8000, 80), (16000, 80), (44100, 128), (48000, 80)])
def test_usual_settings_have_a_frequency_in_every_band(rate, num_mels):
    assert SoundModalityConfig().log_mel(rate, num_mels).filters.any(0).all()


def test_statistics_are_numbers_alone(codec, tmp_path):
    codec.save(tmp_path)
    kept = json.loads((tmp_path / "sound.json").read_text("utf-8"))
    assert kept.keys() == {"mean", "deviation", "sample_rate"} and len(kept["mean"]) == 10
