"""Names of test sets."""

from pathlib import Path

from regardant.tasks.arguments import name_of_set


def test_a_set_is_named_by_its_path_and_not_by_what_it_links_to(tmp_path, monkeypatch):
    (tmp_path / "0a1b").mkdir()
    (tmp_path / "photos").symlink_to(tmp_path / "0a1b")
    monkeypatch.chdir(tmp_path)
    names = {one: name_of_set(Path(one)) for one in ("photos", "0a1b/../photos", ".", "0a1b/..")}
    assert names == {"photos": "photos", "0a1b/../photos": "photos", ".": tmp_path.name, "0a1b/..": tmp_path.name}
