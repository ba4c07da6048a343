"""Weights that an earlier version saved load under the names of today."""

import pytest
import torch

from regardant.errors import RunError
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.one_to_one import OneToOneConfig
from regardant.models.recurrent import RecurrentConfig
from regardant.positions.learned import LearnedConfig
from regardant.training.checkpoints import load_into, save_weights
from tests.models import over_pairs, over_text

SOURCE, TARGET = torch.tensor([[5, 6, 7, 3]]), torch.tensor([[1, 8, 9, 5]])


def decoder_only(tied):
    sizes = {"d_model": 8, "num_heads": 2, "num_layers": 2, "d_ff": 8, "max_length": 12}
    return over_text(DecoderOnlyConfig(**sizes, positions=LearnedConfig(), tie_embeddings=tied), 12)


def recurrent(tied):
    return over_pairs(RecurrentConfig(embedding_size=8, hidden_size=8, dropout=0.0, tie_embeddings=tied), 12)


def one_to_one(tied):
    return over_pairs(OneToOneConfig(embedding_size=8, hidden_size=8, dropout=0.0), 12)


FORMER = {
    "decoder_only": (
        decoder_only,
        {
            "text.table.weight": "embedding.table.weight",
            "text.positions.table": "embedding.positions.table",
            "decoder.positions.table": "positions.table",
            "decoder.final_norm.weight": "final_norm.weight",
            "decoder.final_norm.bias": "final_norm.bias",
            "decoder.layers.": "layers.",
        },
    ),
    "recurrent": (
        recurrent,
        {
            "source.table.weight": "source.weight",
            "target.table.weight": "target.weight",
            "decoder.narrow.": "narrow.",
        },
    ),
    "one_to_one": (one_to_one, {"source.table.weight": "source.weight"}),
}


def saved_formerly(model, former):
    """The model's weights under their names of then."""
    weights = {}
    for name, tensor in model.state_dict().items():
        prefix = next((now for now in former if name.startswith(now)), "")
        weights[former.get(prefix, "") + name.removeprefix(prefix)] = tensor
    return weights


def scores(model):
    model.eval()
    with torch.no_grad():
        return model.scores(TARGET) if model.inputs == ("text",) else model.scores(SOURCE, TARGET)


@pytest.mark.parametrize("tied", ["all", "none"])
@pytest.mark.parametrize(("make", "former"), FORMER.values(), ids=FORMER)
def test_weights_under_their_former_names_are_loaded(tmp_path, make, former, tied):
    torch.manual_seed(0)
    one, other = make(tied), make(tied)
    weights = saved_formerly(one, former)
    assert weights.keys().isdisjoint(name for name in one.state_dict() if any(map(name.startswith, former)))
    save_weights(tmp_path / "model.safetensors", weights, {})
    assert not torch.equal(scores(one), scores(other))
    load_into(other, tmp_path / "model.safetensors")
    assert torch.equal(scores(one), scores(other))


def test_weights_of_another_model_are_told_under_the_names_of_today(tmp_path):
    weights = saved_formerly(decoder_only("all"), FORMER["decoder_only"][1])
    del weights["layers.1.feed_forward.narrow.bias"]
    save_weights(tmp_path / "model.safetensors", weights, {})
    with pytest.raises(RunError, match=r"\(missing: decoder\.layers\.1\.feed_forward\.narrow\.bias\)"):
        load_into(decoder_only("all"), tmp_path / "model.safetensors")
