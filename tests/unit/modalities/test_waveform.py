"""Recordings to blocks of raw samples at several scales: low-pass filtered, in order, alike alone and in a batch."""

import json
import re

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from pydantic import ValidationError

from regardant.data.recordings import Recording
from regardant.errors import DataError, RunError
from regardant.modalities import WaveformModalityConfig
from regardant.modalities.waveform import decimate

RATE = 8000
SMALL = WaveformModalityConfig(scales=(4, 2, 1), block=10)
PERIOD, BLOCKS = 40, 7
"""Samples of a period, and its blocks: one, two and four."""


def noise(count, seed=0, loud=3000.0):
    return (np.random.default_rng(seed).normal(size=count) * loud).clip(-32768, 32767).astype(np.int16)


def tone(frequency, rate=16_000):
    """A second of a tone [1, N]."""
    return np.sin(2 * np.pi * frequency * np.arange(rate) / rate)[None]


@pytest.fixture
def codec():
    return SMALL.fit([Recording(noise(3000 + 200 * seed, seed), RATE) for seed in range(5)])


# scales


@pytest.mark.parametrize("factor", [4, 16, 100])
def test_a_tone_above_half_of_the_new_sample_rate_does_not_come_back_as_a_lower_one(factor):
    """A thousandth of it is left. Without a filter, all of it comes back at another frequency."""
    kept = 16_000 / factor
    for frequency in (0.8 * kept, 2.75 * kept):
        assert np.abs(tone(frequency)[:, ::factor]).max() > 0.9
        middle = decimate(tone(frequency), factor)[0, 20:-20]
        assert np.abs(middle).max() < 1e-3


@pytest.mark.parametrize("factor", [4, 16])
def test_a_tone_below_half_of_the_new_sample_rate_stays_as_it_is(factor):
    low = tone(0.25 * 16_000 / factor)
    assert_allclose(decimate(low, factor)[0, 20:-20], low[0, ::factor][20:-20], atol=2e-2)
    assert decimate(low, 1) is low


def test_a_tone_is_heard_at_the_scales_that_have_its_frequency(codec):
    high = (tone(3500, RATE)[0] * 20000).astype(np.int16)
    energies = codec.collate([high])[0].unflatten(0, (-1, BLOCKS))[5:-5].square().mean((0, 2))
    by_scale = dict(zip(codec.labels(high), energies.tolist(), strict=False))
    assert by_scale["0.00 s 1:1"] > 1 and by_scale["0.00 s 1:2"] < 1e-4 and by_scale["0.00 s 1:4"] < 1e-4


# blocks


def test_a_block_stands_before_those_that_it_covers(codec):
    one = noise(2 * PERIOD)
    blocks = codec.collate([one])[0]
    assert blocks.shape == (2 * BLOCKS, 10)
    fine = [2, 3, 5, 6, 9, 10, 12, 13]
    deviation = codec.statistics.deviation[2]
    assert_allclose(blocks[fine].flatten() * deviation * 32768, one, rtol=1e-4)
    middle = decimate(one[None] / 32768, 2)[0] / codec.statistics.deviation[1]
    assert_allclose(blocks[[1, 4, 8, 11]].flatten(), middle, atol=1e-5)
    assert codec.labels(one)[:8] == [
        "0.00 s 1:4",
        "0.00 s 1:2",
        "0.00 s 1:1",
        "0.00 s 1:1",
        "0.00 s 1:2",
        "0.00 s 1:1",
        "0.00 s 1:1",
        "0.01 s 1:4",
    ]


@pytest.mark.parametrize(("samples", "periods"), [(1, 1), (40, 1), (41, 2), (400, 10)])
def test_blocks_are_counted_by_periods(codec, samples, periods):
    assert codec.lengths(np.array([samples])).tolist() == [periods * BLOCKS] == [len(codec.labels(noise(samples)))]
    block = codec.collate([noise(samples)])
    assert block.shape == (1, periods * BLOCKS, 10) and block.isfinite().all()


def test_a_recording_is_the_same_alone_and_among_longer_ones(codec):
    short, long = noise(90, 1), noise(333, 2)
    together, alone = codec.collate([short, long]), codec.collate([short])
    torch.testing.assert_close(together[:1, : 3 * BLOCKS], alone)
    assert together[0, 3 * BLOCKS :].isnan().all() and together[1].isfinite().all()


def test_a_cut_recording_has_its_first_periods(codec):
    one = noise(PERIOD * 5)
    cut = codec.cut(one, 3 * BLOCKS + 2)
    assert len(cut) == 3 * PERIOD and codec.lengths(np.array([len(cut)])).tolist() == [3 * BLOCKS]
    with pytest.raises(DataError, match=r"^a recording has 7 blocks in 0\.005 s, of which at most 6 are read: raise"):
        codec.cut(one, 6)


# statistics


def test_training_samples_have_deviation_1_at_every_scale():
    recordings = [Recording(noise(PERIOD * 100, seed), RATE) for seed in range(3)]
    codec = SMALL.fit(recordings)
    blocks = codec.collate(codec.encode(recordings)).unflatten(1, (-1, BLOCKS))
    for scale in range(3):
        assert blocks[:, :, codec.shape.places(scale)].square().mean() == pytest.approx(1, rel=1e-2)
    assert (codec.collate([noise(400, loud=30)]).abs() < 0.1).all()  # not 1, as a recording normalised by itself


def test_silence_is_finite():
    assert SMALL.fit([Recording(np.zeros(100, np.int16), RATE)]).collate([noise(100)]).isfinite().all()


def test_a_codec_comes_back_from_a_run(codec, tmp_path):
    codec.save(tmp_path)
    assert SMALL.files == ("waveform.json",) and SMALL.reads_whole
    loaded = SMALL.load(tmp_path)
    assert torch.equal(loaded.collate([noise(300)]), codec.collate([noise(300)]))
    described = "recordings of 8,000 samples a second in blocks of 10 samples, of which every 4, 2, 1 is kept"
    assert loaded.describe() == codec.describe() == described
    assert json.loads((tmp_path / "waveform.json").read_text("utf-8")).keys() == {"sample_rate", "deviation"}


@pytest.mark.parametrize("content", [None, "{", '{"sample_rate": 1}', '{"sample_rate": 1, "deviation": [1]}'])
def test_a_damaged_file_of_statistics_is_one_line(tmp_path, content):
    if content is not None:
        (tmp_path / "waveform.json").write_text(content, encoding="utf-8")
    with pytest.raises(RunError, match=r"^.*waveform.json is damaged \(.*: restore it or train again$"):
        SMALL.load(tmp_path)


@pytest.mark.parametrize("scales", [[1, 4], [6, 4], [4, 4], [0], [-2, -1]])
def test_scales_that_do_not_divide_each_other_are_refused(scales):
    with pytest.raises(
        ValidationError, match=re.escape(f"given {scales}; allowed: numbers from 1 on, each a multiple")
    ):
        WaveformModalityConfig(scales=scales)


def test_recordings_of_several_rates_are_one_line():
    with pytest.raises(
        DataError, match=r"^item 2 has 16,000 samples a second, the recordings before it 8,000: convert"
    ):
        SMALL.fit([Recording(noise(90), RATE), Recording(noise(90), 16000)])
