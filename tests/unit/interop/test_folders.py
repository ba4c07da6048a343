"""Folders that an export or an import may not replace are refused before anything is computed."""

import os
from pathlib import Path

import pytest

from regardant.errors import RunError
from regardant.interop.folders import require_empty
from regardant.run.importing import import_model

CURRENT = "is the current folder, which cannot be replaced: give a folder inside it as --out$"


@pytest.mark.parametrize("name", [".", "", "absolute"])
def test_the_current_folder_is_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path if name == "absolute" else Path(name)
    with pytest.raises(RunError, match=CURRENT):
        require_empty(folder)
    with pytest.raises(RunError, match=CURRENT):
        import_model(tmp_path / "missing", folder, log=lambda line: None)


def test_a_mount_point_is_refused(tmp_path, monkeypatch):
    mounted, other = tmp_path / "mounted", tmp_path / "other"
    for folder in (mounted, other):
        folder.mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == mounted)
    with pytest.raises(RunError, match="mounted is a mount point, which cannot be replaced: give a folder inside it"):
        require_empty(mounted)
    require_empty(other)
    require_empty(mounted / "new")
