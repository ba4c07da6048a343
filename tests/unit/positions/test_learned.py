import torch

from regardant.positions.learned import LearnedConfig


def test_it_gives_the_rows_of_its_table():
    scheme = LearnedConfig().build(d_model=6, num_heads=2, head_size=6 // 2, max_length=20, causal=False)
    at = torch.tensor([19, 3, 3])
    assert scheme.acts_on == "input"
    assert torch.equal(scheme.embed(at), scheme.table[at])


def test_only_positions_that_occur_get_a_gradient():
    scheme = LearnedConfig().build(d_model=6, num_heads=2, head_size=6 // 2, max_length=20, causal=False)
    scheme.embed(torch.tensor([0, 2, 2])).sum().backward()
    assert scheme.table.grad.sum(1).tolist() == [6, 0, 12, *[0] * 17]


def test_it_starts_as_small_as_an_embedding():
    torch.manual_seed(0)
    scheme = LearnedConfig().build(d_model=64, num_heads=2, head_size=64 // 2, max_length=1000, causal=False)
    assert abs(scheme.table.std().item() * 8 - 1) < 0.02
