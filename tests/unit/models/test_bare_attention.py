"""Forms of the lectures: one shared projection and nothing else, layers as composed functions, states of two sizes."""

import pytest
import torch
from torch.testing import assert_close

from regardant.attention import EVERYTHING, View
from regardant.attention.general import GeneralConfig
from regardant.errors import ConfigError
from regardant.layers.memory_attention import MemoryAttention
from regardant.models import EncoderDecoderConfig, next_token, tokens
from regardant.models.recurrent import RecurrentConfig
from regardant.models.stacks import Encoder
from regardant.models.vectors import Vectors
from regardant.positions.none import NoPositions

D_MODEL, LENGTH = 8, 5


def encoder(**settings):
    sizes = {"preset": None, "d_model": D_MODEL, "num_heads": 1, "d_ff": 16, "dropout": 0.0}
    config = EncoderDecoderConfig.model_validate({**sizes, **settings})
    return Encoder(config, config.encoder, NoPositions(), LENGTH).eval()


def test_one_shared_projection_without_bias_and_output_is_the_lecture_s_formula():
    torch.manual_seed(0)
    bare = {"projections": "all", "attention_bias": False, "attention_output": False}
    layer = (
        encoder(**bare, encoder={"num_layers": 1, "self_attention": {"kind": "scaled_dot_product", "scaled": False}})
        .layers[0]
        .self_attention
    )
    assert [name for name, _ in layer.named_parameters()] == ["query_key_value.weight"]
    x, u = torch.randn(1, LENGTH, D_MODEL), layer.query_key_value.weight.T
    scores = x @ u @ u.T @ x.mT
    assert_close(scores, scores.mT)
    assert_close(layer(x, EVERYTHING), scores.softmax(-1) @ x @ u)


def test_without_projections_a_layer_mixes_the_tokens_themselves():
    layer, x = encoder(projections="none").layers[0].self_attention, torch.randn(1, LENGTH, D_MODEL)
    assert not list(layer.parameters())
    assert_close(layer(x, EVERYTHING), (x @ x.mT / D_MODEL**0.5).softmax(-1) @ x)


def test_heads_that_no_matrix_mixes_must_have_the_size_of_the_model():
    with pytest.raises(ValueError, match="without attention_output the heads' 1 x 6 numbers must be d_model"):
        encoder(attention_output=False, key_size=8, value_size=6)


def test_a_composed_layer_is_x_and_the_network_of_x_and_attention():
    torch.manual_seed(0)
    stack = encoder(residual="composition", normalisation={"kind": "none"}, encoder={"num_layers": 2})
    x = torch.randn(1, LENGTH, D_MODEL)
    expected = x
    for layer in stack.layers:
        expected = expected + layer.feed_forward(expected + layer.self_attention(expected, View()))
    assert_close(stack(Vectors(x)).values, expected)


def test_a_composed_model_decodes_as_it_was_trained():
    torch.manual_seed(0)
    config = EncoderDecoderConfig.model_validate({"preset": "tiny", "residual": "composition"})
    model = config.build(tokens(12), tokens(12), next_token(12)).eval()
    source, target = torch.randint(5, 12, (1, 6)), torch.randint(5, 12, (1, 4))
    whole = model.scores(source, target)
    state = model.start(model.encode(source), 1, 8)
    steps = torch.cat([model.step(token[:, None], state) for token in target.unbind(1)], 1)
    assert_close(steps.flatten(), whole.flatten(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("setting", [{"norm": "post"}, {"activation_checkpointing": True}])
def test_what_a_composed_layer_cannot_be_is_refused(setting):
    with pytest.raises(ValueError, match="compos"):
        encoder(residual="composition", **setting)


def test_a_general_score_meets_queries_and_keys_of_unequal_sizes():
    torch.manual_seed(0)
    layer = MemoryAttention(4, 6, GeneralConfig(), size=None)
    states, memory = torch.randn(2, 3, 4), torch.randn(2, 5, 6)
    scores = states @ layer.key.weight @ memory.mT
    found = layer(states, layer.project(memory, None), torch.arange(3))
    assert_close(found, scores.softmax(-1) @ memory)


@pytest.mark.parametrize(
    "decoder",
    [
        {"kind": "luong", "attention": {"kind": "general"}},
        {"kind": "luong", "attention": {"kind": "additive"}},
        {"kind": "bahdanau"},
        {"kind": "cho"},
        {"kind": "sutskever"},
    ],
)
def test_encoder_and_decoder_may_have_states_of_two_sizes(decoder):
    sizes = {"embedding_size": 8, "hidden_size": 10, "encoder_size": 6, "decoder": decoder}
    model = RecurrentConfig.model_validate(sizes).build(tokens(12), tokens(12), next_token(12))
    source, target = torch.randint(5, 12, (2, 6)), torch.randint(5, 12, (2, 4))
    model(source=source, target=target[:, :-1], targets=target[:, 1:]).total.backward()
    assert model.encoder.read(torch.randn(1, 3, 8), None)[0].shape == (1, 3, 6)
    unread = {name for name, one in model.named_parameters() if one.grad is None}
    assert unread == set()


def test_a_dot_product_of_two_sizes_names_what_can_be_chosen():
    config = RecurrentConfig.model_validate({"hidden_size": 10, "encoder_size": 6, "decoder": {"kind": "luong"}})
    with pytest.raises(
        (ValueError, ConfigError), match="queries of 10 numbers cannot be compared with keys of 6 by scaled_dot_product"
    ):
        config.build(tokens(12), tokens(12), next_token(12))


def test_sizes_that_no_two_directions_can_share_are_refused():
    with pytest.raises(ValueError, match=r"encoder_size \(5\) is shared by two directions"):
        RecurrentConfig(encoder_size=5)
    with pytest.raises(ValueError, match="leave out encoder_size"):
        RecurrentConfig(encoder_size=6, encoder="none")
