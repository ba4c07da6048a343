"""Streams of shards: every row once a pass, also after a resume and by several ranks; what is held out."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regardant.data.addresses import find_shards, fingerprint, write_whole
from regardant.data.cleaning import CleaningReport
from regardant.data.shards import Position, Stream, read_shard_rows
from regardant.data.streamed_pairs import StreamedPairsConfig
from regardant.data.streamed_text import StreamedTextConfig
from regardant.errors import DataError

SHARDS, ROWS = 4, 1300
EVERY = [f"{shard}-{row}" for shard in range(SHARDS) for row in range(ROWS)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four shards of 1,300 rows, as Parquet, as JSON lines and as text."""
    folder = tmp_path_factory.mktemp("shards")
    for shard in range(SHARDS):
        texts = EVERY[shard * ROWS : (shard + 1) * ROWS]
        table = pa.table({"source": texts, "target": [text[::-1] for text in texts]})
        pq.write_table(table, folder / f"{shard}.parquet")
        lines = (json.dumps({"source": text, "target": text[::-1]}) + "\n" for text in texts)
        (folder / f"{shard}.jsonl").write_text("".join(lines))
        (folder / f"{shard}.txt").write_text("".join(f"{text}\t{text[::-1]}\n" for text in texts))
    return folder


def texts_of(rows):
    return [row.cells[0] for row in rows]


def stream(folder, kind="parquet", rows=1000, encode=texts_of):
    columns = ("1", "2") if kind == "txt" else ("source", "target")
    return Stream(find_shards(f"{folder}/*.{kind}"), columns, rows, 1, encode)


def a_pass(opened, passes=0):
    """Return the buffers of a pass, each with its position, and the first position of the next pass."""
    buffers = []
    while (found := opened.next())[0].passes == passes:
        buffers.append(found)
    return buffers, found[0]


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "txt"])
def test_a_pass_has_every_row_once_in_bounded_buffers(folder, kind):
    buffers, after = a_pass(stream(folder, kind))
    assert sorted(text for _, texts in buffers for text in texts) == sorted(EVERY)
    assert max(len(texts) for _, texts in buffers) <= 1000
    assert after == Position(1)


def test_another_pass_has_the_shards_in_another_order(folder):
    opened = stream(folder)
    first, _ = a_pass(opened)
    opened.seek(Position(1))
    second, _ = a_pass(opened, 1)
    assert [texts for _, texts in first] != [texts for _, texts in second]
    assert sorted(text for _, texts in second for text in texts) == sorted(EVERY)


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "txt"])
def test_a_stream_resumed_anywhere_has_the_rows_that_are_left_with_their_numbers(folder, kind):
    buffers, _ = a_pass(stream(folder, kind, encode=list))
    for number in range(len(buffers)):
        resumed = stream(folder, kind, encode=list)
        resumed.seek(Position(*json.loads(json.dumps(buffers[number][0]))))  # as a checkpoint keeps it
        rest, _ = a_pass(resumed)
        assert [rows for _, rows in rest] == [rows for _, rows in buffers[number:]]


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_share_the_rows_among_them(folder, size):
    found = []
    for rank in range(size):
        opened = stream(folder)
        opened.seek(Position(), rank=rank, size=size)
        found += [text for _, texts in a_pass(opened)[0] for text in texts]
    assert sorted(found) == sorted(EVERY)


def test_each_of_two_ranks_reads_shards_of_its_own(folder):
    shards = find_shards(f"{folder}/*.parquet")
    read = [
        {
            row.cells[0].split("-")[0]
            for rows, _ in read_shard_rows(shards, ("source",), rank=rank, size=2)
            for row in rows
        }
        for rank in range(2)
    ]
    assert not read[0] & read[1] and len(read[0] | read[1]) == SHARDS


def test_shards_are_found_by_folder_glob_and_file(folder, tmp_path):
    assert [shard.address[-9:] for shard in find_shards(f"{folder}/*.parquet")] == [f"{n}.parquet" for n in range(4)]
    assert len(find_shards("[01].txt", str(folder))) == 2
    with pytest.raises(DataError, match="several kinds"):
        find_shards(str(folder))
    with pytest.raises(DataError, match="has no file"):
        find_shards(str(tmp_path))
    (tmp_path / "a.doc").write_text("x")
    with pytest.raises(DataError, match="is not a shard"):
        find_shards(str(tmp_path))


def test_a_fingerprint_tells_shards_of_another_size(folder):
    shards = find_shards(f"{folder}/*.txt")
    assert fingerprint(shards) != fingerprint([*shards[:-1], shards[-1]._replace(size=1)])


def test_a_column_that_is_not_there_is_named(folder):
    with pytest.raises(DataError, match="no column english"):
        next(read_shard_rows(find_shards(f"{folder}/*.parquet"), ("english",)))
    with pytest.raises(DataError, match="give numbers, from 1"):
        next(read_shard_rows(find_shards(f"{folder}/*.txt"), ("english",)))


def test_a_damaged_shard_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match=r"a\.parquet cannot be read"):
        next(read_shard_rows(find_shards(str(tmp_path)), ("source",)))


def zst(path, content):
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(content)
    return path


LINES = "".join(f"{number}\t{number * 104729}\n" for number in range(90_000)).encode()


def test_zst_shards_are_read_without_zstandard(tmp_path):
    zst(tmp_path / "a.tsv.zst", b"a\tb\n")
    (tmp_path / "a.tsv.zst").write_bytes(2 * (tmp_path / "a.tsv.zst").read_bytes())  # two frames
    program = (
        "import sys; sys.modules['zstandard'] = None\n"
        "from regardant.data.addresses import find_shards\nfrom regardant.data.shards import read_shard_rows\n"
        "print([row.cells for rows, _ in read_shard_rows(find_shards(sys.argv[1]), ('1', '2')) for row in rows])"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "[('a', 'b'), ('a', 'b')]\n", done.stderr


@pytest.mark.parametrize("suffix", [".txt.zst", ".tsv.zst"])
def test_a_cut_text_shard_is_not_read_short(tmp_path, suffix):
    path = zst(tmp_path / f"a{suffix}", LINES)
    assert sum(len(rows) for rows, _ in read_shard_rows(find_shards(str(tmp_path)), ("1", "2"))) == 90_000
    path.write_bytes(path.read_bytes()[:-100_000])
    with pytest.raises(DataError, match=r"zst cannot be read after row [\d,]+: .*[Tt]runcated"):
        list(read_shard_rows(find_shards(str(tmp_path)), ("1", "2")))


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\ntwo\n")
    ((rows, _),) = read_shard_rows(find_shards(str(tmp_path)), ("text",))
    assert [row.cells for row in rows] == [("one",), ("two",)]


def test_a_file_that_is_not_written_to_its_end_is_not_there(tmp_path):
    def fail(sink):
        sink.write(b"half")
        raise OSError("full")

    with pytest.raises(DataError, match="cannot be written"):
        write_whole(f"{tmp_path}/out/a.txt", fail)
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("name", ["_done/00000", "a/_done/00000", ".part/1", "_SUCCESS", "a/.crc"])
def test_below_a_folder_what_is_hidden_is_no_shard(tmp_path, name):
    corpus = tmp_path / "_corpora" / "en"  # the names of folders above do not matter
    for one in ("1.parquet", "a/2.parquet", name):
        (corpus / one).parent.mkdir(parents=True, exist_ok=True)
        (corpus / one).touch()
    assert [shard.address for shard in find_shards(str(corpus))] == [f"{corpus}/1.parquet", f"{corpus}/a/2.parquet"]
    assert [shard.address for shard in find_shards(f"{corpus}/*")] == [f"{corpus}/1.parquet"]


def test_answers_below_a_folder_are_left_out_beside_other_shards(tmp_path):
    for one in ("1.txt", "fr/_work.json", "fr/part-00000-00000.parquet", "french/2.txt"):
        (tmp_path / one).parent.mkdir(exist_ok=True)
        (tmp_path / one).touch()
    found = [shard.address for shard in find_shards(str(tmp_path))]
    assert found == [f"{tmp_path}/1.txt", f"{tmp_path}/french/2.txt"]
    for one in found:
        Path(one).unlink()
    for folder in (tmp_path, tmp_path / "fr"):
        (answers,) = find_shards(str(folder))
        assert answers.address == f"{tmp_path}/fr/part-00000-00000.parquet"


def pairs_config(folder, **fields):
    given = {"shards": f"{folder}/*.parquet", "sample_rows": 2000, "validation_share": 0.02, "test_share": 0.02}
    return StreamedPairsConfig(**{**given, **fields})


def test_no_source_of_validation_or_test_is_trained_on(folder, tmp_path):
    config = pairs_config(folder)
    splits = config.read(tmp_path / "text", seed=1)
    held_out = config.leave_out(1)
    trained = set()
    for rows, _ in read_shard_rows(config.found(), ("source", "target")):
        trained |= {source for source, _ in config.training_pairs(rows, held_out)}
    kept = {*splits.validation["source"], *splits.tests["test"]["source"]}
    assert 40 <= len(kept) <= 120 and not kept & trained
    assert set(splits.train["source"]) <= trained  # the sample is trained on like the rest
    assert 0.94 < len(trained) / len(EVERY) < 0.98


def test_pairs_of_a_named_file_are_left_out_of_the_stream(folder, tmp_path):
    (tmp_path / "v.tsv").write_text("0-5\tx\n3-700\ty\n")
    config = pairs_config(folder, validation={"table": str(tmp_path / "v.tsv"), "source": "1", "target": "2"})
    splits = config.read(tmp_path / "text", seed=1)
    assert list(splits.validation["target"]) == ["x", "y"]
    held_out = config.leave_out(1)
    trained = [
        source
        for rows, _ in read_shard_rows(config.found(), ("source", "target"))
        for source, _ in config.training_pairs(rows, held_out)
    ]
    assert not {"0-5", "3-700"} & set(trained)
    assert isinstance(splits.report, CleaningReport) and splits.report.read == 2000


def test_a_stream_without_training_rows_says_what_was_read(tmp_path):
    (tmp_path / "a.tsv").write_text("\tone\n\ttwo\n" * 3, encoding="utf-8")
    data = StreamedPairsConfig(shards=str(tmp_path / "a.tsv"), source="1", target="2")
    told = r"a\.tsv: the first 100,000 rows leave nothing to train on \(0 of 6 pairs kept, 6 empty\): check that the"
    with pytest.raises(DataError, match=told):
        data.read(tmp_path / "text", seed=1)
    (tmp_path / "b.jsonl").write_text('{"text": null}\n' * 3, encoding="utf-8")
    with pytest.raises(DataError, match=r"nothing to train on \(0 documents read\): check that the columns hold text"):
        StreamedTextConfig(shards=str(tmp_path / "b.jsonl")).sizes()


def test_a_sample_without_validation_pairs_is_refused(folder, tmp_path):
    with pytest.raises(DataError, match="raise validation_share or sample_rows"):
        pairs_config(folder, sample_rows=3, validation_share=1e-9).read(tmp_path / "text", seed=1)
