"""Items of several parts as arrays of bytes, and back."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from regardant.config import Config
from regardant.data.recordings import Recording
from regardant.errors import DataError, RunError
from regardant.modalities import JoinedModalityConfig, ModalityConfig
from regardant.tasks.items.data import EncodedItems, ItemBatches

GENERATOR = np.random.default_rng(0)
TEXTS = ["is it even", "is it", "odd"]


def item(text, side=4):
    return {"question": text, "image": GENERATOR.random((side, side)).astype(np.float32)}


ITEMS = [item(text) for text in TEXTS]


def modality(**parts):
    parts = parts or {"question": {"kind": "text", "tokenizer": {"kind": "word"}}, "image": {"kind": "image"}}
    parts.get("image", {}).setdefault("patch_size", 2)
    return JoinedModalityConfig.model_validate({"parts": parts})


@pytest.fixture
def codec():
    return modality().fit(ITEMS)


def test_an_encoded_item_has_a_row_for_each_element_and_holds_every_part(codec):
    encoded = codec.encode(ITEMS)
    assert [len(one) for one in encoded] == [3 + 4, 2 + 4, 1 + 4]
    assert codec.lengths(np.array([7, 6])).tolist() == [7, 6]
    assert {(one.dtype.str, one.shape[1]) for one in encoded} == {("|u1", encoded[0].shape[1])}
    for given, one in zip(ITEMS, encoded, strict=True):
        question, image = codec.unpacked(one)
        assert codec.codecs["question"].tokenizer.decode(question.tolist()) == given["question"]
        assert np.array_equal(image[..., 0], given["image"])


def test_parts_of_other_types_and_lengths_come_back_as_they_were():
    recordings = [Recording(np.arange(size, dtype=np.int16), 8000) for size in (2000, 321)]
    items = [{"sound": one, "text": "a b " * (3 - 2 * number)} for number, one in enumerate(recordings)]
    found = modality(sound={"kind": "sound", "sample_rate": 8000}, text={"kind": "text"}).fit(items)
    for given, one in zip(items, found.encode(items), strict=True):
        sound, text = found.unpacked(one)
        assert np.array_equal(sound, given["sound"].samples)
        assert len(one) == len(found.labels(one)) == len(found.codecs["sound"].labels(sound)) + len(text)


def test_a_batch_has_the_block_of_each_part(codec):
    encoded = codec.encode(ITEMS)
    blocks = codec.collate(encoded)
    columns = list(zip(*(codec.unpacked(one) for one in encoded), strict=True))
    for block, own, column in zip(blocks.parts, codec.codecs.values(), columns, strict=True):
        assert torch.equal(block, own.collate(column))
    assert [list(lengths) for lengths in blocks.lengths] == [[3, 4], [2, 4], [1, 4]]
    assert len(blocks) == 3 and blocks.parts[0].shape == (3, 3) and blocks.parts[1].shape == (3, 4, 4, 1)


def test_parts_that_are_not_named_are_not_read():
    alone = modality(image={"kind": "image"}).fit(ITEMS)
    assert [len(one) for one in alone.encode(ITEMS)] == [4, 4, 4]


def test_what_it_learned_depends_on_training_items_and_is_kept(codec, tmp_path):
    codec.save(tmp_path)
    assert sorted(modality().files) == ["parts.json", "parts/image/image.json", "parts/question/tokenizer.json"]
    assert all((tmp_path / name).is_file() for name in modality().files)
    loaded = modality().load(tmp_path)
    assert loaded.describe() == codec.describe() and "image: 4 x 4 images in 4 patches" in codec.describe()
    assert all(np.array_equal(*both) for both in zip(loaded.encode(ITEMS), codec.encode(ITEMS), strict=True))
    assert codec.codecs["image"].statistics.mean == pytest.approx([np.mean([one["image"] for one in ITEMS])], rel=1e-5)
    (tmp_path / "parts.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match=r"parts\.json is damaged .*: restore it or train again"):
        modality().load(tmp_path)


def test_labels_are_those_of_the_parts_and_the_last_part_is_drawn(codec):
    (one,) = codec.encode(ITEMS[:1])
    patches = [f"row {row}, column {column}" for row in (1, 2) for column in (1, 2)]
    assert [label.strip("▁") for label in codec.labels(one)] == ["is", "it", "even", *patches]
    layout = codec.layout(one)
    assert (list(layout.labels), layout.rows, layout.columns) == (patches, 2, 2) and layout.picture is not None
    reverse = modality(image={"kind": "image"}, question={"kind": "text"}).fit(ITEMS)
    (other,) = reverse.encode(ITEMS[:1])
    assert not reverse.layout(other).is_grid and list(reverse.layout(other).labels) == reverse.labels(other)


def test_words_are_named_where_all_parts_have_words(codec):
    text = json.dumps({"question": "is it even", "image": "a.png"})
    assert codec.units(text, codec.encode(ITEMS[:1])[0]) == []
    both = modality(first={"kind": "text"}, second={"kind": "text"}).fit([{"first": "is it", "second": "even"}])
    argument = json.dumps({"first": "is it", "second": "even"})
    (one,) = both.encode([both.parse(argument)])
    assert [word for word, _ in both.units(argument, one)] == ["is", "it", "even"]
    assert sum(count for _, count in both.units(argument, one)) == len(one)


def test_a_written_item_of_parts_is_read_as_it_was(codec, tmp_path):
    (one,) = codec.encode([{**ITEMS[0], "image": np.full((4, 4), 51 / 255, np.float32)}])
    argument = codec.argument(one, tmp_path, "example")
    with Image.open(tmp_path / "example-image.png") as picture:
        assert json.loads(argument)["question"] == "is it even" and picture.size == (4, 4)
    assert np.array_equal(codec.encode([codec.parse(argument)])[0], one)
    (unknown,) = codec.encode([item("zzz")])
    assert codec.argument(unknown, tmp_path, "other") is None


def test_a_model_of_two_inputs_reads_its_parts(codec):
    (one,) = codec.encode(ITEMS[:1])
    assert codec.by_input(one, ["input"])["input"] == (codec, one)
    read = codec.by_input(one, ["image", "question"])
    assert list(read) == ["image", "question"] and read["image"][0] is codec.codecs["image"]
    assert np.array_equal(read["question"][1], codec.unpacked(one)[0])


def test_each_part_is_changed_as_its_kind_says():
    parts = {"first": {"kind": "text", "bpe_dropout": 0.9}, "second": {"kind": "text"}}
    texts = ["the lowest newest widest boat"] * 9
    codec = JoinedModalityConfig(parts=parts).fit([{"first": one, "second": one} for one in texts])
    (encoded,) = codec.encode([{"first": texts[0], "second": texts[0]}])
    before, after = codec.unpacked(encoded), codec.unpacked(codec.augmented(encoded, [1]))
    assert len(after[0]) > len(before[0]) and after[1].tolist() == before[1].tolist()


def test_an_item_that_smaller_pieces_make_too_long_is_trained_on_as_it_is():
    text = "the lowest newest widest boat"
    codec = JoinedModalityConfig(parts={"only": {"kind": "text", "bpe_dropout": 0.5}}).fit([{"only": text}] * 9)
    (encoded,) = codec.encode([{"only": text}])
    lengths = {}
    for longest in (len(encoded), len(encoded) + 2, 99):
        split = EncodedItems.of([encoded] * 20, [0] * 20)
        batches = ItemBatches(split, codec, batch_tokens=999, max_length=longest, seed=1)
        batches.augments = True
        lengths[longest] = {len(one) for planned in batches.plan(1) for one in batches.arrays(planned)}
    assert lengths[len(encoded)] == {len(encoded)}
    assert max(lengths[99]) > len(encoded) + 2 >= max(lengths[len(encoded) + 2])


def test_an_item_of_parts_is_never_cut(codec):
    (one,) = codec.encode(ITEMS[:1])
    assert codec.cut(one, 7) is one
    with pytest.raises(DataError, match="an item has 7 elements, of which at most 6"):
        codec.cut(one, 6)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("a text", "item 1 is of type str, not of several parts: set another input.kind"),
        ({"question": "is it"}, r"item 1 has no part 'image' \(there are: question\): correct input.parts"),
        (item("is it", 6), "part image: item 1 is 6 x 6, every image of the run is 4 x 4"),
        (item(" "), r"item 1 \(part question\) is blank: give a text"),
    ],
)
def test_an_item_with_a_wrong_part_is_told(codec, given, told):
    with pytest.raises(DataError, match=told):
        codec.encode([given])


@pytest.mark.parametrize("argument", ["x", "[1]", '{"question": "is it"}', '{"question": 3, "image": "a.png"}'])
def test_an_argument_that_is_no_item_is_told_with_an_example(codec, argument):
    with pytest.raises(DataError, match=r'is no item of the parts question, image: .* as {"question": "\.\.\."'):
        codec.parse(argument)


def test_half_a_character_is_told_with_its_part(codec):
    with pytest.raises(DataError, match=r"^part question has half of a surrogate pair, \\ud83d: write the whole"):
        codec.parse('{"question": "is it \\ud83d", "image": "a.png"}')


def test_a_file_that_is_missing_is_told_with_its_part(codec, tmp_path):
    with pytest.raises(DataError, match=r"part image: .*none\.png cannot be read"):
        codec.parse(json.dumps({"question": "is it", "image": str(tmp_path / "none.png")}))


class Holder(Config):
    input: ModalityConfig


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({}, "at least 1 item"),
        ({"a b": {"kind": "text"}}, "given 'a b'; a part's name has letters, digits and _ alone"),
        ({"table": {"kind": "series"}}, "'series'"),
        ({"more": {"kind": "joined", "parts": {"a": {"kind": "text"}}}}, "'joined'"),
    ],
)
def test_parts_that_cannot_be_read_are_refused(parts, told):
    with pytest.raises(ValueError, match=told):
        Holder.model_validate({"input": {"kind": "joined", "parts": parts}})
