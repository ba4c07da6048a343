"""Log-mel frames of sound: the energy of short windows in bands that are equally wide on the mel scale.

Davis and Mermelstein 1980, "Comparison of parametric representations for monosyllabic word recognition",
https://doi.org/10.1109/TASSP.1980.1163420. The mel scale is that of HTK, 2595 log10(1 + f / 700 Hz) (O'Shaughnessy
1987, "Speech Communication: Human and Machine"); the bands are triangles of height 1, since frames are normalised
afterwards.

Shape legend: B recordings, N samples, T frames, F frequencies, K mel bands.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

LEAST_ENERGY = 1e-10
"""Energy of a band below which it counts as silent, as in Whisper (Radford et al. 2022). The rounding to 16 bits alone
gives at least fifty times as much."""


def mel(frequency: float) -> float:
    """Return a frequency in Hz on the mel scale."""
    return 2595.0 * math.log10(1.0 + frequency / 700.0)


def mel_filters(num_mels: int, sample_rate: int, fft_size: int) -> Float[Tensor, "F K"]:
    """Return the weight of each frequency of a Fourier transform in each mel band.

    Band k rises from the centre of band k - 1 to its own and falls to the centre of band k + 1. Raises ValueError if a
    band is so narrow that it contains no frequency.
    """
    mels = torch.linspace(0.0, mel(sample_rate / 2), num_mels + 2, dtype=torch.float64)
    edges = 700.0 * (10.0 ** (mels / 2595.0) - 1.0)
    frequencies = torch.arange(fft_size // 2 + 1, dtype=torch.float64)[:, None] * sample_rate / fft_size
    below, centre, above = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (frequencies - below) / (centre - below), (above - frequencies) / (above - centre)
    filters = torch.minimum(rising, falling).clamp_min(0.0)
    if not filters.any(0).all():
        raise ValueError(
            f"num_mels ({num_mels}) gives bands without a frequency at {sample_rate:,} samples a second: lower "
            "num_mels or raise window_ms"
        )
    return filters.float()


class LogMel:
    """Transform of sound to log-mel frames, with fixed windows."""

    def __init__(self, sample_rate: int, window: int, hop: int, num_mels: int) -> None:
        """Build the window and the filters. `window` and `hop` are the size and the stride of windows in samples."""
        self.hop, self.num_mels = hop, num_mels
        self.fft_size = 1 << max(window - 1, hop - 1).bit_length()
        # The window stands at the start of the transform, so that frame t begins with sample t * hop.
        self.window = F.pad(torch.hann_window(window), (0, self.fft_size - window))
        self.filters = mel_filters(num_mels, sample_rate, self.fft_size)

    def __call__(self, amplitudes: Float[Tensor, "B N"]) -> Float[Tensor, "B T K"]:
        """Return log10 of the energies of N / hop frames. Recordings are padded with silence.

        N must be a multiple of hop; amplitudes are from -1 to 1.
        """
        padded = F.pad(amplitudes, (0, self.fft_size - self.hop))
        spectrum = torch.stft(padded, self.fft_size, self.hop, window=self.window, center=False, return_complex=True).mT
        energies = spectrum.abs().square() @ self.filters
        return energies.clamp_min(LEAST_ENERGY).log10()
