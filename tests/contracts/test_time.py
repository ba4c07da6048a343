"""What is measured over time: nothing that is trained on or forecast reads later values, and no answer padding."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regardant.data.recordings import Recording
from regardant.modalities import SoundModalityConfig, WaveformModalityConfig
from regardant.models import EncoderConfig
from regardant.models.heads import SequenceClassConfig
from regardant.tasks import task_named

TRAINED, HISTORY, HORIZON = 400, 48, 12
"""Of the recipe TINY_SERIES."""

FORECASTERS = ["encoder_only", "recurrent", "bag", "dlinear"]
RATE = 8000
READERS = {
    "encoder_only": {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_layers": 2, "max_length": 128},
    "recurrent": {"embedding_size": 16, "hidden_size": 16},
    "bag": {"d_model": 16},
}
SOUNDS = {
    "sound": SoundModalityConfig(num_mels=16),
    "waveform": WaveformModalityConfig(block=40, scales=(4, 1)),
}


@pytest.fixture
def with_other_rows(waves, tmp_path):
    """What returns a copy of waves.csv whose values are moved, from a row on and for as many rows as are given."""

    def change(start, by=7.0, count=None):
        head, *rows = waves.read_text().splitlines()
        end = len(rows) if count is None else start + count
        for number, row in enumerate(rows[start:end], start):
            time, *cells = row.split(",")
            rows[number] = ",".join([time, *(f"{float(cell) + by:.4f}" for cell in cells)])
        (tmp_path / "waves.csv").write_text("\n".join([head, *rows]) + "\n")
        return tmp_path / "waves.csv"

    return change


def test_rows_after_those_of_training_change_nothing_that_is_trained_on(
    tiny_series_config, waves, with_other_rows, tmp_path
):
    jobs = []
    for number, root in enumerate((waves.parent, with_other_rows(TRAINED).parent)):
        run = tmp_path / f"run-{number}"
        jobs.append(
            task_named("forecasting").prepare(tiny_series_config(f"data.root={root}"), run, lambda line: None).job
        )
    one, other = jobs
    assert one.batches.codec.statistics == other.batches.codec.statistics
    for planned, also in zip(one.plan(3), other.plan(3), strict=True):
        loaded, expected = one.load(planned), other.load(also)
        assert torch.equal(loaded.inputs["input"], expected.inputs["input"])
        assert torch.equal(loaded.targets, expected.targets)
    assert not np.array_equal(one.validation.split.items[0], other.validation.split.items[0])


@pytest.mark.parametrize("kind", FORECASTERS)
def test_a_change_of_later_values_changes_no_forecast(trained_on_series, waves, with_other_rows, kind):
    """The windows of a table begin at its first row, then at its second, each with both columns."""
    overrides = () if kind == "encoder_only" else (f"model.kind={kind}",)
    trained, first = trained_on_series(*overrides).trained, 150
    same = 2 * (first - HISTORY + 1)
    forecasts = []
    for table in (waves, with_other_rows(first)):
        split = trained.read(table).first(same + 2)
        rows = np.concatenate([planned.indices for planned in trained.batches(split).plan(0)])
        scores = torch.cat([found for found, _ in trained.answers(split)])
        forecasts.append(scores[torch.from_numpy(rows.argsort())])
    before, after = forecasts
    assert_close(after[:same], before[:same], atol=1e-5, rtol=0)
    assert not torch.allclose(after[same:], before[same:], atol=1e-3)


@pytest.mark.parametrize("kind", FORECASTERS)
def test_a_table_that_is_moved_by_a_constant_moves_its_forecast_by_it(trained_on_series, waves, with_other_rows, kind):
    trained = trained_on_series(*(() if kind == "encoder_only" else (f"model.kind={kind}",)))
    (before,) = trained.predict([str(waves)])
    (after,) = trained.predict([str(with_other_rows(0, by=1000.0))])
    for name, values in before.details["forecast"].items():
        np.testing.assert_allclose(after.details["forecast"][name], np.add(values, 1000), atol=1e-2)
    apart = trained.predict([str(with_other_rows(0, by=1000.0, count=600))])[0].details["forecast"]["warm"]
    assert not np.allclose(apart, np.add(before.details["forecast"]["warm"], 1000), atol=1)


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("sound", SOUNDS)
@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_padding_of_a_recording_changes_no_answer(sound, kind, pooling):
    if kind == "bag" and pooling == "last":
        pytest.skip("a bag mixes nothing into the last element")
    generator = np.random.default_rng(0)
    lengths = (700, 4000, 90)
    heard = [Recording(generator.integers(-9000, 9000, count).astype(np.int16), RATE) for count in lengths]
    codec = SOUNDS[sound].fit(heard)
    torch.manual_seed(0)
    config = EncoderConfig.kinds()[kind](dropout=0.0, **READERS[kind])
    head = SequenceClassConfig(pooling=pooling)
    model = config.build(codec.representation(), lambda size: head.build(size, 3)).eval()
    encoded = codec.encode(heard)
    with torch.inference_mode():
        together = model.scores(input=codec.collate(encoded))
        for row, one in zip(together, encoded, strict=True):
            assert_close(model.scores(input=codec.collate([one]))[0], row, atol=1e-5, rtol=0)
    assert not torch.allclose(together[0], together[2], atol=1e-3)
