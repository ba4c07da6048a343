import pytest
import torch

from regardant.positions.relative_bias import RelativeBiasConfig


@pytest.mark.parametrize(("scaled", "factor"), [(False, 1.0), (True, 0.5)])
def test_a_pair_gets_the_number_of_its_head_and_clipped_distance(scaled, factor):
    config = RelativeBiasConfig(max_distance=2, scaled=scaled)
    scheme, at = config.build(d_model=8, num_heads=2, head_size=4, max_length=9, causal=False), torch.arange(6)
    bias = scheme.bias(at, at)
    for h, i, j in torch.cartesian_prod(torch.arange(2), at, at).tolist():
        assert bias[h, i, j] == factor * scheme.table[h, min(max(j - i, -2), 2) + 2]
