import numpy as np

from benchmarks.digit_attention import inside
from regardant.data.digit_sequences import DigitSequence
from regardant.data.recordings import Recording


def test_the_weight_of_a_word_counts_on_the_frames_of_its_own_digit():
    sequence = DigitSequence(Recording(np.zeros(70, np.int16), 1000), "one two", [(0, 25), (40, 70)])
    weights = np.array([[[0.5, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05], [0.1, 0.1, 0.2, 0.1, 0.2, 0.2, 0.1], [1 / 7] * 7]])
    np.testing.assert_allclose(inside(weights, sequence, 10), [[0.7, 0.5]])
