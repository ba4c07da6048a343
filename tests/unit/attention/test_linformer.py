import pytest
import torch
from torch.testing import assert_close

from regardant.attention import View
from regardant.attention.linformer import LinformerConfig


def build(rank=4, max_length=10):
    torch.manual_seed(0)
    return LinformerConfig(rank=rank, max_length=max_length).build(num_heads=2, head_size=8).double()


def test_mixtures_that_are_the_tokens_give_exact_attention(draw, exact):
    tensors = draw(12)
    attention = build(rank=12, max_length=12)
    with torch.no_grad():
        for mixtures in (attention.of_keys, attention.of_values):
            mixtures.copy_(torch.eye(12).expand_as(mixtures))
    assert_close(attention(*tensors), exact(*tensors))


def test_it_is_the_formula_of_the_paper(draw):
    q, k, v = draw(10)
    attention = build()
    scores = q @ (attention.of_keys @ k).mT / 8**0.5
    assert_close(attention(q, k, v), torch.softmax(scores, -1) @ (attention.of_values @ v))


def test_a_shorter_sequence_takes_the_first_columns(draw):
    q, k, v = draw(10)
    zeros = torch.zeros_like(k[:, :, 6:])
    short = build()(q, k[:, :, :6], v[:, :, :6])
    assert_close(short, build()(q, *(torch.cat([x[:, :, :6], zeros], 2) for x in (k, v))))


def test_more_keys_than_it_was_built_for_are_refused(draw):
    with pytest.raises(ValueError, match=r"^Linformer was built for 10 keys and got 11: raise its max_length"):
        build()(*draw(11))


def test_the_future_cannot_be_hidden_and_it_says_why(draw):
    refusal = (
        r"^Linformer cannot honour view\.causal; it honours keys: choose another mechanism "
        r"\(each of its mixtures holds later keys too\)$"
    )
    with pytest.raises(ValueError, match=refusal):
        build()(*draw(10), View(causal=True))


def test_both_mixtures_learn(draw):
    attention = build()
    attention(*draw(10)).square().sum().backward()
    assert all(mixtures.grad.abs().min() > 0 for mixtures in attention.parameters())
