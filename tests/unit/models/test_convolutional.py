"""Convolutional networks: places and features, what a place sees, and what is refused."""

import pytest
import torch
from torch.testing import assert_close

from regardant.models.convolutional import ConvolutionalConfig
from regardant.models.heads import SequenceClassConfig
from regardant.models.representations import patches, tokens


def built(config=ConvolutionalConfig(channels=4, num_stages=3, dropout=0.0), given=None, **head):  # noqa: B008
    torch.manual_seed(0)
    answers = SequenceClassConfig(**head)
    return config.build(given or patches(4, 2), lambda d_model: answers.build(d_model, 3)).eval()


def images(height=16, width=24):
    return torch.randn(2, height, width, 2, generator=torch.Generator().manual_seed(0))


def test_stages_halve_the_sides_and_double_the_features():
    model = built()
    assert model.vectors(images()).values.shape == (2, 4 * 6, 16)
    assert model.scores(images()).shape == (2, 3)
    assert ConvolutionalConfig(channels=5, num_stages=1).d_model == 5
    assert model.attention_kinds == {}


def test_places_are_read_row_by_row():
    model, block = built(), images()
    features = model.input.stages(block.permute(0, 3, 1, 2))
    found = model.input(block).values
    for row in range(4):
        for column in range(6):
            assert_close(found[:, 6 * row + column], features[:, :, row, column])


def test_images_of_another_size_have_scores_and_order_matters():
    model = built()
    assert model.scores(images(8, 8)).isfinite().all()
    assert (model.scores(images().flip(2)) - model.scores(images())).abs().max() > 1e-3


def test_every_weight_learns_and_dropout_follows_its_key():
    model = built(ConvolutionalConfig(channels=4, dropout=0.5)).train()
    model(images(), targets=torch.tensor([0, 2])).total.backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters())
    one = model.scores(images())
    assert_close(model.scores(images()), one, rtol=0, atol=0)
    model.dropout_key.update += 1
    assert (model.scores(images()) - one).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: built(given=tokens(9)), "convolutional reads images, not tokens: set input.kind=image, or another"),
        (lambda: built(pooling="class_token"), "into the class token: set head.pooling=mean or max"),
        (lambda: built(pooling="first"), "into the first element: set head.pooling=mean or max"),
        (lambda: built(pooling="last"), "into the last element: set head.pooling=mean or max"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make, told):
    with pytest.raises(ValueError, match=told):
        make()
