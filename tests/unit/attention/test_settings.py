"""Settings that cannot be right are refused in one line, before anything is built."""

import pytest

from regardant import config
from regardant.attention.entmax import EntmaxConfig
from regardant.attention.linformer import LinformerConfig
from regardant.attention.lsh import LSHConfig
from regardant.attention.performer import PerformerConfig
from regardant.attention.segment import SegmentConfig
from regardant.attention.sparse import SparseConfig
from regardant.attention.strided import StridedConfig
from regardant.attention.top_k import TopKConfig
from regardant.attention.window import WindowConfig
from regardant.errors import ConfigError

WRONG = [
    (WindowConfig, {"window": -1}, "window: given -1; must be greater than or equal to 0"),
    (StridedConfig, {"stride": 0}, "stride: given 0; must be greater than 0"),
    (StridedConfig, {"num_strides": -1}, "num_strides: given -1; must be greater than or equal to 0, or allowed: all"),
    (StridedConfig, {"num_strides": "most"}, "num_strides: given 'most'; must be a valid integer"),
    (SparseConfig, {"num_global": -2}, "num_global: given -2; must be greater than or equal to 0"),
    (SparseConfig, {"stride": 0}, "stride: given 0; must be greater than 0"),
    (SegmentConfig, {"segment": 0}, "segment: given 0; must be greater than 0"),
    (SegmentConfig, {"memory": -1}, "memory: given -1; must be greater than or equal to 0"),
    (LSHConfig, {"num_buckets": 7}, "num_buckets: given 7; must be a multiple of 2"),
    (LSHConfig, {"num_buckets": 0}, "num_buckets: given 0; must be greater than 1"),
    (LSHConfig, {"num_rounds": 0}, "num_rounds: given 0; must be greater than 0"),
    (LSHConfig, {"reach": 0}, "reach: given 0; must be greater than 0"),
    (LSHConfig, {"num_buckets": 1026}, "num_buckets: given 1026; must be less than or equal to 1024"),
    (LSHConfig, {"reach": 2**20 + 1}, "reach: given 1048577; must be less than or equal to 1048576"),
    (PerformerConfig, {"num_features": 0}, "num_features: given 0; must be greater than 0"),
    (LinformerConfig, {"rank": 0}, "rank: given 0; must be greater than 0"),
    (LinformerConfig, {"max_length": 0}, "max_length: given 0; must be greater than 0"),
    (TopKConfig, {"k": 0}, "k: given 0; must be greater than 0"),
    (EntmaxConfig, {"alpha": 1.0}, "alpha: given 1.0; allowed: 1.5, 2"),
]


@pytest.mark.parametrize(("schema", "settings", "line"), WRONG, ids=lambda value: str(value))
def test_wrong_settings_are_one_line(schema, settings, line):
    with pytest.raises(ConfigError) as raised:
        config.load(schema, settings, origin="r.yaml")
    assert str(raised.value).startswith(f"r.yaml: {line}")
    assert "\n" not in str(raised.value)
    with pytest.raises(ValueError):
        schema(**settings)
