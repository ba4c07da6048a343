"""Results name a commit that holds the code they were measured with."""

import json
import subprocess

import pytest

from benchmarks import records
from benchmarks.bars import bar
from benchmarks.records import RESULTS, Measurement, uncommitted

KEPT = {
    path.relative_to(RESULTS).with_suffix("").as_posix(): json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(RESULTS.rglob("*.json"))
}


@pytest.mark.parametrize("name", KEPT)
def test_no_kept_result_is_of_uncommitted_code(name):
    assert not KEPT[name]["commit"].endswith("-dirty")


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository with one commit of src/code.py, README.md and a result."""

    def git(*words):
        identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    for name in ("src/code.py", "README.md", "benchmarks/results/kept.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old\n")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "First")
    monkeypatch.setattr(records, "ROOT", tmp_path)
    monkeypatch.setattr(records, "RESULTS", tmp_path / "benchmarks" / "results")
    monkeypatch.setattr(records, "SCRATCH", tmp_path / "runs" / "scratch")
    monkeypatch.setattr(records, "FIGURES", tmp_path / "docs" / "experiments")
    return tmp_path


@pytest.mark.parametrize("changed", ["src/code.py", "README.md", "src/new.py", "benchmarks/new.py"])
def test_a_changed_tree_is_not_measured(tree, changed):
    (tree / changed).write_text("new\n")
    assert uncommitted() == [changed]
    with pytest.raises(SystemExit) as ended:
        Measurement(scratch=False)
    assert ended.value.code == (
        f"uncommitted changes in {changed}: a result names the commit it is measured at, so commit or stash them, or "
        "use --scratch, which writes to runs/scratch"
    )


@pytest.mark.parametrize("changed", ["benchmarks/results/kept.json", "benchmarks/results/new.json", "notes.txt"])
def test_results_and_foreign_files_are_no_changes_of_the_code(tree, changed):
    (tree / changed).write_text("new\n")
    assert uncommitted() == []
    assert not Measurement(scratch=False).commit.endswith("-dirty")


def test_a_scratch_run_writes_nothing_among_the_results(tree, capsys):
    (tree / "src" / "code.py").write_text("new\n")
    measurement = Measurement(scratch=True)
    measurement.keep("speed", {"value": 1})
    measurement.draw("curve", "<svg xmlns='http://www.w3.org/2000/svg'/>")
    assert [path.name for path in (tree / "benchmarks" / "results").iterdir()] == ["kept.json"]
    assert not (tree / "docs").exists()
    assert json.loads((tree / "runs/scratch/speed.json").read_text())["commit"].endswith("-dirty")
    assert capsys.readouterr().out.split() == ["runs/scratch/speed.json", "runs/scratch/curve.svg"]


def test_a_result_has_its_machine_its_commit_and_whether_its_bars_are_met(tree):
    Measurement(scratch=False).keep("speed", {"bars": [bar("speed", 1.0, 2.0, at_least=True)]})
    result = json.loads((tree / "benchmarks/results/speed.json").read_text())
    assert result["pass"] is False
    assert result["machine"]["cores"] and len(result["commit"]) >= 7


def test_a_commit_whose_code_is_changed_while_it_is_measured_is_dirty(tree):
    measurement = Measurement(scratch=False)
    (tree / "src" / "code.py").write_text("new\n")
    for _ in range(2):
        measurement.keep("speed", {"value": 1})
    result = json.loads((tree / "benchmarks/results/speed.json").read_text())
    assert result["commit"] == f"{records.commit()}-dirty"


def test_outside_of_a_checkout_there_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(SystemExit, match="is not a git checkout"):
        Measurement(scratch=True)


def test_a_checkout_has_its_own_commit_and_other_folders_none(tree):
    found = records.commit_of(tree)
    assert len(found) == 40 and found.startswith(records.commit())
    assert records.commit_of(tree / "src") is None


def test_a_package_that_is_not_installed_has_no_version():
    found = records.versions("numpy", "no-such-package")
    assert found["numpy"][0].isdigit() and found["no-such-package"] is None
