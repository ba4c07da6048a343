import numpy as np

from benchmarks.baselines.spoken_digits import features
from regardant.data.recordings import Recording
from regardant.modalities import SoundModalityConfig


def test_a_recording_is_the_mean_and_the_deviation_of_its_bands():
    samples = np.random.default_rng(0).integers(-9999, 9999, 3200).astype(np.int16)
    codec = SoundModalityConfig(sample_rate=8000, num_mels=4).fit([Recording(samples, 8000)])
    (found,) = features(codec, [(Recording(samples, 8000), "1")])
    np.testing.assert_allclose(found, [0] * 4 + [1] * 4, atol=1e-4)  # normalised by this recording
