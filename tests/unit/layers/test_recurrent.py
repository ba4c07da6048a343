import pytest
import torch
from torch.testing import assert_close

from regardant.layers.dropout import share_key
from regardant.layers.recurrent import RecurrentEncoder, RecurrentStack

CELLS = pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
LENGTH, SIZE = 6, 4


def stack(cell, num_layers=1):
    torch.manual_seed(0)
    return RecurrentStack(cell, 3, SIZE, num_layers, dropout=0.0)


def gradient_of_last(layer, x, bptt):
    """How much what is said last depends on each token: 1 where at all."""
    said, _ = layer(x, layer.start(x), bptt)
    (gradient,) = torch.autograd.grad(said[:, -1].sum(), x)
    return (gradient.abs().sum(-1)[0] > 0).int().tolist()


@CELLS
def test_a_carried_state_goes_on_where_it_was(cell):
    layer, x = stack(cell, 2), torch.randn(2, LENGTH, 3)
    whole, last = layer(x, layer.start(x))
    first, state = layer(x[:, :4], layer.start(x))
    second, carried = layer(x[:, 4:], state)
    assert_close(torch.cat([first, second], 1), whole)
    for one, other in zip(carried, last, strict=True):
        assert_close(one, other)


@CELLS
def test_truncation_cuts_gradients_and_not_states(cell):
    layer, x = stack(cell), torch.randn(1, LENGTH, 3, requires_grad=True)
    whole, _ = layer(x, layer.start(x))
    cut, _ = layer(x, layer.start(x), 2)
    assert_close(cut, whole)
    assert gradient_of_last(layer, x, None) == [1] * LENGTH
    assert gradient_of_last(layer, x, 2) == [0, 0, 0, 0, 1, 1]


@CELLS
def test_truncation_leaves_the_first_state_the_gradient_of_the_first_piece(cell):
    layer, x = stack(cell, 2), torch.randn(1, LENGTH, 3)
    first = tuple(torch.randn_like(part, requires_grad=True) for part in layer.start(x))
    whole, _ = layer(x, first)
    cut, _ = layer(x, first, 2)
    assert_close(torch.autograd.grad(cut.sum(), first), torch.autograd.grad(whole[:, :2].sum(), first))


@CELLS
@pytest.mark.parametrize("combine", ["concatenate", "add"])
def test_both_directions_have_the_size_together_and_padding_is_not_read(cell, combine):
    torch.manual_seed(0)
    encoder = RecurrentEncoder(cell, 3, SIZE, 2, 0.0, bidirectional=True, combine=combine)
    x, real = torch.randn(2, LENGTH, 3), torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    states, last = encoder.read(x, real)
    assert states.shape == (2, LENGTH, SIZE) and all(part.shape == (2, 2, SIZE) for part in last)
    alone, last_alone = encoder.read(x[1:, :4], real[1:, :4])
    assert_close(states[1:, :4], alone)
    for part, other in zip(last, last_alone, strict=True):
        assert_close(part[:, 1:], other)


def test_one_direction_knows_nothing_of_what_comes():
    torch.manual_seed(0)
    encoder = RecurrentEncoder("gru", 3, SIZE, 1, 0.0, bidirectional=False, combine="concatenate")
    x, real = torch.randn(1, LENGTH, 3), torch.ones(1, LENGTH).bool()
    after = x.clone()
    after[:, 3:] += 1
    assert_close(encoder.read(x, real)[0][:, :3], encoder.read(after, real)[0][:, :3])


@CELLS
def test_cells_on_a_cpu_compute_in_the_precision_of_their_weights(cell):
    layer, x, real = stack(cell, 2), torch.randn(2, LENGTH, 3), torch.ones(2, LENGTH).bool()
    encoder = RecurrentEncoder(cell, 3, SIZE, 2, 0.0, bidirectional=True, combine="concatenate")
    wide = layer(x, layer.start(x))[0], encoder.read(x, real)[0]
    with torch.autocast("cpu", torch.bfloat16):
        mixed = layer(x, layer.start(x))[0], encoder.read(x, real)[0]
        of_narrow, _ = layer(x.bfloat16(), layer.start(x.bfloat16()))
    assert all(torch.equal(*both) for both in zip(wide, mixed, strict=True))
    assert of_narrow.dtype == torch.float32


@CELLS
@pytest.mark.parametrize("combine", ["concatenate", "add"])
def test_the_last_state_of_a_bidirectional_encoder_is_the_one_after_all_tokens(cell, combine):
    """Compared with PyTorch's own layers, which read each sentence by itself, without padding."""
    torch.manual_seed(0)
    encoder = RecurrentEncoder(cell, 3, SIZE, 2, 0.0, bidirectional=True, combine=combine)
    x, lengths = torch.randn(2, LENGTH, 3), [6, 4]
    states, last = encoder.read(x, torch.arange(LENGTH) < torch.tensor(lengths)[:, None])
    for sentence, length in enumerate(lengths):
        read = x[sentence, :length]
        for number, layer in enumerate(encoder.layers):
            read, after = layer(read)
            forward, backward = read.chunk(2, -1)
            read = torch.cat([forward, backward], -1) if combine == "concatenate" else forward + backward
            for part, (forward, backward) in zip(last, after if cell == "lstm" else (after,), strict=True):
                both = torch.cat([forward, backward]) if combine == "concatenate" else forward + backward
                assert_close(part[number, sentence], both)
        assert_close(states[sentence, :length], read)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_an_encoder_in_pieces_has_the_states_of_one_that_reads_at_once(cell):
    torch.manual_seed(0)
    settings = {"input_size": 3, "size": 4, "num_layers": 2, "dropout": 0.0, "bidirectional": False, "combine": "add"}
    whole = RecurrentEncoder(cell, **settings)
    pieces = RecurrentEncoder(cell, **settings)
    pieces.truncate(3)
    pieces.load_state_dict(whole.state_dict())
    x = torch.randn(3, 8, 3, requires_grad=True)
    real = torch.arange(8) < torch.tensor([[8], [5], [3]])
    states, last = whole.read(x, real)
    cut, last_cut = pieces.read(x, real)
    assert_close(cut, states)
    assert_close(last_cut, last)
    (gradient,) = torch.autograd.grad(cut[0, 7].sum(), x)
    reached = gradient[0].abs().amax(-1) > 0
    assert reached.tolist() == [False] * 6 + [True] * 2  # the last piece begins at token 6


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_an_encoder_in_pieces_reads_padding_after_all_rows(cell):
    torch.manual_seed(0)
    encoder = RecurrentEncoder(cell, 3, 4, 2, 0.0, bidirectional=False, combine="add")
    encoder.truncate(3)
    x, real = torch.randn(2, 11, 3), torch.arange(11) < torch.tensor([[4], [2]])
    (states, last), (shorter, last_shorter) = encoder.read(x, real), encoder.read(x[:, :4], real[:, :4])
    torch.testing.assert_close(states[:, :4], shorter)
    torch.testing.assert_close(last, last_shorter)
    assert states.shape == (2, 11, 4) and not states[:, 6:].any()


def test_an_encoder_of_both_sides_is_not_cut():
    with pytest.raises(ValueError, match="set bidirectional=false"):
        RecurrentEncoder("gru", 3, 4, 1, 0.0, bidirectional=True, combine="add").truncate(3)


@CELLS
def test_each_truncated_piece_is_a_call_of_its_own(cell):
    torch.manual_seed(0)
    layer = RecurrentStack(cell, 3, SIZE, 2, dropout=0.5)
    share_key(layer)
    x = torch.randn(1, 4, 3)
    whole, _ = layer(x, layer.start(x), 2, call=5)
    first, state = layer(x[:, :2], layer.start(x), call=5)
    second, _ = layer(x[:, 2:], state, call=6)
    assert_close(whole, torch.cat([first, second], 1))
