import pytest
import torch

from regardant.inspection.reach import reached
from regardant.models.heads import SequenceClassConfig
from regardant.models.hierarchical import HierarchicalConfig
from regardant.models.representations import tokens
from regardant.models.transformer import EncoderStackConfig
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions

SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 16, "dropout": 0.0, "max_length": 16, "num_layers": 1, "upper_layers": 1}


def encoder(segment=4):
    torch.manual_seed(0)
    config = HierarchicalConfig(**SIZES, segment=segment)
    return config.build_encoder(EncoderStackConfig(num_layers=1), NoPositions()).eval()


def test_an_element_hears_of_other_segments_by_their_means_alone():
    model = encoder()
    assert reached(lambda x: model(Vectors(x)).values, torch.randn(1, 10, 8), 1).all()
    read = reached(lambda x: model.lower(Vectors(x.view(-1, 4, 8))).values.view(1, -1, 8), torch.randn(1, 12, 8), 5)
    assert read.nonzero().flatten().tolist() == [4, 5, 6, 7]


def test_padding_of_the_last_segment_changes_no_vector():
    model, x = encoder(), torch.randn(1, 6, 8)
    padded = torch.cat([x, torch.randn(1, 5, 8)], 1)
    real = (torch.arange(11) < 6)[None]
    found = model(Vectors(padded, real)).values[:, :6]
    torch.testing.assert_close(found, model(Vectors(x)).values)


def test_a_mechanism_need_not_reach_beyond_a_segment():
    def build(segment):
        config = HierarchicalConfig(**SIZES, segment=segment, self_attention={"kind": "linformer", "max_length": 4})
        return config.build(tokens(9), lambda d_model: SequenceClassConfig().build(d_model, 3))

    assert build(4).encoder(Vectors(torch.randn(1, 16, 8))).values.shape == (1, 16, 8)
    with pytest.raises(ValueError, match=r"Linformer ends at 4 keys and model\.segment is 5"):
        build(5)


def test_the_order_of_segments_counts():
    model, x = encoder(), torch.randn(1, 8, 8)
    turned = torch.cat([x[:, 4:], x[:, :4]], 1)
    apart = model(Vectors(turned)).values.mean(1) - model(Vectors(x)).values.mean(1)
    assert apart.abs().max() > 1e-3


def test_no_matrix_of_all_pairs_is_shown():
    model = HierarchicalConfig(**SIZES, segment=4).build(
        tokens(9), lambda d_model: SequenceClassConfig().build(d_model, 3)
    )
    assert model.attention_kinds == {}


def test_a_graph_is_refused():
    with pytest.raises(ValueError, match="segments cut a graph's edges"):
        encoder()(Vectors(torch.randn(1, 4, 8), pairs=torch.ones(1, 4, 4, dtype=torch.bool)))
