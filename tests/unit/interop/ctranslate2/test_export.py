import json

import pytest

from regardant.data.tokenizers import Tokenizers
from regardant.errors import ConfigError, RunError
from regardant.interop.ctranslate2.export import export, exported, require_intact


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "engines" / "here"


def test_an_export_holds_what_ctranslate2_reads_and_the_tokenizer(build, tokenizers, folder):
    export(build(), tokenizers, folder, "float32")
    names = ["config.json", "model.bin", "origin.sha256", "shared_vocabulary.json", "tokenizer.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert [path.name for path in folder.parent.iterdir()] == ["here"], "nothing else is left"
    told = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert told["add_source_eos"] and not told["add_source_bos"]
    assert (told["decoder_start_token"], told["eos_token"], told["unk_token"]) == ("<sos>", "<eos>", "<unk>")
    again = Tokenizers.load(folder / "tokenizer.json")
    assert json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8")) == again.target.pieces


def test_weights_of_eight_bits_take_a_quarter_of_the_room(build, tokenizers, tmp_path):
    model = build("d_model=64", "d_ff=512")
    for quantization in ("int8", "float32"):
        export(model, tokenizers, tmp_path / quantization, quantization)
    narrow, wide = ((tmp_path / name / "model.bin").stat().st_size for name in ("int8", "float32"))
    assert narrow < 0.35 * wide


def test_an_empty_folder_is_filled_and_one_that_holds_something_is_left_alone(build, tokenizers, tmp_path):
    (tmp_path / "empty").mkdir()
    export(build(), tokenizers, tmp_path / "empty", "int8")
    assert (tmp_path / "empty" / "model.bin").is_file()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine", encoding="utf-8")
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    for name in ("full", "file", "empty"):
        with pytest.raises(RunError, match=f"{name} is not empty: give another --out, or remove it"):
            export(build(), tokenizers, tmp_path / name, "int8")
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes"]


@pytest.mark.parametrize("write", [export, exported])
def test_a_quantization_that_there_is_not_is_refused_and_nothing_made(build, tokenizers, folder, write):
    message = "there is no quantization int4: take int8, int16, float16, bfloat16, float32"
    with pytest.raises(ConfigError, match=message):
        write(build(), tokenizers, folder, "int4")
    assert not folder.parent.exists()


def test_the_same_weights_are_exported_once(build, tokenizers, folder):
    exported(build(), tokenizers, folder, "int8")
    written = (folder / "model.bin").stat()
    (folder / "threads.json").write_text("{}", encoding="utf-8")  # measured when an export is opened
    exported(build(), tokenizers, folder, "int8")
    assert (folder / "model.bin").stat().st_ino == written.st_ino


def test_other_weights_take_the_place_of_an_export_and_of_all_beside_it(build, tokenizers, folder):
    model = build()
    exported(model, tokenizers, folder, "int8")
    before = (folder / "model.bin").read_bytes()
    (folder / "threads.json").write_text("{}", encoding="utf-8")
    model.head.weight.data[7, 3] += 1
    exported(model, tokenizers, folder, "int8")
    assert (folder / "model.bin").read_bytes() != before
    assert not (folder / "threads.json").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["here"]


def test_an_export_without_a_whole_record_of_its_origin_is_made_anew(build, tokenizers, folder):
    exported(build(), tokenizers, folder, "int8")
    (folder / "origin.sha256").write_text("", encoding="ascii")
    (folder / "model.bin").write_bytes(b"torn")
    exported(build(), tokenizers, folder, "int8")
    assert (folder / "model.bin").stat().st_size > 1000


@pytest.mark.parametrize("name", ["model.bin", "shared_vocabulary.json", "origin.sha256"])
def test_an_export_whose_files_changed_is_named(build, tokenizers, folder, name):
    exported(build(), tokenizers, folder, "int8")
    (folder / "threads.json").write_text("{}", encoding="utf-8")  # measured when an export is opened
    require_intact(folder)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-2] + b"x\n")
    with pytest.raises(RunError, match=f"^{folder} is not what was exported: remove it"):
        require_intact(folder)


def test_an_export_of_an_earlier_version_has_no_hash_of_its_files(build, tokenizers, folder):
    exported(build(), tokenizers, folder, "int8")
    (folder / "origin.sha256").write_text(64 * "0", encoding="ascii")
    require_intact(folder)
    (folder / "origin.sha256").write_text("", encoding="ascii")
    with pytest.raises(RunError, match="is not what was exported"):
        require_intact(folder)


def test_an_export_that_fails_leaves_the_old_one(build, tokenizers, folder, monkeypatch):
    exported(build(), tokenizers, folder, "int8")
    before = (folder / "model.bin").read_bytes()

    def full_disk(self, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Tokenizers, "save", full_disk)
    with pytest.raises(OSError, match="No space left"):
        exported(build("norm=post"), tokenizers, folder, "int8")
    assert (folder / "model.bin").read_bytes() == before
    assert [path.name for path in folder.parent.iterdir()] == ["here"]
