"""What users plug in, in whole models: each trains, and decodes as it scores.

Shape legend: B sentences, W beams, S source length, T target length, A size of the attention's hidden layer.
"""

from dataclasses import dataclass

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from regardant.attention import View
from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.generation.config import GenerationConfig
from regardant.generation.scoring import score_pairs
from regardant.generation.search import generate
from regardant.models.base import SequenceToSequence
from regardant.models.config import EncoderDecoderConfig
from regardant.models.encoder_decoder import EncoderDecoder

from .plugins import AdditiveConfig, LinearConfig, RelativeBucketsConfig, RotaryConfig

VOCAB_SIZE = 12
SOURCE = torch.tensor([[5, 6, 7, 8, 9, EOS], [9, 5, 6, EOS, PAD, PAD], [10, 10, EOS, PAD, PAD, PAD]])
TARGET = torch.tensor([[SOS, 9, 8, 7, 6, 5, EOS], [SOS, 6, 5, 9, EOS, PAD, PAD], [SOS, 10, 10, EOS, PAD, PAD, PAD]])


def transformer(attention=None, **update) -> EncoderDecoder:
    config = EncoderDecoderConfig(preset=None, d_model=16, num_heads=4, d_ff=32, dropout=0, max_length=32)
    decoder = config.decoder.model_copy(update={"num_layers": 2} | ({"self_attention": attention} if attention else {}))
    encoder = config.encoder.model_copy(update={"num_layers": 2})
    config = config.model_copy(update={"encoder": encoder, "decoder": decoder, **update})
    return EncoderDecoder(config, VOCAB_SIZE, VOCAB_SIZE)


@dataclass
class RecurrentMemory:
    keys: Tensor
    """[B, 1, S, A]"""
    values: Tensor
    """[B, 1, S, E]"""
    real: Tensor
    """[B, S]"""


@dataclass
class RecurrentState:
    """Implements `models.base.DecodingState`."""

    memory: RecurrentMemory
    hidden: Tensor
    """[B, W, M]"""

    def reorder(self, beams: Tensor) -> None:
        self.hidden = self.hidden.gather(1, beams[..., None].expand_as(self.hidden))

    def keep(self, sentences: Tensor) -> None:
        memory = self.memory
        self.memory = RecurrentMemory(memory.keys[sentences], memory.values[sentences], memory.real[sentences])
        self.hidden = self.hidden[sentences]


class RecurrentSearch(nn.Module):
    """A recurrent decoder that searches what a recurrent encoder read (Bahdanau et al. 2015).

    Its queries have 10 numbers and its keys 24.
    """

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCAB_SIZE, 8)
        self.encoder = nn.GRU(8, 12, batch_first=True, bidirectional=True)
        self.query, self.key = nn.Linear(10, 8), nn.Linear(24, 8, bias=False)
        self.attention = AdditiveConfig().build(num_heads=1, head_size=8)
        self.cell = nn.GRUCell(8 + 24, 10)
        self.output = nn.Linear(10, VOCAB_SIZE)

    def encode(self, source: Tensor) -> RecurrentMemory:
        real = source != PAD
        packed = pack_padded_sequence(self.embedding(source), real.sum(1), batch_first=True, enforce_sorted=False)
        read, _ = pad_packed_sequence(self.encoder(packed)[0], batch_first=True, total_length=source.shape[1])
        return RecurrentMemory(self.key(read)[:, None], read[:, None], real)

    def start(self, memory: RecurrentMemory, beam_size: int, max_length: int) -> RecurrentState:
        return RecurrentState(memory, memory.keys.new_zeros(len(memory.keys), beam_size, 10))

    def step(self, tokens: Tensor, state: RecurrentState) -> Tensor:
        queries = self.query(state.hidden)[:, None]  # the beams of a sentence, [B, 1, W, A]
        memory = state.memory
        context = self.attention(queries, memory.keys, memory.values, View(keys=memory.real))[:, 0]
        read = torch.cat([self.embedding(tokens), context], -1)
        state.hidden = self.cell(read.flatten(0, 1), state.hidden.flatten(0, 1)).view_as(state.hidden)
        return self.output(state.hidden)

    def scores(self, source: Tensor, target: Tensor) -> Tensor:
        state = self.start(self.encode(source), 1, target.shape[1])
        return torch.cat([self.step(tokens, state) for tokens in target.split(1, 1)], 1)


MODELS = {
    "linear attention": lambda: transformer(LinearConfig()),
    "linear attention, fewer key heads": lambda: transformer(LinearConfig(), num_key_heads=2),
    "additive attention in a Transformer": lambda: transformer(AdditiveConfig()),
    "additive attention in a recurrent decoder": RecurrentSearch,
    "relative buckets": lambda: transformer(positions=RelativeBucketsConfig()),
    "relative buckets, fewer key heads": lambda: transformer(positions=RelativeBucketsConfig(), num_key_heads=2),
    "rotary": lambda: transformer(positions=RotaryConfig()),
    "rotary and linear attention": lambda: transformer(LinearConfig(), positions=RotaryConfig()),
}


@pytest.fixture(params=MODELS.values(), ids=MODELS)
def model(request) -> SequenceToSequence:
    torch.manual_seed(0)
    return request.param().eval()


@pytest.mark.parametrize("target", [TARGET, torch.full((3, 25), 7)], ids=["short", "long"])
def test_step_by_step_equals_teacher_forcing(model, target):
    with torch.no_grad():
        state = model.start(model.encode(SOURCE), 1, target.shape[1])
        stepped = torch.cat([model.step(tokens, state) for tokens in target.split(1, 1)], 1)
        assert_close(stepped, model.scores(SOURCE, target), rtol=1e-4, atol=1e-5)


def test_beams_are_scored_as_teacher_forcing_scores_them(model):
    config = GenerationConfig(beam_size=4, nbest=4, length_penalty=0, max_length_ratio=0, max_length_extra=9)
    for source, hypotheses in zip(SOURCE, generate(model, SOURCE, config), strict=True):
        for found in hypotheses:
            target = torch.tensor([[SOS, *found.tokens, *[EOS] * found.finished]])
            log_probability = score_pairs(model, source[None], target)
            assert found.log_probability == pytest.approx(log_probability.item(), abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_sentence_is_decoded_as_if_it_were_alone(model, beam_size):
    config = GenerationConfig(beam_size=beam_size, nbest=beam_size, max_length_ratio=0, max_length_extra=9)
    together = generate(model, SOURCE, config)
    alone = [generate(model, source[source != PAD][None], config)[0] for source in SOURCE]
    assert [[found.tokens for found in best] for best in together] == [
        [found.tokens for found in best] for best in alone
    ]


def test_it_learns_and_every_parameter_takes_part(model):
    optimizer = torch.optim.Adam(model.train().parameters(), lr=0.02)
    losses = []
    for _ in range(40):
        logits = model.scores(SOURCE, TARGET[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), TARGET[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
        assert not idle
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4


def test_linear_attention_decodes_in_constant_memory():
    model = MODELS["linear attention"]().eval()
    with torch.no_grad():
        state = model.start(model.encode(SOURCE), 2, 20)
        sizes = []
        for _ in range(20):
            model.step(torch.full((3, 2), 7), state)
            sizes.append([part.shape for own in state.own for part in own.remembered])
    assert sizes[0] == sizes[-1]
