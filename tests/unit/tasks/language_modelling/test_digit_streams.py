"""A run of the recipe digit-streams: images as text through every tool of a language model."""

import json
import shutil

import numpy as np
import pytest

from regardant import config, run
from regardant.data.digits import DigitsConfig
from regardant.tasks import load_recipe
from tests.runs import runs_of

SMALL = [
    "data.codes=16",
    "data.train_size=600",
    "data.validation_size=40",
    "data.test_size=40",
    "model.d_model=32",
    "model.num_layers=1",
    "model.num_heads=2",
    "model.d_ff=64",
    "training.max_updates=60",
    "training.validate_every=30",
    "training.batch_tokens=512",
    "training.precision=float32",
    "training.attention_kernel=sdpa",
    "training.processes=1",
]


@pytest.fixture(scope="module")
def streams(made_once):
    """The run, small. Its folder is shared: copy it to change it."""
    return runs_of("tiny-streams", lambda: load_recipe(config.recipe("digit-streams"), SMALL), made_once)()


def test_letters_and_codes_share_one_vocabulary(streams):
    tokenizer, book = streams.trained.tokenizer, streams.config.data.codebook()
    image, _ = DigitsConfig().read(1)["test"][0]
    text = f"a picture of a six: {book.encode(image)}\n"
    assert tokenizer.decode(tokenizer.encode_long(text).tolist()) == text
    assert book.decode(book.encode(image)).shape == (8, 8)
    assert streams.trained.score(text).as_dict()["loss"] > 0


def test_a_caption_is_continued_by_as_many_tokens_as_an_image_has(regardant, streams):
    said = regardant("generate", streams.folder, "the number three: ")
    assert said.code == 0 and said.lines[0].startswith("the number three: "), said.err
    (found,) = streams.predict(["the number three: "])
    assert len(found.answer) == 16


def test_it_is_scored_inspected_measured_and_compared(regardant, streams, tmp_path):
    folders = [shutil.copytree(streams.folder, tmp_path / name) for name in ("one", "other")]
    for folder in folders:
        said = regardant("evaluate", folder, "--json")
        assert said.code == 0 and json.loads(said.out)["tokens"] > 500, said.err
    assert regardant("compare", *folders, "--json").code == 0
    own = run.load(folders[0])
    found = own.inspect("a six: ⠀")
    assert found.inputs["text"].labels[-1] == "⠀" and np.isfinite(found.pictures[0].weights).all()
    assert own.measure().heads and own.doctor().seen
    assert len(own.trained.examples(3, tmp_path)) == 3
