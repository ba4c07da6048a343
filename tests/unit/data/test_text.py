import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regardant import config as configuration
from regardant.data.text import MARKER, EncodedText, TextFilesConfig, cut
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer
from regardant.errors import ConfigError, DataError

TEXT = "First  line.\r\n\n\tSecond,\u2028line: été!\n" * 20


@pytest.fixture
def text(tmp_path):
    """The configuration of a file that holds TEXT, with fields set."""
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    return lambda **fields: TextFilesConfig(**{"source": "a.txt", "root": str(tmp_path)} | fields)


@pytest.fixture
def encoded(tmp_path):
    """A text as tokens of a kind, and their tokenizer."""

    def encode(config, kind="character"):
        tokenizer = Tokenizer.train(TokenizerConfig(kind=kind), config.pieces(), 1000)
        return EncodedText.build(config, config.sizes(), tokenizer, tmp_path / kind), tokenizer

    return encode


@pytest.mark.parametrize("kind", ["character", "byte"])
def test_every_space_and_line_end_comes_back(text, encoded, kind):
    found, tokenizer = encoded(text(validation_share=0.3, test_share=0.2), kind)
    assert list(found.tokens) == ["train", "validation", "test"]
    assert "".join(tokenizer.decode(ids.tolist()) for ids in found.tokens.values()) == TEXT


def test_the_first_nine_tenths_are_trained_on_and_the_last_one_validated(text, encoded):
    found, tokenizer = encoded(text())
    size = int(len(TEXT) * 0.9)
    assert found.characters == {"train": size, "validation": len(TEXT) - size}
    assert tokenizer.decode(found.tokens["train"].tolist()) == TEXT[:size]


def test_the_test_s_share_is_the_last(text, encoded):
    found, tokenizer = encoded(text(validation_share=0.2, test_share=0.1))
    assert tokenizer.decode(found.tokens["test"].tolist()) == TEXT[-len(found.tokens["test"]) :]
    assert len(found.tokens["test"]) == pytest.approx(0.1 * len(TEXT), abs=1)


def test_several_files_are_one_text_in_their_order(tmp_path, text):
    (tmp_path / "b.txt").write_text("and more\n", encoding="utf-8")
    assert "".join(text(source=["a.txt", "b.txt"]).pieces()) == TEXT + "and more\n"


def test_fingerprints_are_of_the_text_and_characters_are_counted(text, encoded):
    found, _ = encoded(text(), "byte")
    size = found.characters["train"]
    assert found.fingerprints["train"] == hashlib.sha256(TEXT[:size].encode()).hexdigest()
    assert len(found.tokens["train"]) == len(TEXT[:size].encode()) > size


def test_tokens_are_mapped_and_read_only(text, encoded):
    ids = encoded(text())[0].tokens["train"]
    assert isinstance(ids, np.memmap) and ids.dtype == np.uint16
    assert not ids.flags.writeable


@given(
    pieces=st.lists(st.text(max_size=9), max_size=9),
    shares=st.lists(st.integers(1, 5), min_size=1, max_size=3),
)
def test_what_is_cut_is_whole_and_of_the_sizes_asked(pieces, shares):
    total = len("".join(pieces))
    sizes = {str(n): total * share // sum(shares) for n, share in enumerate(shares)}
    sizes["0"] += total - sum(sizes.values())
    parts = list(cut(pieces, sizes))
    assert "".join(piece for _, piece in parts) == "".join(pieces)
    for name, size in sizes.items():
        assert sum(len(piece) for split, piece in parts if split == name) == size
    assert [name for name, _ in parts] == sorted(name for name, _ in parts)


def test_too_short_a_text_says_what_each_split_would_get(tmp_path):
    (tmp_path / "short.txt").write_text("0123456789", encoding="utf-8")
    with pytest.raises(DataError, match=r"short.txt: 10 characters .* \(9 to train, 1 to validation\): give more"):
        TextFilesConfig(source="short.txt", root=str(tmp_path)).sizes()


def test_a_missing_file_is_told_before_any_is_read(tmp_path, text):
    with pytest.raises(DataError, match=r"no file .*b\.txt; did you mean a\.txt"):
        next(text(source=["a.txt", "b.txt"]).pieces())


def test_shares_that_leave_nothing_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"validation_share \(0.5\) and test_share \(0.5\) leave nothing to train on"):
        configuration.load(TextFilesConfig, {"source": "a", "validation_share": 0.5, "test_share": 0.5})


@pytest.mark.parametrize("name", [MARKER, "train.ids"])
def test_a_damaged_folder_is_named(tmp_path, text, encoded, name):
    encoded(text())
    path = tmp_path / "character" / name
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(DataError, match="character is damaged"):
        EncodedText.load(tmp_path / "character")


def test_the_marker_is_written_last(tmp_path, text, encoded, monkeypatch):
    monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        encoded(text())
    assert not (tmp_path / "character" / MARKER).exists()


def test_a_root_may_name_an_environment_variable(text, tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTS", str(tmp_path.parent))
    found = text(root=f"${{TEXTS}}/{tmp_path.name}")
    assert "".join(found.pieces()) == TEXT
    monkeypatch.delenv("TEXTS")
    with pytest.raises(DataError, match=r"data\.root names TEXTS, which is not set: export TEXTS=FOLDER, or --set"):
        list(found.pieces())
