"""Every model that writes a target reads a source of any kind, or refuses it by name."""

import pytest
import torch

from regardant.data.vocabulary import EOS, PAD, SOS
from regardant.generation.config import GenerationConfig
from regardant.generation.search import generate
from regardant.models import SequenceToSequenceConfig, next_token, tokens
from regardant.models.representations import patches

IMAGES = torch.rand(3, 8, 8, 1, generator=torch.Generator().manual_seed(0))
TARGET = torch.tensor([[SOS, 5, 6, 7], [SOS, 8, 9, PAD], [SOS, 5, PAD, PAD]])
TARGETS = torch.tensor([[5, 6, 7, EOS], [8, 9, EOS, PAD], [5, EOS, PAD, PAD]])
SMALL = {
    "encoder_decoder": [
        {"d_model": 16, "num_heads": 2, "d_ff": 16, "encoder": {"num_layers": 1}, "decoder": {"num_layers": 1}}
    ],
    "recurrent": [
        {"embedding_size": 16, "hidden_size": 16, "decoder": {"kind": kind}}
        for kind in ("bahdanau", "luong", "cho", "sutskever")
    ]
    + [
        {"embedding_size": 8, "hidden_size": 16, "cell": cell, "num_layers": layers, "encoder": "none"}
        | {"positions": {"kind": "two_dimensional", "columns": 2}}
        for cell, layers in (("lstm", 2), ("gru", 1))
    ],
}
MODELS = [
    pytest.param(kind, sizes, id=f"{kind}-{number}") for kind in SMALL for number, sizes in enumerate(SMALL[kind])
]


def build(kind, sizes):
    torch.manual_seed(1)
    config = SequenceToSequenceConfig.kinds()[kind](tie_embeddings="target", max_length=16, **sizes)
    return config.build(patches(4, 1), tokens(12), next_token(12)).eval()


def test_all_kinds_of_models_are_listed():
    assert {*SMALL, "one_to_one"} <= set(SequenceToSequenceConfig.kinds())


@pytest.mark.parametrize(("kind", "sizes"), MODELS)
def test_it_writes_from_images_as_it_is_taught(kind, sizes):
    model = build(kind, sizes)
    with torch.inference_mode():
        taught = model.scores(IMAGES, TARGET)
        state = model.start(model.encode(IMAGES), 1, TARGET.shape[1])
        steps = [model.step(TARGET[:, [place]], state)[:, 0] for place in range(TARGET.shape[1])]
    real = TARGET != PAD
    torch.testing.assert_close(torch.stack(steps, 1)[real], taught[real], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("kind", "sizes"), MODELS)
def test_an_image_is_answered_alike_alone_and_among_others(kind, sizes):
    model, config = build(kind, sizes), GenerationConfig(beam_size=3, nbest=2, max_length_extra=6)
    together = generate(model, IMAGES, config, lengths=[4, 4, 4])
    alone = [generate(model, image[None], config, lengths=[4])[0] for image in IMAGES]
    for ours, others in zip(together, alone, strict=True):
        assert [one.tokens for one in ours] == [other.tokens for other in others]


@pytest.mark.parametrize(("kind", "sizes"), MODELS)
def test_every_parameter_learns_from_images(kind, sizes):
    model = build(kind, sizes)
    model(source=IMAGES, target=TARGET, targets=TARGETS).total.backward()
    still = [name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()]
    assert not still


def test_a_model_of_words_alone_refuses_images_by_name():
    config = SequenceToSequenceConfig.kinds()["one_to_one"]()
    with pytest.raises(ValueError, match=r"kind one_to_one writes a token for each token that it reads, .* patch"):
        config.build(patches(4, 1), tokens(12), next_token(12))
