import csv
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from regardant.data import text_files
from regardant.data.labelled import TableConfig
from regardant.data.tables import read_dataset, read_table
from regardant.data.text_files import Fault, PairRecord, read_lines, read_text, read_text_files
from regardant.errors import DataError

PAIRS = [("The cat.", "Le chat."), ('She said "no".', "Elle a dit « non »."), ("", "Été, déjà"), ("a, b", "")]
RECORDS = [PairRecord(line, source, target) for line, (source, target) in enumerate(PAIRS, 1)]
NOT_UTF8 = b"caf\xe9"


def write_sides(folder: Path, source: bytes, target: bytes) -> tuple[Path, Path]:
    (folder / "train.en").write_bytes(source)
    (folder / "train.fr").write_bytes(target)
    return folder / "train.en", folder / "train.fr"


def texts(records):
    return [(source, target) for _, source, target in records]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", ["with a line end", "without"])
def test_two_files_give_a_record_a_line(tmp_path, end, last):
    sides = [end.join(text.encode() for text in side) for side in (["a", "", "c"], ["x", "y", "z"])]
    files = write_sides(tmp_path, *(side + end if last == "with a line end" else side for side in sides))
    assert list(read_text_files(*files)) == [PairRecord(1, "a", "x"), PairRecord(2, "", "y"), PairRecord(3, "c", "z")]


@given(lines=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff\0")), min_size=1))
def test_only_a_line_feed_ends_a_line(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("text") / "all.txt"
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    assert [record.source for record in read_text_files(path, path)] == lines


def test_a_carriage_return_and_a_line_separator_stay_inside_a_line(tmp_path):
    line = "one\u2028two\x85three\x0bfour\x0cfive\rsix"
    files = write_sides(tmp_path, f"{line}\r\nend\n".encode(), b"x\ny\n")
    assert list(read_text_files(*files)) == [PairRecord(1, line, "x"), PairRecord(2, "end", "y")]


def test_a_byte_order_mark_is_dropped_from_the_start_only(tmp_path):
    files = write_sides(tmp_path, "\ufeffa\n\ufeffb\n".encode(), b"x\ny\n")
    assert texts(read_text_files(*files)) == [("a", "x"), ("\ufeffb", "y")]


def test_compressed_files_read_as_plain_ones(tmp_path):
    text = "".join(f"sentence {number} é\n" for number in range(5000)).encode()
    half = len(text) // 2
    pack = zstandard.ZstdCompressor().compress
    plain, gz, zst = (tmp_path / name for name in ("a.en", "a.en.gz", "a.en.zst"))
    plain.write_bytes(text)
    gz.write_bytes(gzip.compress(text[:half]) + gzip.compress(text[half:]))  # joined archives, as cat makes them
    zst.write_bytes(pack(text[:half]) + pack(text[half:]))
    expected = list(read_text_files(plain, plain))
    assert len(expected) == 5000
    assert list(read_text_files(gz, zst)) == expected


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_truncated_file_is_refused_and_not_read_short(tmp_path, suffix):
    text = os.urandom(50_000).hex().encode()
    packed = gzip.compress(text) if suffix == ".gz" else zstandard.ZstdCompressor().compress(text)
    path = tmp_path / f"a.en{suffix}"
    path.write_bytes(packed[:-100])
    with pytest.raises(DataError, match=r"a\.en.* cannot be read: Truncated"):
        list(read_text_files(path, path))


@pytest.mark.parametrize("longer", ["train.en", "train.fr"])
def test_files_of_unequal_length_are_named_with_both_counts(tmp_path, longer):
    files = write_sides(tmp_path, b"a\nb\n", b"x\ny\n")
    (tmp_path / longer).write_bytes(b"1\n2\n3\n4\n5\n")
    counts = {"train.en": 2, "train.fr": 2, longer: 5}
    with pytest.raises(DataError) as caught:
        list(read_text_files(*files))
    for name, count in counts.items():
        assert f"{name} has {count}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_noticed_at_once_with_a_name_like_it(tmp_path):
    files = write_sides(tmp_path, b"", b"")
    with pytest.raises(DataError, match=r"no file .*train\.enn; did you mean train\.en"):
        read_text_files(tmp_path / "train.enn", files[1])
    with pytest.raises(DataError, match=r"no folder .*elsewhere either"):
        read_text_files(files[0], tmp_path / "elsewhere" / "train.fr")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path, "a", "b")


def test_bytes_that_are_no_utf8_are_a_fault_of_their_line_alone(tmp_path):
    files = write_sides(tmp_path, b"a\n" + NOT_UTF8 + b"\nc\n", b"x\ny\n\xff\n")
    assert list(read_text_files(*files)) == [
        PairRecord(1, "a", "x"),
        PairRecord(2, Fault.BAD_ENCODING, "y"),
        PairRecord(3, "c", Fault.BAD_ENCODING),
    ]


def test_reading_is_lazy(tmp_path):
    files = write_sides(tmp_path, b"a\n" * 100_000, b"x\n" * 100_001)
    assert next(read_text_files(*files)) == PairRecord(1, "a", "x")


def write_tsv(path: Path) -> None:
    path.write_text("".join(f"{n}\t{s}\t{t}\n" for n, (s, t) in [("id", ("en", "fr")), *enumerate(PAIRS)]))


def write_csv(path: Path) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "en", "fr"), *((n, *pair) for n, pair in enumerate(PAIRS))])


def write_json(path: Path) -> None:
    path.write_text("".join(json.dumps({"id": n, "en": s, "fr": t}) + "\n" for n, (s, t) in enumerate(PAIRS)))


def write_parquet(path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([{"id": n, "en": s, "fr": t} for n, (s, t) in enumerate(PAIRS)]), path)


WRITERS = {"a.tsv": write_tsv, "a.csv": write_csv, "a.jsonl": write_json, "a.json": write_json}


@pytest.mark.parametrize("name", [*WRITERS, "a.parquet"])
def test_every_kind_of_table_gives_the_same_pairs(tmp_path, name):
    path = tmp_path / name
    {**WRITERS, "a.parquet": write_parquet}[name](path)
    assert texts(read_table(path, "en", "fr")) == PAIRS
    assert texts(read_table(path, "fr", "en")) == [(target, source) for source, target in PAIRS]


@pytest.mark.parametrize("name", WRITERS)
def test_a_compressed_table_reads_as_a_plain_one(tmp_path, name):
    plain = tmp_path / name
    WRITERS[name](plain)
    for suffix, pack in ((".gz", gzip.compress), (".zst", zstandard.ZstdCompressor().compress)):
        packed = tmp_path / (name + suffix)
        packed.write_bytes(pack(plain.read_bytes()))
        assert list(read_table(packed, "en", "fr")) == list(read_table(plain, "en", "fr"))


@pytest.mark.parametrize("name", [*WRITERS, "a.parquet"])
def test_an_unknown_column_is_answered_with_those_there_are(tmp_path, name):
    path = tmp_path / name
    {**WRITERS, "a.parquet": write_parquet}[name](path)
    with pytest.raises(DataError, match=rf"{name} has no column de; it has id, en, fr"):
        list(read_table(path, "en", "de"))


def test_columns_may_be_numbers_where_there_is_no_header(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("5\tthe cat\tle chat\n6\ta dog\n\n")
    assert list(read_table(path, "2", "3")) == [
        PairRecord(1, "the cat", "le chat"),
        PairRecord(2, "a dog", Fault.MISSING),
    ]
    with pytest.raises(DataError, match="no column 4; it has 1, 2, 3"):
        list(read_table(path, "2", "4"))


@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_a_blank_line_is_no_row(tmp_path, name):
    between = {"a.tsv": "\t", "a.csv": ","}[name]
    (tmp_path / name).write_text("\n".join(between.join(row) for row in (("text", "label"), ("a", "b"))) + "\n\n")
    config = TableConfig(root=str(tmp_path), source=name, text="text", label="label")
    said = []
    assert list(config.chosen(said.append).items(name)) == [("a", "b")]
    assert not any("left out" in line for line in said)


@pytest.mark.parametrize(
    ("name", "rows", "problem"),
    [
        ("a.csv", b"text,label\ncaf\xe9,x\n", "its text is not UTF-8: save the file in UTF-8"),
        ("a.csv", b"text,label\na\n", "a cell is missing: complete the line or leave it out"),
        ("a.jsonl", b'\n{"text": "a\\u0000b", "label": "x"}\n', "its text has NUL characters: remove them"),
    ],
)
def test_a_row_without_text_is_refused_with_its_reason(tmp_path, name, rows, problem):
    (tmp_path / name).write_bytes(rows)
    with pytest.raises(DataError, match=rf"^.*{name} line 2: {problem}$"):
        list(TableConfig(root=str(tmp_path), source=name, text="text", label="label").items(name))


@pytest.mark.parametrize("name", ["A.CSV", "a.Csv.gz"])
def test_the_kind_of_a_table_may_be_in_capitals(tmp_path, name):
    write = gzip.compress if name.endswith(".gz") else bytes
    (tmp_path / name).write_bytes(write(b"en,fr\none,un\n"))
    assert list(read_table(tmp_path / name, "en", "fr")) == [(2, "one", "un")]


def test_cells_of_a_csv_file_without_commas_in_its_first_line_are_separated_by_semicolons(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfen;fr\r\n"one, two";un\r\nthree;"a;b"\r\n')
    assert list(read_table(path, "en", "fr")) == [(2, "one, two", "un"), (3, "three", "a;b")]
    path.write_text("a,b;c\nd,e;f\n", encoding="utf-8")
    assert list(read_table(path, "1", "2")) == [(1, "a", "b;c"), (2, "d", "e;f")]


def test_a_quoted_cell_of_a_csv_file_may_hold_line_ends(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'en,fr\n"two\nlines, ""quoted""",x\n\ncaf\xe9,y\nd,z\n')
    assert list(read_table(path, "en", "fr")) == [
        PairRecord(2, 'two\nlines, "quoted"', "x"),
        PairRecord(5, Fault.BAD_ENCODING, "y"),
        PairRecord(6, "d", "z"),
    ]


def test_a_quote_left_open_is_an_error_with_its_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('en,fr\na,x\n"b,y\nc,z\n')
    with pytest.raises(DataError, match=r"a\.csv line 3: .*quote"):
        list(read_table(path, "en", "fr"))


def test_dots_reach_into_json_objects(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"t": {"en": "a", "fr": "x"}}\n\n{"t": {"en": "b", "fr": null}}\n{"t": {"en": "c"}}\n')
    assert list(read_table(path, "t.en", "t.fr")) == [
        PairRecord(1, "a", "x"),
        PairRecord(3, "b", Fault.MISSING),
        PairRecord(4, "c", Fault.MISSING),
    ]
    with pytest.raises(DataError, match=r"no column t; it has t\.en, t\.fr"):
        list(read_table(path, "t", "t.fr"))


def test_half_a_surrogate_pair_in_json_is_a_bad_encoding(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"en": "\\ud83d", "fr": "x"}\n{"en": "\xff", "fr": "y"}\n{"en": "\\ud83d\\ude00", "fr": "z"}\n')
    assert texts(read_table(path, "en", "fr")) == [
        (Fault.BAD_ENCODING, "x"),
        (Fault.BAD_ENCODING, Fault.BAD_ENCODING),
        ("😀", "z"),
    ]


@pytest.mark.parametrize(
    ("line", "problem"), [("[1]", "JSON object"), ("{", "JSON object"), ('{"en":"a","fr":3}', "holds 3")]
)
def test_json_that_is_no_pair_of_texts_is_an_error_with_its_line(tmp_path, line, problem):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"en": "a", "fr": "x"}}\n{line}\n')
    with pytest.raises(DataError, match=rf"a\.jsonl line 2.*{problem}"):
        list(read_table(path, "en", "fr"))


def test_parquet_gives_faults_for_nulls_and_bad_bytes_and_reaches_into_structs(tmp_path):
    path = tmp_path / "a.parquet"
    english = pa.array([b"a", NOT_UTF8, None]).view(pa.string())
    french = pa.array(["x", "y", "z"], pa.large_string())
    struct = pa.StructArray.from_arrays([english, french], ["en", "fr"])
    pq.write_table(pa.table({"translation": struct, "id": [1, 2, 3]}), path)
    assert list(read_table(path, "translation.en", "translation.fr")) == [
        PairRecord(1, "a", "x"),
        PairRecord(2, Fault.BAD_ENCODING, "y"),
        PairRecord(3, Fault.MISSING, "z"),
    ]
    with pytest.raises(
        DataError, match="column id holds int64, not text: save it as a column of strings, or name another"
    ):
        list(read_table(path, "translation.en", "id"))


def test_a_file_that_only_claims_to_be_parquet_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_text("en\tfr\n")
    with pytest.raises(DataError, match="cannot be read as parquet"):
        list(read_table(path, "en", "fr"))


def test_rows_of_parquet_are_counted_on_across_batches(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"en": ["a"] * 2500, "fr": ["x"] * 2500}), path)
    assert [record.line for record in read_table(path, "en", "fr")] == list(range(1, 2501))


@pytest.fixture
def dataset():
    return datasets.Dataset.from_list([{"translation": {"en": s, "fr": t}} for s, t in PAIRS])


def test_a_saved_dataset_gives_the_same_pairs(tmp_path, dataset, capfd):
    dataset.save_to_disk(tmp_path / "one")
    datasets.DatasetDict(train=dataset, test=dataset.select([1])).save_to_disk(tmp_path / "two")
    capfd.readouterr()
    columns = ("translation.en", "translation.fr")
    assert list(read_dataset(str(tmp_path / "one"), *columns)) == RECORDS
    assert list(read_dataset(str(tmp_path / "two"), *columns, split="train")) == RECORDS
    assert texts(read_dataset(str(tmp_path / "two"), *columns, split="test")) == PAIRS[1:2]
    assert capfd.readouterr() == ("", "")


def test_a_folder_of_data_files_gives_the_same_pairs(tmp_path, dataset, capfd):
    dataset.to_parquet(tmp_path / "train.parquet")
    capfd.readouterr()
    assert list(read_dataset(str(tmp_path), "translation.en", "translation.fr")) == RECORDS
    assert capfd.readouterr() == ("", "")
    with pytest.raises(DataError, match=r"no column en; it has translation\.en, translation\.fr"):
        list(read_dataset(str(tmp_path), "en", "translation.fr"))
    with pytest.raises(DataError, match=r"cannot be opened as a dataset .*'other' not found"):
        read_dataset(str(tmp_path), "en", "fr", subset="other")


@pytest.mark.parametrize("damage", ["cut", "changed"])
def test_a_damaged_file_of_a_folder_of_pairs_is_one_line(tmp_path, capfd, damage):
    rows = "".join(f"word {number * 7919},mot {number * 104729}\n" for number in range(9000))
    whole = gzip.compress(f"en,fr\n{rows}".encode())
    half = len(whole) // 2
    raw = whole[:half] if damage == "cut" else whole[:half] + b"\xff" * 20 + whole[half + 20 :]
    (tmp_path / "train.csv.gz").write_bytes(raw)
    with pytest.raises(DataError, match=r"cannot be read after row 0: "):
        list(read_dataset(str(tmp_path), "en", "fr"))


def test_a_split_that_is_not_there_is_answered_with_those_there_are(tmp_path, dataset):
    datasets.DatasetDict(train=dataset, test=dataset).save_to_disk(tmp_path / "two")
    dataset.save_to_disk(tmp_path / "one")
    with pytest.raises(DataError, match="has no split dev; set split to one of train, test"):
        read_dataset(str(tmp_path / "two"), "a", "b", split="dev")
    with pytest.raises(DataError, match="several splits; set split to one of train, test"):
        read_dataset(str(tmp_path / "two"), "a", "b")
    with pytest.raises(DataError, match="has no splits"):
        read_dataset(str(tmp_path / "one"), "a", "b", split="train")


def test_streaming_leaves_the_cache_alone(tmp_path, dataset):
    dataset.to_parquet(tmp_path / "train.parquet")
    cache = Path(datasets.config.HF_DATASETS_CACHE)
    before = sorted(cache.rglob("*"))
    list(read_dataset(str(tmp_path), "translation.en", "translation.fr"))
    assert sorted(cache.rglob("*")) == before


def test_progress_bars_are_left_as_they_were(tmp_path, dataset):
    assert not datasets.are_progress_bars_disabled()
    dataset.save_to_disk(tmp_path / "one")
    read_dataset(str(tmp_path / "one"), "translation.en", "translation.fr")
    assert not datasets.are_progress_bars_disabled()


def test_a_dataset_that_cannot_be_reached_is_one_line(tmp_path):
    (tmp_path / "opus_books").mkdir()
    program = "from regardant.data.tables import read_dataset\nread_dataset('opus_boks', 'en', 'fr')"
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=offline, capture_output=True, text=True, check=False
    )
    message = done.stderr.splitlines()[-1]
    assert message.startswith("regardant.errors.DataError: opus_boks is neither a folder here nor a dataset")
    assert "did you mean opus_books?" in message


def test_importing_the_readers_costs_no_dataset_library():
    program = "import sys, regardant.data.toys; assert not {'datasets', 'pyarrow', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


# text as it stands

LINES = "one \r\n\n  two\t\u2028three\x85\x0cÉté déjà 😀\n\nend"


@pytest.mark.parametrize("at_once", [1, 2, 3, 7, 1 << 20])
def test_a_text_comes_as_it_stands_however_it_is_read(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(text_files, "BYTES_AT_ONCE", at_once)
    (tmp_path / "a.txt").write_bytes(LINES.encode())
    assert "".join(read_text(tmp_path / "a.txt")) == LINES


def test_pieces_of_a_text_end_with_white_space_where_there_is_some(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "BYTES_AT_ONCE", 4)
    (tmp_path / "a.txt").write_bytes(b"ab cd\nefghijklmn o")
    assert list(read_text(tmp_path / "a.txt")) == ["ab ", "cd\n", "efghij", "klmn", " ", "o"]


@pytest.mark.parametrize(
    ("name", "pack"), [("a.txt.gz", gzip.compress), ("a.txt.zst", zstandard.ZstdCompressor().compress)]
)
def test_a_packed_text_is_the_same_text(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(LINES.encode()))
    assert "".join(read_text(tmp_path / name)) == LINES


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffa\ufeff".encode())
    assert "".join(read_text(tmp_path / "a.txt")) == "a\ufeff"


@pytest.mark.parametrize("at_once", [1, 4, 1 << 20])
def test_the_line_that_is_not_utf8_is_named(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(text_files, "BYTES_AT_ONCE", at_once)
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\nthr" + NOT_UTF8 + b"\nfour")
    with pytest.raises(DataError, match=r"a\.txt line 3 is not valid UTF-8: correct the line"):
        list(read_text(tmp_path / "a.txt"))


def test_a_text_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataError, match="no file"):
        read_text(tmp_path / "none.txt")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(LINES.encode())[:20])
    with pytest.raises(DataError, match=r"cut\.gz cannot be read: .*; is it whole"):
        list(read_text(tmp_path / "cut.gz"))


def test_a_plain_text_waits_for_no_other_library(tmp_path):
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    program = (
        "import sys; from pathlib import Path; from regardant.data.text_files import read_text;"
        "list(read_text(Path(sys.argv[1]))); assert 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.txt")], check=True)


# text that is not UTF-8

FRENCH = "Où est le chat ?\nIl dort sur le tapis.\n" * 4
CHINESE = "猫在垫子上睡觉 。\n" * 40
NO_UTF8 = {
    "UTF-16 with a mark": (FRENCH.encode("utf-16"), r"is UTF-16 \(byte order mark FF FE\), .*iconv -f UTF-16 -t UTF-8"),
    "UTF-16BE with a mark": (b"\xfe\xff" + FRENCH.encode("utf-16-be"), "byte order mark FE FF.*iconv -f UTF-16 "),
    "UTF-32": (FRENCH.encode("utf-32"), r"is UTF-32 \(byte order mark FF FE 00 00\)"),
    "UTF-16LE": (FRENCH.encode("utf-16-le"), "looks like UTF-16LE .*iconv -f UTF-16LE -t UTF-8"),
    "UTF-16BE": (FRENCH.encode("utf-16-be"), "looks like UTF-16BE .*iconv -f UTF-16BE -t UTF-8"),
    "UTF-16LE of another script": (CHINESE.encode("utf-16-le"), "looks like UTF-16LE"),
    "NUL bytes": (FRENCH.encode() + b"a\0 b\n" + FRENCH.encode(), "line 9 contains a NUL byte.*iconv -f UTF-16"),
    "carriage returns": (FRENCH.replace("\n", "\r").encode(), r"carriage returns and no line feed.*tr '\\r' '\\n'"),
}
READERS = {
    "read_text": read_text,
    "read_lines": read_lines,
    "read_text_files": lambda path: read_text_files(path, path),
    "tsv": lambda path: read_table(path.rename(path.with_suffix(".tsv")), "1", "1"),
    "csv": lambda path: read_table(path.rename(path.with_suffix(".csv")), "1", "1"),
    "jsonl": lambda path: read_table(path.rename(path.with_suffix(".jsonl")), "a", "a"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", NO_UTF8)
def test_every_reader_refuses_what_is_not_utf8_in_a_line_with_the_cure(tmp_path, reader, case):
    content, told = NO_UTF8[case]
    (tmp_path / "a.txt").write_bytes(content)
    if reader == "jsonl" and case == "NUL bytes":
        (tmp_path / "a.txt").write_bytes(b'{"a": "b"}\n' * 8 + b"\0\n")
    with pytest.raises(DataError, match=told) as refusal:
        list(READERS[reader](tmp_path / "a.txt"))
    assert "\n" not in str(refusal.value)


def test_a_packed_file_that_is_not_utf8_is_refused_too(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(FRENCH.encode("utf-16")))
    for reader in (read_text, read_lines):
        with pytest.raises(DataError, match="is UTF-16"):
            list(reader(tmp_path / "a.gz"))


@pytest.mark.parametrize("at_once", [7, 1 << 20])
def test_a_nul_byte_far_into_a_text_is_found_in_its_line(tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(text_files, "BYTES_AT_ONCE", at_once)
    (tmp_path / "a.txt").write_bytes(b"some text\n" * 9 + b"and \0\nmore\n")
    with pytest.raises(DataError, match="line 10 contains a NUL byte"):
        list(read_text(tmp_path / "a.txt"))


@pytest.mark.parametrize("content", ["é", "a", "", "a\r\n", "a\rb\n", "\ufeffa\n", "日本語\n", "a\r"])
def test_utf8_is_not_taken_for_something_else(tmp_path, content):
    (tmp_path / "a.txt").write_bytes(content.encode())
    assert "".join(line + "\n" for line in read_lines(tmp_path / "a.txt")).replace("\n", "") == content.strip(
        "\ufeff\n\r"
    )


def test_a_nul_character_in_a_cell_is_a_fault_of_its_row(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": "x", "b": "y"}\n{"a": "u\\u0000v", "b": "w"}\n', encoding="utf-8")
    assert list(read_table(tmp_path / "a.jsonl", "a", "b")) == [PairRecord(1, "x", "y"), PairRecord(2, Fault.NUL, "w")]
    pq.write_table(pa.table({"a": ["x", "u\0v"], "b": ["y", "w"]}), tmp_path / "a.parquet")
    assert list(read_table(tmp_path / "a.parquet", "a", "b")) == [
        PairRecord(1, "x", "y"),
        PairRecord(2, Fault.NUL, "w"),
    ]
