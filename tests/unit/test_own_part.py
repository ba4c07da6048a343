"""A mechanism of a user's own: written from a template, held to the contracts, trained beside the baseline."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regardant.checks.contracts import CONTRACTS
from regardant.config.plugins import plugin_module, write_plugin
from regardant.errors import ConfigError

SEES_THE_FUTURE = """
    def compute_weights(self, q, k, view):
        return torch.softmax(self.compute_scores(q, k, view), -1)
"""


def program(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The program in a process of its own, since a plugin stays imported."""
    command = [sys.executable, "-m", "regardant", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True)


@pytest.fixture
def written(tmp_path):
    assert [path.name for path in write_plugin("attention", "my_attention", tmp_path)] == [
        "my_attention.py",
        "test_my_attention.py",
    ]
    return tmp_path


def test_new_tells_what_it_wrote_and_what_comes_next(regardant, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = regardant("new", "attention", "cosine_of_mine").out
    assert "class CosineOfMine(ScoredAttention)" in Path("cosine_of_mine.py").read_text(encoding="utf-8")
    assert "try it:   regardant try cosine_of_mine.py" in said
    assert "--plugin cosine_of_mine train demo --set model.encoder.self_attention.kind=cosine_of_mine" in said


@pytest.mark.parametrize(
    ("part", "name", "message"),
    [
        ("tension", "mine", "there is no template for 'tension': give one of attention"),
        (
            "attention",
            "my-attention",
            "'my-attention' is no name for a module: give lower-case letters, as in my_attention",
        ),
        ("attention", "My", "'My' is no name for a module"),
        ("attention", "class", "'class' is no name for a module"),
        ("attention", "_2d", "'_2d' is no name for a module"),
        ("attention", "_", "'_' is no name for a module"),
        ("attention", "__main__", "'__main__' is no name for a module"),
        ("attention", "scored_attention", "'scored_attention' is no name for a module"),
        ("attention", "random", "Python has a module random already: give another name, as my_random"),
        (
            "attention",
            "my_attention",
            "my_attention.py, .*test_my_attention.py exists: give another name, or remove it",
        ),
    ],
)
def test_a_plugin_that_cannot_be_written_is_refused(written, part, name, message):
    with pytest.raises(ConfigError, match=message):
        write_plugin(part, name, written)


def test_a_missing_module_is_refused_before_torch_is_imported(tmp_path):
    with pytest.raises(ConfigError, match=r"there is no file .*mine.py: write one with: regardant new attention mine"):
        plugin_module(tmp_path / "mine.py")
    with pytest.raises(ConfigError, match=r"notes.txt is no Python module: give a file such as my_attention.py"):
        plugin_module(tmp_path / "notes.txt")
    check = f"""
import sys
from regardant import cli
sys.argv = ["regardant", "try", "{tmp_path}/mine.py"]
try:
    cli.main()
except SystemExit as stopped:
    assert stopped.code == 2
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", check], check=True, capture_output=True)


def test_what_new_writes_passes_the_test_that_new_writes(written):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_attention.py"]
    done = subprocess.run(command, cwd=written, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert f"{len(CONTRACTS) + 1} passed" in done.stdout  # and the test of its scores


def test_a_broken_contract_is_named_and_nothing_is_trained(written):
    module = written / "my_attention.py"
    module.write_text(module.read_text(encoding="utf-8") + SEES_THE_FUTURE, encoding="utf-8")
    tried = program(written, "try", "my_attention.py")
    assert tried.returncode == 1 and tried.stdout == ""
    assert "BROKEN  the future never changes the past: " in tried.stderr
    assert "scene: causal" in tried.stderr
    assert not (written / "runs").exists()


CANNOT_BE_BUILT = """
    def reset(self):
        raise ValueError("a bug of the user")
"""


def test_a_mechanism_that_cannot_be_built_breaks_a_contract(written):
    module = written / "my_attention.py"
    text = module.read_text(encoding="utf-8").replace("        super().__init__()\n", "        self.reset()\n")
    module.write_text(text + CANNOT_BE_BUILT, encoding="utf-8")
    tried = program(written, "try", "my_attention.py")
    assert (tried.returncode, tried.stdout) == (1, "")
    assert tried.stderr.splitlines()[1:] == [
        "BROKEN  the mechanism can be built: ValueError; a bug of the user",
        "contracts       0 of 1 kept",
    ]


def test_a_mechanism_with_a_field_without_a_default_is_refused_in_one_line(written):
    module = written / "my_attention.py"
    text = module.read_text(encoding="utf-8").replace("Field(10.0, gt=0)", "Field(gt=0)")
    module.write_text(text, encoding="utf-8")
    tried = program(written, "try", "my_attention.py")
    assert (tried.returncode, tried.stdout) == (2, "")
    (told,) = tried.stderr.splitlines()[1:]
    assert told.startswith("regardant: my_attention.py: MyAttentionConfig cannot be made with its defaults (gain: ")


def test_a_module_without_attention_is_refused(tmp_path):
    (tmp_path / "nothing.py").write_text("", encoding="utf-8")
    tried = program(tmp_path, "try", "nothing.py")
    assert tried.returncode == 2
    assert "nothing.py adds 0 kinds of attention (none): give a module with one subclass" in tried.stderr


@pytest.mark.slow
def test_try_trains_both_from_every_seed_compares_them_and_resumes(written):
    options = ("try", "my_attention.py", "--seeds", 2, "--minutes", 0.1, "--json")
    first = program(written, *options)
    assert first.returncode == 0, first.stderr
    assert "run 4 of 4: my_attention, seed 2" in first.stderr and "Automatic Mixed Precision" not in first.stderr
    found = json.loads(first.stdout)
    assert len(found["by_seed"]) == 2 and "2 seeds" in found["verdict"]
    for values in found["scores"].values():
        assert len(values["baseline"]) == len(values["my_attention"]) == 2
    runs = written / "runs" / "try" / "my_attention"
    page = (runs / "version-1" / "trial.html").read_text(encoding="utf-8")
    assert "<h2>2 seeds</h2>" in page and "<h2>Seed 2. Test set: test</h2>" in page and found["verdict"] in page
    asked = [(runs / arm / "seed-2" / "run.yaml").read_text(encoding="utf-8") for arm in ("baseline", "version-1")]
    assert "my_attention" not in asked[0] and "my_attention" in asked[1]

    again = program(written, *options)
    assert "run 1 of 4" not in again.stderr and json.loads(again.stdout) == found

    module = written / "my_attention.py"
    module.write_text(module.read_text(encoding="utf-8").replace("10.0", "5.0"), encoding="utf-8")
    changed = program(written, "try", "my_attention.py", "--seeds", 1, "--minutes", 0.1)
    assert "run 1 of 2" not in changed.stderr and "run 2 of 2: my_attention, seed 1" in changed.stderr
    assert "1 seed cannot tell the difference from chance: give more --seeds" in changed.stdout
    assert (runs / "version-2" / "trial.html").is_file()
    other = program(written, "try", "my_attention.py", "--minutes", 0.2)
    assert other.returncode == 2 and "was begun with --minutes 0.1: give the same, or another --out" in other.stderr
