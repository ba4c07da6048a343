"""Recurrent encoder-decoders: where dropout falls, who asks the source, and who is told of it."""

import pytest
import torch
from torch.testing import assert_close

from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.layers.dropout import Dropout
from regardant.models.recurrent import RecurrentConfig
from regardant.models.recurrent.decoders import (
    BahdanauConfig,
    ChoConfig,
    LuongConfig,
    SutskeverConfig,
)
from regardant.positions.one_hot import OneHotConfig
from tests.models import over_pairs

SOURCE = torch.tensor([[5, 6, 7, 8, 9, EOS], [9, 5, 6, EOS, PAD, PAD]])
TARGET = torch.tensor([[SOS, 9, 8, 7, 6, 5], [SOS, 6, 5, 9, EOS, PAD]])
"""As long as the source."""

DECODERS = {
    "sutskever": SutskeverConfig(),
    "cho": ChoConfig(),
    "bahdanau": BahdanauConfig(),
    "luong": LuongConfig(),
    "luong without input feeding": LuongConfig(input_feeding=False),
}

every_decoder = pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)
every_asker = pytest.mark.parametrize(
    "decoder", [DECODERS[name] for name in list(DECODERS)[2:]], ids=list(DECODERS)[2:]
)


def build(decoder, **fields):
    torch.manual_seed(0)
    sizes = {"embedding_size": 16, "hidden_size": 12, "max_length": 16}
    return over_pairs(RecurrentConfig(decoder=decoder, **sizes | fields), 12)


@pytest.mark.parametrize(("encoder", "name"), [("recurrent", "embedding_size"), ("none", "hidden_size")])
def test_positions_that_leave_no_room_are_refused(encoder, name):
    told = rf"positions of 16 numbers leave none of {name} \(1[26]\) to the token: raise {name}"
    with pytest.raises(ValueError, match=told):
        build(BahdanauConfig(), encoder=encoder, positions=OneHotConfig(), tie_embeddings="target")


@pytest.mark.parametrize("field", [{"encoder_bptt": 5}, {"bidirectional": False}, {"combine": "add"}], ids=str)
def test_settings_of_an_encoder_need_one(field):
    (name,) = field
    with pytest.raises(ValueError, match=f"without an encoder {name} has no effect: leave it out"):
        RecurrentConfig(encoder="none", **field)


@pytest.mark.parametrize("bptt", [None, 2])
@every_decoder
def test_no_mask_is_drawn_twice_in_one_pass(decoder, bptt):
    model = build(decoder, num_layers=2, dropout=0.5, bptt=bptt).train()
    model.dropout_key.update = 3
    masks = []
    for module in model.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(lambda module, given, dropped: masks.append(dropped == 0))
    model.scores(SOURCE, TARGET)
    kept = [tuple(mask.flatten().tolist()) for mask in masks]
    # Two embeddings, between the layers of the encoder and, at least once, of the decoder, before the output.
    assert len(kept) == len(set(kept)) >= 5
    shortest = min(map(len, kept))
    assert len({mask[:shortest] for mask in kept}) == len(kept)


def weights_seen(model):
    """Of each time that cross-attention is asked."""
    seen, mechanism = [], model.decoder.cross_attention.mechanism

    def compute_weights(module, given, answer):
        q, k, _, view = given
        seen.append(module.weights(q, k, view))

    mechanism.register_forward_hook(compute_weights)
    return seen


@every_asker
def test_a_pass_over_a_whole_target_weighs_the_source_as_its_steps_do(decoder):
    model = build(decoder, dropout=0.0).eval()
    with torch.no_grad():
        seen = weights_seen(model)
        model.scores(SOURCE, TARGET)
        whole = torch.cat(seen, 2)
        seen.clear()
        state = model.start(model.encode(SOURCE), 1, 6)
        for tokens in TARGET.split(1, 1):
            model.step(tokens, state)
    assert [weights.shape for weights in seen] == [(2, 1, 1, 6)] * 6
    assert_close(torch.cat(seen, 2), whole)


@every_asker
def test_beams_are_seen_as_queries_on_one_memory(decoder):
    model = build(decoder, dropout=0.0).eval()
    seen = weights_seen(model)
    with torch.no_grad():
        state = model.start(model.encode(SOURCE), 3, 6)
        model.step(torch.full((2, 3), SOS), state)
        state.reorder(torch.tensor([[2, 1, 0], [0, 0, 1]]))
        for tokens in ([[5, 6, 7], [8, 9, 5]], [[5, 6, 7], [8, 9, 5]]):
            model.step(torch.tensor(tokens), state)
    assert [weights.shape for weights in seen] == [(2, 1, 3, 6)] * 3
    assert not torch.equal(seen[2][0, 0, 0], seen[2][0, 0, 1])


@every_asker
def test_nobody_asks_for_the_sake_of_those_who_do_not_look(decoder):
    model, asked = build(decoder, dropout=0.0), []
    query = model.decoder.cross_attention.query
    query.register_forward_hook(lambda module, given, said: asked.append(given[0].shape[1]))
    model.scores(SOURCE, TARGET)
    assert sum(asked) == TARGET.shape[1]


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize(
    ("decoder", "after"), [(BahdanauConfig(), False), (LuongConfig(), True)], ids=["bahdanau", "luong"]
)
def test_bahdanau_s_source_is_asked_by_the_state_before_a_step_and_luong_s_by_the_one_after(decoder, after, num_layers):
    """Bahdanau et al. 2015, appendix A.1.2: e_ij = a(s_(i-1), h_j). Luong et al. 2015, section 3: score(h_t, h_s).

    Of several layers the top one asks.
    """
    model = build(decoder, dropout=0.0, num_layers=num_layers).eval()
    attention, asking = model.decoder.cross_attention, []
    attention.register_forward_hook(lambda module, given, said: asking.append(given[0][:, 0]))
    with torch.no_grad():
        read = model.encode(SOURCE)
        state, states = model.start(read, 1, 6), []
        for tokens in TARGET.split(1, 1):
            before = state.memory.state[0][-1]
            model.step(tokens, state)
            states.append(state.memory.state[0][-1] if after else before)
    assert_close(torch.stack(asking), torch.stack(states))
    if not after:
        assert_close(asking[0], torch.tanh(model.decoder.bridge(read.state[0][-1])))


# a decoder without an encoder


def attentive(**fields):
    return build(BahdanauConfig(), encoder="none", tie_embeddings="target", **fields).eval()


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_without_an_encoder_the_decoder_reads_the_vectors_of_the_source(cell):
    model = attentive(cell=cell, num_layers=2, positions={"kind": "sinusoidal"})
    memory = model.encode(SOURCE)
    assert_close(memory.values, model.source(SOURCE).values)
    assert not hasattr(model.encoder, "layers")


@pytest.mark.parametrize(("cell", "parts"), [("lstm", 2), ("gru", 1)])
def test_the_first_state_is_a_map_of_the_mean_of_real_vectors(cell, parts):
    model = attentive(cell=cell, num_layers=3)
    memory = model.encode(SOURCE)
    vectors = model.source(SOURCE).values
    means = torch.stack([vectors[0].mean(0), vectors[1, :4].mean(0)])
    expected = (means @ model.encoder.first.weight.T + model.encoder.first.bias).split(12, -1)
    assert len(memory.state) == len(expected) == parts
    for found, wanted in zip(memory.state, expected, strict=True):
        assert found.shape == (3, 2, 12)
        assert_close(found, wanted.expand(3, -1, -1))


def test_without_positions_the_vectors_of_a_source_have_no_order():
    turned = SOURCE[:1].flip(1)
    for positions, alike in (({"kind": "none"}, True), ({"kind": "sinusoidal"}, False), ({"kind": "learned"}, False)):
        model = attentive(positions=positions)
        scores, other = model.scores(SOURCE[:1], TARGET[:1]), model.scores(turned, TARGET[:1])
        assert torch.allclose(scores, other, atol=1e-5) is alike, positions


def test_positions_inside_self_attention_are_refused():
    with pytest.raises(ValueError, match=r"positions rotary act inside self-attention.* choose sinusoidal, learned or"):
        attentive(positions={"kind": "rotary"})
