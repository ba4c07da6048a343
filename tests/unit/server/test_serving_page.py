"""Every curl of docs/serving.md works as it is written, and its numbers are the server's."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from regardant.server.connections import SPARE
from regardant.server.limits import Limits
from regardant.server.metrics import Metrics

PAGE = (Path(__file__).parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCKS = [block.strip() for block in re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)]
LOCAL = [block for block in BLOCKS if "curl" in block and "http://127.0.0.1:8000" in block]
EXPECTED = {
    "/v1/translate": '"candidates":',
    "digit.json": '"probabilities":',
    "/v1/predict": '"answer":',
    "/v1/generate": "event: end",
    "/v1/score": '"perplexity":',
    "/metrics": "regardant_queue_rows",
}
"""Text in the answers of a block with this text."""


@pytest.fixture(scope="module")
def at(named_runs, digit, tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    shutil.copy(digit, folder / "digit.png")
    return folder


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("block", LOCAL, ids=lambda block: re.search(r":8000(\S+)", block)[1])
def test_the_page_s_commands_are_answered(serving, at_port, at, block):
    port, _ = at_port(serving("demo", "text", "digits", limits=Limits(max_wait_ms=0)))
    script = block.replace(":8000", f":{port}").replace("curl ", "curl --silent --show-error --fail-with-body ")
    done = subprocess.run(["bash", "-e", "-c", script], cwd=at, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = [text for name, text in EXPECTED.items() if name in block]
    assert all(text in done.stdout for text in expected[:1])


def test_every_address_has_a_command(client):
    described = client.get("/openapi.json").json()["paths"]
    assert [path for path in described if f":8000{path}" not in PAGE] == []


def test_the_page_s_limits_are_those_of_the_server():
    own = Limits()
    numbers = f"""of at most `--max-batch` rows ({own.max_batch}) | waited for `--max-wait-ms` ({own.max_wait_ms:g}) |
        more than `--max-characters` ({own.max_characters:,}) | above {own.max_beam_size}, | above {own.max_tokens:,}, |
        `--max-queue` rows ({own.max_queue}) | `--timeout` seconds ({own.timeout:g}) | {own.body_bytes // 2**20} MiB |
        within {own.read_seconds:g} seconds | more than {own.connections:,} connections |
        more than {own.max_pixels:,} pixels"""
    page = " ".join(PAGE.split())
    assert [one for one in " ".join(numbers.split()).split(" | ") if one not in page] == []
    assert f"{own.connections + SPARE:,} closed" in page
    assert own.inspected_numbers == 1_000_000 and "more than a million weights" in page


def test_the_page_lists_every_metric():
    names = {family.name + ("_total" if family.type == "counter" else "") for family in Metrics().registry.collect()}
    assert [name for name in sorted(names) if name.startswith("regardant_") and f"`{name}`" not in PAGE] == []
