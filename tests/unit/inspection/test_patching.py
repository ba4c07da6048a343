import pytest
import torch

from regardant.attention import PassView
from regardant.inspection import patch_positions, patching
from regardant.layers.residual import PlainStream
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.recurrent import RecurrentLanguageModelConfig
from tests.models import over_text

SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 16, "num_layers": 3, "max_length": 16}
CLEAN = torch.tensor([5, 6, 7, 8, 9, 10])
CORRUPTED = torch.tensor([5, 16, 7, 8, 19, 10])
CHANGED = (1, 4)


def decoder_only(**fields):
    torch.manual_seed(0)
    model = over_text(DecoderOnlyConfig(**SIZES, **fields), 30).eval()
    with torch.no_grad():  # fresh weights attend to all alike
        for parameter in model.decoder.parameters():
            parameter.mul_(3)
    return model


def after(model, x, layers):
    stream = PlainStream(x)
    for layer in layers:
        layer(stream, PassView(causal=True), None, PassView())
    return stream.close()


@torch.no_grad()
def restored_one_by_one(model, depth, position, answer):
    """The share of one vector, by running the layers before it, changing it, and running those behind it."""
    layers = model.decoder.layers

    def log_probability(x):
        vectors = model.decoder.final_norm(after(model, x, layers[depth:]))
        return (vectors[0, -1] @ model.head.weight.T).log_softmax(-1)[answer]

    clean, corrupted = (after(model, model.text(text[None]).values, layers[:depth]) for text in (CLEAN, CORRUPTED))
    patched = corrupted.clone()
    patched[:, position] = clean[:, position]
    of_clean, of_corrupted, of_patched = (log_probability(x) for x in (clean, corrupted, patched))
    return float((of_patched - of_corrupted) / (of_clean - of_corrupted))


@pytest.mark.parametrize("fields", [{}, {"norm": "post"}], ids=str)
def test_every_share_is_that_of_one_vector_changed_by_hand(fields):
    model = decoder_only(**fields)
    found = patch_positions(model, CLEAN, CORRUPTED)
    logits = model.scores(text=torch.stack([CLEAN, CORRUPTED]))[:, -1].log_softmax(-1)
    assert found.answer == int(logits[0].argmax())
    assert [found.clean, found.corrupted] == pytest.approx(logits[:, found.answer].tolist(), rel=1e-5)
    expected = [[restored_one_by_one(model, depth, at, found.answer) for at in range(6)] for depth in range(4)]
    torch.testing.assert_close(found.restored, torch.tensor(expected), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("residual", ["add", "none", "reversible", "composition"])
def test_the_last_vector_restores_all_and_a_token_of_both_texts_nothing(residual):
    found = patch_positions(decoder_only(residual=residual), CLEAN, CORRUPTED).restored
    assert float(found[-1, -1]) == pytest.approx(1, abs=1e-3)
    assert found[-1, :-1].abs().max() < 1e-3, "no vector but the last is read after the last layer"
    same = [position for position in range(6) if position not in CHANGED]
    assert found[0, same].abs().max() < 1e-3
    one = CLEAN.where(torch.arange(6) != 1, CORRUPTED)
    assert float(patch_positions(decoder_only(residual=residual), CLEAN, one).restored[0, 1]) == pytest.approx(
        1, abs=1e-3
    )


def test_it_is_the_same_in_several_passes(monkeypatch):
    model = decoder_only()
    whole = patch_positions(model, CLEAN, CORRUPTED).restored
    monkeypatch.setattr(patching, "TOKENS_AT_ONCE", 14)  # two copies of six tokens
    torch.testing.assert_close(patch_positions(model, CLEAN, CORRUPTED).restored, whole, rtol=1e-3, atol=1e-3)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_what_cannot_be_patched_is_refused():
    with pytest.raises(ValueError, match="the texts have 6 and 5 tokens: give two of equal length"):
        patch_positions(decoder_only(), CLEAN, CORRUPTED[:5])
    with pytest.raises(ValueError, match="both texts make the answer equally likely"):
        patch_positions(decoder_only(), CLEAN, CLEAN)
    recurrent = over_text(RecurrentLanguageModelConfig(), 30).eval()
    with pytest.raises(ValueError, match="has no residual stream that leads to its head"):
        patch_positions(recurrent, CLEAN, CORRUPTED)
