import torch

from regardant.positions.scalar import ScalarConfig

SIZES = {"d_model": 8, "num_heads": 2, "head_size": 4, "max_length": 10, "causal": False}


def test_it_is_the_position_or_its_share_of_the_longest():
    at = torch.tensor([0, 3, 9])
    assert torch.allclose(ScalarConfig().build(**SIZES).embed(at)[:, 0], torch.tensor([0, 0.3, 0.9]))
    assert ScalarConfig(raw=True).build(**SIZES).embed(at)[:, 0].tolist() == [0, 3, 9]


def test_the_product_of_two_raw_positions_is_largest_with_the_last():
    raw = ScalarConfig(raw=True).build(**SIZES).embed(torch.arange(10))
    assert ((raw @ raw.T).argmax(-1)[1:] == 9).all()  # whatever asks, the last position is most alike
