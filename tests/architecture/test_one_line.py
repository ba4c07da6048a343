"""A part inside the package is one file and one line, which imports it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import regardant
from regardant.config.plugins import write_plugin

PACKAGE = Path(regardant.__file__).parent

CHECK = """
from regardant.attention import AttentionConfig
from regardant.checks.contracts import check_contracts, maker
kinds = AttentionConfig.kinds()
assert kinds["my_attention"].__module__ == "regardant.attention.my_attention"
assert not check_contracts(maker(kinds["my_attention"]())).broken
"""


def test_an_attention_is_one_file_and_one_line(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "regardant", ignore=shutil.ignore_patterns("__pycache__"))
    room = tmp_path / "regardant" / "attention"
    write_plugin("attention", "my_attention", room)
    imports = room / "__init__.py"
    text = imports.read_text(encoding="utf-8")
    imports.write_text(text.replace("    lsh,\n", "    lsh,\n    my_attention,\n"), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", CHECK], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("place", ["attention/__init__.py", "positions/__init__.py", "data/labelled_sources.py"])
def test_a_module_that_adds_a_kind_is_named_once(place):
    text = (PACKAGE / place).read_text(encoding="utf-8")
    (imported,) = re.findall(
        r"import \(  # noqa: F401  # importing a module registers its kind\n(.*?)\)", text, re.DOTALL
    )
    names = [line.strip(" ,") for line in imported.splitlines()]
    assert len(names) > 5
    assert [name for name in names if f'"{name}"' in text] == []
