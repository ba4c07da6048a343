import pytest
import torch
import torch.nn.functional as F
from greedy_decoding import STEPS, by_torch
from torch import nn
from torch_transformer import Translator

from benchmarks.smoke import BATCH_TOKENS, BATCHES, random_batches

SHAPE = {"vocab_size": 20, "d_model": 8, "num_heads": 2, "num_layers": 1, "d_ff": 16, "dropout": 0.0, "max_length": 40}
SOURCE = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")  # pre-norm has none


def test_blocks_are_as_the_models_read_them():
    batches = random_batches()
    assert len(batches) == BATCHES
    for source, target in batches:
        assert len(source) == len(target)
        assert len(target) * (len(target[0]) - 1) <= BATCH_TOKENS
        for row in source + target:
            words = [token for token in row if token]
            assert row == words + [0] * (len(row) - len(words))
            assert words[-1] == 2 and words.count(2) == 1
        assert all(row[0] == 1 for row in target)


def test_they_are_the_same_every_time():
    assert random_batches() == random_batches()


def test_the_translator_around_torch_s_transformer_is_its_forward():
    model, read, padding = Translator(SHAPE).eval(), torch.tensor([[1, 9, 4], [1, 3, 3]]), SOURCE == 0
    vectors = model.transformer(
        model.embed(SOURCE),
        model.embed(read),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(3),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
        tgt_is_causal=True,
    )
    torch.testing.assert_close(model(SOURCE, read), F.linear(vectors, model.embedding.weight))


def test_torch_s_encoder_reads_the_source_once_and_its_decoder_the_prefix_at_each_step():
    model, calls = Translator(SHAPE).eval(), []
    for name in ("encoder", "decoder"):
        part = getattr(model.transformer, name)
        part.register_forward_hook(lambda *given, name=name: calls.append((name, given[1][0].shape[1])))
    by_torch(model, SOURCE)
    assert calls == [("encoder", 4), *(("decoder", length) for length in range(1, STEPS + 1))]
