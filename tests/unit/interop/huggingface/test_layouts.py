"""Tables are read in both directions: what is written is read again."""

import json
import re
from types import SimpleNamespace

import pytest
import torch

from regardant.errors import RunError
from regardant.interop.given import Given
from regardant.interop.huggingface import forms
from regardant.interop.huggingface.families import LAYOUTS
from regardant.interop.huggingface.forms import Sizes
from regardant.interop.huggingface.layouts import ACTIVATIONS, config_of, recipe_of
from regardant.interop.huggingface.reading import layout_of
from regardant.interop.huggingface.writing import layout_for
from regardant.layers.multi_head import HeadShape
from tests.unit.interop.huggingface.names import NAMES

pytestmark = pytest.mark.xdist_group("transformers")  # one process loads the library

GROUPED = HeadShape(d_model=12, num_heads=4, num_key_heads=2, key_size=6, value_size=3)
ROWS = [None, 3, 7, 1, None, 0, 2, 4, 5, 6]
SIZES = Sizes(GROUPED, ROWS, channels=3, patch_size=2)

CASES = {
    "SAME": [(4, 5)],
    "TRANSPOSED": [(4, 5)],
    "QUERY_KEY_VALUE": [(24, 5), (12, 5), (6, 5)],
    "KEY_VALUE": [(12, 5), (6, 5)],
    "ROTARY_QUERY_KEY_VALUE": [(24, 5), (12, 5), (6, 5)],
    "WORDS": [(8, 5)],
    "WORDS_OF_ONE_ROW": [(1, 8)],
    "PATCHES": [(5, 3, 2, 2)],
}
"""Shapes of a checkpoint's tensors, by form."""

FOLDED = {
    "POSITIONS_AND_TYPES": [(6, 5)],
    "POSITIONS_FROM_2_AND_TYPES": [(6, 5)],
    "CLASS_TOKEN_AND_POSITIONS": [(5,), (6, 5)],
}
"""Shapes of our tensors, by form that folds some of a checkpoint's into others."""


def test_every_form_has_a_case():
    assert {name for name, one in vars(forms).items() if isinstance(one, forms.Form)} == {*CASES, *FOLDED}


@pytest.mark.parametrize("name", CASES)
def test_a_form_writes_what_it_read(name):
    form, tensors = getattr(forms, name), [torch.randn(shape) for shape in CASES[name]]
    again = form.write(form.read(tensors, SIZES), SIZES)
    assert len(again) == len(tensors)
    assert all(torch.equal(one, other) for one, other in zip(tensors, again, strict=True))


@pytest.mark.parametrize("name", [*CASES, *FOLDED])
def test_a_form_reads_what_it_wrote(name):
    form = getattr(forms, name)
    ours = form.read([torch.randn(shape) for shape in CASES[name]], SIZES) if name in CASES else None
    ours = ours or [torch.randn(shape) for shape in FOLDED[name]]
    again = form.read(form.write(ours, SIZES), SIZES)
    assert all(torch.equal(one, other) for one, other in zip(ours, again, strict=True))


def test_words_stand_at_our_ids():
    (ours,) = forms.WORDS.read([torch.arange(8.0)[:, None]], SIZES)
    assert ours.flatten().tolist() == [0, 3, 7, 1, 0, 0, 2, 4, 5, 6]


@pytest.mark.parametrize("name", NAMES)
def test_settings_come_back(pair, name):
    config = json.loads((pair(name).folder / "config.json").read_text(encoding="utf-8"))
    config = {**(config.get("rope_parameters") or {}), **config}
    layout = layout_of(config)
    recipe = recipe_of(layout, config)
    written = config_of(layout, recipe)
    assert recipe_of(layout, written) == recipe
    for one in layout.settings:
        assert one.read(written) == one.read(config)


def test_an_activation_that_they_lack_is_named():
    layout = LAYOUTS[0]
    recipe = recipe_of(layout, {})
    recipe["model"]["feed_forward"]["activation"] = "elu"
    with pytest.raises(RunError, match=re.escape("model.feed_forward.activation elu")):
        config_of(layout, recipe)
    assert set(ACTIVATIONS.values()) == {"gelu", "gelu_tanh", "relu", "silu", "sigmoid"}


def test_no_two_entries_name_one_tensor():
    for layout in LAYOUTS:
        for side in ("ours", "theirs"):
            entries = [*layout.weights, *(one for some in layout.layers.values() for one in some)]
            names = [name for one in entries for name in getattr(one, side)]
            assert len(names) == len(set(names)), layout.architecture


def test_items_that_are_neither_texts_nor_images_have_no_layout():
    """Recordings and series, say, whose classifiers are of the task of a ViT."""
    given = Given(None, SimpleNamespace(task="classification"), None, None, ["a", "b"])
    with pytest.raises(RunError, match=r"^a run of classification has no Hugging Face layout: .* texts or images$"):
        layout_for(given)
