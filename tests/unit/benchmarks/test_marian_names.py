"""Every weight of ours has one name of Marian's."""

import pytest
import torch
from marian_names import in_marians_names

from regardant.models import EncoderDecoderConfig
from tests.models import over_pairs


@pytest.fixture
def ours():
    layers = {"num_layers": 2}
    config = {"preset": None, "d_model": 8, "num_heads": 2, "d_ff": 12, "norm": "post"}
    model = over_pairs(EncoderDecoderConfig.model_validate({**config, "encoder": layers, "decoder": layers}), 20)
    return model.state_dict()


def test_the_names_are_those_of_marians_model(ours):
    linear = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj", "fc1", "fc2")
    norms = ("self_attn_layer_norm", "final_layer_norm")
    cross = (*(f"encoder_attn.{name}_proj" for name in ("q", "k", "v", "out")), "encoder_attn_layer_norm")
    expected = {
        f"model.{stack}.layers.{layer}.{part}.{kind}"
        for stack in ("encoder", "decoder")
        for layer in range(2)
        for part in (*linear, *norms, *(cross if stack == "decoder" else ()))
        for kind in ("weight", "bias")
    }
    embeddings = {"model.shared.weight", "lm_head.weight"} | {
        f"model.{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")
    }
    assert set(in_marians_names(ours, 2)) == expected | embeddings


def test_no_weight_is_lost(ours):
    named = in_marians_names(ours, 2)
    once = {value.data_ptr(): value.numel() for value in ours.values()}
    embeddings = ours["head.weight"].numel()
    assert sum(value.numel() for value in named.values()) - 3 * embeddings == sum(once.values())


def test_queries_keys_and_values_are_taken_apart_in_this_order(ours):
    named = in_marians_names(ours, 2)
    fused = ours["decoder.layers.1.self_attention.query_key_value.weight"]
    parts = [named[f"model.decoder.layers.1.self_attn.{name}_proj.weight"] for name in "qkv"]
    assert torch.equal(torch.cat(parts), fused)
    fused = ours["decoder.layers.0.cross_attention.key_value.bias"]
    assert torch.equal(named["model.decoder.layers.0.encoder_attn.v_proj.bias"], fused[8:])
