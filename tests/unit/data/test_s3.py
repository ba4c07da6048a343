"""Shards in a storage that speaks like S3: a real server on this machine, read and written through pyarrow."""

import os
import socket
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import S3FileSystem

from regardant.data.addresses import find_shards, storage, write_whole
from regardant.data.shards import Position, Stream
from regardant.errors import DataError

SERVER = Path(__file__).parents[2] / ".servers" / "moto" / "bin" / "moto_server"
"""Installed by `make test-slow`, in an environment of its own."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SERVER.is_file(), reason="no S3 server: make tests/.servers/moto/ready"),
]


@pytest.fixture(scope="module")
def bucket(tmp_path_factory):
    """The address of an empty bucket, with the environment that leads to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (tmp_path_factory.mktemp("moto") / "log").open("w") as log:
        server = subprocess.Popen([SERVER, "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log)
    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        patch.setenv(name, "test")
    patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    try:
        for _ in range(300):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        options = {"endpoint_override": os.environ["AWS_ENDPOINT_URL"], "allow_bucket_creation": True}
        S3FileSystem(**options).create_dir("corpora")
        yield "s3://corpora"
    finally:
        patch.undo()
        server.terminate()
        server.wait()


def upload(bucket, folder, texts, parts=3):
    size = -(-len(texts) // parts)
    for part in range(parts):
        table = pa.table({"text": texts[part * size : (part + 1) * size]})
        write_whole(f"{bucket}/{folder}/{part}.parquet", lambda sink, table=table: pq.write_table(table, sink))


def test_a_stream_from_s3_has_every_row_once_also_after_a_resume(bucket):
    texts = [str(number) for number in range(700)]
    upload(bucket, "stream", texts)

    def opened():
        shards = find_shards(f"{bucket}/stream/*.parquet")
        return Stream(shards, ("text",), 200, 1, lambda rows: [row.cells[0] for row in rows])

    first, second = opened(), opened()
    found = [first.next() for _ in range(2)]
    second.seek(first.next()[0])
    rest = []
    while (buffer := second.next())[0].passes == 0:
        rest.append(buffer)
    assert sorted((text for _, part in found + rest for text in part), key=int) == texts
    assert buffer[0] == Position(1)


def test_a_corpus_in_s3_is_answered_there_and_resumed(bucket, regardant, tiny_run):
    texts = [f"the cat saw a dog {'old ' * (number % 4)}." for number in range(30)]
    upload(bucket, "in", texts)
    command = ("translate", tiny_run, "--data", f"{bucket}/in", "--out", f"{bucket}/out")
    assert regardant(*command).code == 0
    files, path = storage(f"{bucket}/out")
    parts = sorted(name for name in files.find(path) if name.endswith(".parquet"))
    rows = [row for name in parts for row in pq.read_table(files.open(name)).to_pylist()]
    assert [row["source"] for row in rows] == texts and len(parts) == 3
    files.rm(f"{path}/_done/00001")
    files.rm(parts[1])
    said = regardant(*command)
    assert said.code == 0 and "2 of 3 shards are answered, 1 are left" in said.err
    files.invalidate_cache()
    assert sorted(name for name in files.find(path) if name.endswith(".parquet")) == parts


def test_a_bucket_that_is_not_there_is_named(bucket):
    with pytest.raises(DataError, match="s3://nowhere/x"):
        find_shards("s3://nowhere/x/*.parquet")
