"""Measurements of less than everything take the place of no kept result."""

import sys

import pytest

from benchmarks import memory, preparing, serving, torture


class Begun(Exception):
    """Raised where a measurement begins."""


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (serving, "--seconds 20"),
        (serving, "--clients 50"),
        (serving, "--run runs/demo"),
        (torture, "--flips 20"),
        (torture, "--edits 5"),
        (torture, "--kills 2"),
        (memory, "demo"),
        (preparing, "--pairs 50000"),
    ],
)
def test_other_options_than_the_defaults_write_to_scratch(module, words, monkeypatch):
    begun = []

    def begin(*, scratch):
        begun.append(scratch)
        raise Begun

    monkeypatch.setattr(module, "Measurement", begin)
    for given in ([], words.split(), ["--scratch"]):
        monkeypatch.setattr(sys, "argv", ["benchmark", *given])
        with pytest.raises(Begun):
            module.main()
    assert begun == [False, True, True]
