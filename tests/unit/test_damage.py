"""Damage to any file of a run is refused by the file's name, or changes no answer. `make torture` does more of it."""

import shutil
from pathlib import Path
from random import Random

import pytest

from benchmarks.damage import Damage, edits, files_of, flips

FLIPS, EDITS = 1, 2
"""Of each file."""


@pytest.fixture(params=["translation", "language_modelling", "classification"])
def run_and_item(request, tmp_path):
    """A copy of a run, and an item that it answers."""
    if request.param == "translation":
        folder, item = request.getfixturevalue("tiny_run"), "the old cat sat ."
    elif request.param == "language_modelling":
        folder, item = request.getfixturevalue("trained_on_text")().folder, "the cat"
    else:
        folder, item = request.getfixturevalue("trained_on_labels")().folder, "the cat sees a dog ."
    return shutil.copytree(folder, tmp_path / request.param), item


def test_a_damaged_file_is_refused_by_name_or_changes_nothing(run_and_item):
    run, item = run_and_item
    damage, random, found = Damage(run, [item]), Random(run.name), {}
    for file in files_of(run):
        for what, change in [*flips(random, FLIPS), *edits(file, random, EDITS)]:
            found[str(file), what] = damage.verdict(file, change)
    assert len(found) > 20 and set(found.values()) >= {"refused"}
    assert not {place: one for place, one in found.items() if one not in ("refused", "same")}


def test_damage_is_noticed(run_and_item, monkeypatch):
    """Without fingerprints, weights of zero would answer otherwise."""
    run, item = run_and_item
    damage = Damage(run, [item])
    damage.verdict(Path("model.safetensors"), bytes)  # what is right is computed with fingerprints
    monkeypatch.setattr("regardant.run.opened.require_unchanged", lambda folder, files: None)
    (file,) = [path for path in files_of(run) if path.suffix == ".safetensors"]
    found = {what: damage.verdict(file, change) for what, change in edits(file, Random(1), 14)}
    assert {found[what].split()[0] for what in ("weights of zero", "signs")} <= {"DIFFERENT", "UNNAMED"}
    assert found["half precision"] == found["a tensor less"] == found["cut in half"] == "refused"
