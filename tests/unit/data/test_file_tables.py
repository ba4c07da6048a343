"""Images in the cells of Parquet files and of saved Hugging Face datasets."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from regardant import config as configuration
from regardant.data.file_tables import FileTableConfig
from regardant.errors import DataError
from regardant.modalities import ImageModalityConfig
from regardant.tasks import load_recipe, task_named


def png(shade):
    written = io.BytesIO()
    Image.fromarray(np.full((8, 8), shade, np.uint8)).save(written, "PNG")
    return written.getvalue()


def parquet(path, images, labels, metadata=None):
    table = pa.table({"image": images, "label": labels}).replace_schema_metadata(metadata)
    pq.write_table(table, path)
    return str(path)


def shades(items):
    return [round(255 * float(one.mean())) for one in ImageModalityConfig(patch_size=4).fit(items).encode(items)]


NAMED = json.dumps({"info": {"features": {"label": {"names": ["cat", "dog"]}}}})
"""What a dataset writes of its columns: the labels have names."""

STRUCTS = [{"bytes": png(10 * number), "path": f"{number}.png"} for number in range(10)]


@pytest.mark.parametrize("structs", [True, False])
def test_a_row_of_a_parquet_file_is_an_image_with_its_label(tmp_path, structs):
    images = STRUCTS if structs else [one["bytes"] for one in STRUCTS]
    source = parquet(tmp_path / "a.parquet", images, ["dark", "light"] * 5)
    found = FileTableConfig(source="a.parquet", root=str(tmp_path)).given(tmp_path / "a.parquet")
    assert shades([item for item, _ in found]) == list(range(0, 100, 10))
    assert [label for _, label in found] == ["dark", "light"] * 5
    sets = FileTableConfig(source=source).read(1)
    assert {name: len(items) for name, items in sets.items()} == {"train": 9, "validation": 1}


def test_rows_of_one_image_stay_in_one_split(tmp_path):
    source = parquet(tmp_path / "a.parquet", STRUCTS * 3, ["dark", "light"] * 15)
    for seed in range(5):
        sets = FileTableConfig(source=source, validation_share=0.3).read(seed)
        train, validation = (shades([item for item, _ in sets[name]]) for name in ("train", "validation"))
        assert (len(train), len(validation)) == (21, 9) and not set(train) & set(validation)


def test_other_files_are_the_other_splits(tmp_path):
    given = {name: parquet(tmp_path / f"{name}.parquet", STRUCTS[:4], [1, 2, 1, 2]) for name in ("a", "b", "c")}
    sets = FileTableConfig(source=given["a"], validation=given["b"], test=given["c"]).read(1)
    assert {name: len(items) for name, items in sets.items()} == {"train": 4, "validation": 4, "test": 4}
    assert [label for _, label in sets["test"]] == ["1", "2", "1", "2"]


def test_files_that_datasets_wrote_have_the_names_of_their_labels(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    rows = {"image": STRUCTS, "label": [0, 1] * 5}
    whole = datasets.Dataset.from_dict(rows, features=features)
    whole.to_parquet(tmp_path / "a.parquet")
    datasets.DatasetDict({"train": whole, "test": whole.select(range(4))}).save_to_disk(tmp_path / "both")
    whole.save_to_disk(tmp_path / "one")
    for name in ("a.parquet", "one", "both"):
        sets = FileTableConfig(source=str(tmp_path / name), validation_share=0.2).read(1)
        assert {label for _, label in sets["train"]} == {"cat", "dog"}
        assert (len(sets["train"]), len(sets["validation"])) == (8, 2)
        assert shades([item for item, label in sets["train"] if label == "cat"])[0] % 20 == 0
    assert len(sets["test"]) == len(FileTableConfig(source="").given(tmp_path / "both")) == 4


def test_a_dataset_to_validate_on_gives_its_validation_split(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_dict({"image": STRUCTS, "label": ["a", "b"] * 5})
    splits = {"train": rows, "validation": rows.select(range(2)), "test": rows.select(range(4))}
    datasets.DatasetDict(splits).save_to_disk(tmp_path / "whole")
    datasets.DatasetDict({name: splits[name] for name in ("train", "test")}).save_to_disk(tmp_path / "part")
    source, whole, part = (
        parquet(tmp_path / "a.parquet", STRUCTS, ["a", "b"] * 5),
        *map(str, (tmp_path / "whole", tmp_path / "part")),
    )
    sets = FileTableConfig(source=source, validation=whole, test=whole).read(1)
    assert {name: len(items) for name, items in sets.items()} == {"train": 10, "validation": 2, "test": 4}
    with pytest.raises(DataError, match=r"part has the splits train, test, but no validation: give a dataset of one"):
        FileTableConfig(source=source, validation=part).read(1)


def test_a_classifier_is_prepared_from_a_table(tmp_path):
    source = parquet(tmp_path / "a.parquet", STRUCTS, ["dark", "light"] * 5)
    given = ["data.kind=file_table", f"data.source={source}"]
    config, lines = load_recipe(configuration.recipe("image_classification"), given), []
    task_named("classification").prepare(config, tmp_path / "run", lines.append)
    assert "2 labels: dark, light" in lines[0]
    assert lines[1] == "9 to train on, 1 to validate on; images resized to 8 x 8 in 16 patches of 2 x 2"


def written(folder, name):
    (folder / name).write_text("no table", encoding="utf-8")


REFUSED = {
    "missing": (lambda folder: None, {}, r"there is no file .*a\.parquet"),
    "no parquet": (lambda folder: written(folder, "a.parquet"), {}, r"a\.parquet cannot be read as parquet: "),
    "no dataset": (
        lambda folder: (folder / "a.parquet").mkdir(),
        {},
        r"is not a dataset written by save_to_disk: give such a folder or a \.parquet file, or set data\.kind=folders",
    ),
    "no column": (
        lambda folder: parquet(folder / "a.parquet", STRUCTS, ["a"] * 10),
        {"item": "picture"},
        r"has no column picture; it has image, label: set data\.item to one of them",
    ),
    "no label column": (
        lambda folder: parquet(folder / "a.parquet", STRUCTS, ["a"] * 10),
        {"label": "class"},
        r"has no column class; it has image, label: set data\.label to one of them",
    ),
    "text for bytes": (
        lambda folder: parquet(folder / "a.parquet", ["a"] * 3, ["a"] * 3),
        {},
        r"a\.parquet row 1: column image holds no bytes of a file: leave the row out, or correct data\.item",
    ),
    "no label": (
        lambda folder: parquet(folder / "a.parquet", STRUCTS[:2], ["a", None]),
        {},
        r"a\.parquet row 2: column label holds None, which is not a label: leave the row out",
    ),
    "no rows": (
        lambda folder: parquet(folder / "a.parquet", pa.array([], pa.binary()), pa.array([], pa.string())),
        {},
        "has no rows to train on: give a table with rows, or",
    ),
    "no rows to validate on": (
        lambda folder: (
            parquet(folder / "a.parquet", STRUCTS, ["a"] * 10),
            parquet(folder / "b.parquet", pa.array([], pa.binary()), pa.array([], pa.string())),
        ),
        {"validation": "b.parquet"},
        r"^nothing to validate on is left of b\.parquet: give more$",
    ),
    "a label without a name": (
        lambda folder: parquet(folder / "a.parquet", STRUCTS[:2], [1, -1], {"huggingface": NAMED}),
        {},
        r"row 2: column label holds -1, but the file names only the labels 0 to 1 \(.*\): leave the row",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_that_cannot_be_trained_on_is_one_line(tmp_path, case):
    make, fields, told = REFUSED[case]
    make(tmp_path)
    with pytest.raises(DataError, match=told) as refused:
        FileTableConfig(source="a.parquet", root=str(tmp_path), **fields).read(1)
    assert "\n" not in str(refused.value)


def test_a_damaged_image_is_named_by_its_row(tmp_path):
    source = parquet(tmp_path / "a.parquet", [png(1), b"no image"], ["a", "b"])
    items = [item for item, _ in FileTableConfig(source=source).given(tmp_path / "a.parquet")]
    with pytest.raises(DataError, match=r"^.*a\.parquet row 2 cannot be read \(cannot identify image file"):
        ImageModalityConfig(patch_size=4).fit(items)
