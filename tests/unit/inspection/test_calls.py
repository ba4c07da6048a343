import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.inspection import capture, place_names
from regardant.layers.recurrent import RecurrentEncoder, RecurrentStack
from regardant.models.recurrent import RecurrentConfig
from tests.models import over_pairs

SIZE, LENGTH = 4, 6
REAL = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])


class Holder(nn.Module):
    """A model of one part."""

    def __init__(self, part):
        super().__init__()
        self.part = part


def rebuilt(cell, gates, first, backward):
    """The states that gates make of a state, [N, T, R]; what an LSTM keeps begins as zeros."""
    states, state, kept = [], first, torch.zeros_like(first)
    steps = range(gates["candidate"].shape[1])
    for step in reversed(steps) if backward else steps:
        gate = {name: numbers[:, step] for name, numbers in gates.items()}
        if cell == "gru":
            state = (1 - gate["update_gate"]) * gate["candidate"] + gate["update_gate"] * state
        else:
            kept = gate["forget_gate"] * kept + gate["input_gate"] * gate["candidate"]
            state = gate["output_gate"] * torch.tanh(kept)
        states.append(state)
    return torch.stack(states[::-1] if backward else states, 1)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_gates_make_the_states_that_the_cell_said(cell, bidirectional):
    torch.manual_seed(0)
    each = SIZE * 2 if bidirectional else SIZE
    encoder = RecurrentEncoder(cell, 3, each, 1, 0.0, bidirectional=bidirectional, combine="concatenate")
    with torch.no_grad(), capture(Holder(encoder)) as records:
        encoder.read(torch.randn(2, LENGTH, 3), REAL)
    states = records["part.layers.0.state"][0]
    assert states.shape == (2, 1 + bidirectional, LENGTH, SIZE)
    for row, length in enumerate(REAL.sum(1).tolist()):
        for way in range(1 + bidirectional):
            gates = {
                name.rpartition(".")[2]: calls[0][row : row + 1, way, :length]
                for name, calls in records.items()
                if not name.endswith(".state")
            }
            found = rebuilt(cell, gates, torch.zeros(1, SIZE), backward=bool(way))
            assert_close(found, states[row : row + 1, way, :length], rtol=0, atol=1e-5)


def test_gates_begin_from_the_state_that_was_handed_over():
    torch.manual_seed(0)
    stack, first = RecurrentStack("gru", 3, SIZE, 1, 0.0), torch.randn(1, 2, SIZE)
    with torch.no_grad(), capture(Holder(stack)) as records:
        said, _ = stack(torch.randn(2, LENGTH, 3), (first,))
    gates = {name: records[f"part.layers.0.{name}"][0][:, 0] for name in ("update_gate", "candidate")}
    assert_close(rebuilt("gru", gates, first[0], backward=False), said, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("cell", "gates"),
    [
        ("rnn", []),
        ("gru", ["candidate", "reset_gate", "update_gate"]),
        ("lstm", ["candidate", "forget_gate", "input_gate", "output_gate"]),
    ],
)
def test_a_cell_has_the_gates_of_its_kind(cell, gates):
    model = over_pairs(RecurrentConfig(cell=cell, hidden_size=8, embedding_size=8), 12)
    of_decoder = [name for name in place_names(model) if name.startswith("decoder.stack.layers.0.")]
    assert sorted(name.rpartition(".")[2] for name in of_decoder) == sorted([*gates, "state"])


def test_a_decoder_that_asks_step_by_step_is_called_once_a_token():
    torch.manual_seed(0)
    model = over_pairs(RecurrentConfig(hidden_size=8, embedding_size=8, dropout=0.0), 12).eval()
    source, target = torch.tensor([[5, 6, 7, EOS], [8, EOS, PAD, PAD]]), torch.tensor([[SOS, 5, 6], [SOS, 7, EOS]])
    with torch.no_grad(), capture(model, "*.weights") as records:
        model.scores(source, target)
    (place,) = records
    assert place == "decoder.cross_attention.weights"
    assert [tuple(weights.shape) for weights in records[place]] == [(2, 1, 1, 4)] * 3
    whole = records.whole(place)
    assert_close(whole.sum(-1), torch.ones(2, 1, 3))
    assert not whole[1, ..., 2:].any()
