"""Damage to any file of a run is refused by the file's name, or changes no answer. `make torture` does more of it."""

import shutil
from random import Random

import pytest

from benchmarks.damage import edits, files_of, flips, outputs, verdict

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
    expected, random, found = outputs(run, [item]), Random(run.name), {}
    for file in files_of(run):
        for what, change in [*flips(random, FLIPS), *edits(file, random, EDITS)]:
            found[str(file), what] = verdict(run, file, change, [item], expected)
    assert len(found) > 20 and set(found.values()) >= {"refused"}
    assert not {place: one for place, one in found.items() if one not in ("refused", "same")}


def test_damage_is_noticed(run_and_item, monkeypatch):
    """Without fingerprints, weights of zero would answer otherwise."""
    run, item = run_and_item
    expected = outputs(run, [item], doctor=False)
    monkeypatch.setattr("regardant.run.opened.require_unchanged", lambda folder, files: None)
    (file,) = [path for path in files_of(run) if path.suffix == ".safetensors"]
    found = {what: verdict(run, file, change, [item], expected) for what, change in edits(file, Random(1), 99)}
    assert {found[what].split()[0] for what in ("weights of zero", "signs")} <= {"DIFFERENT", "UNNAMED"}
    assert found["half precision"] == found["a tensor less"] == found["cut in half"] == "refused"
