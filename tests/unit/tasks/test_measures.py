"""Measures of any task's model, from what is read of it."""

from types import SimpleNamespace

import torch

from regardant.inspection import LensReading
from regardant.tasks.measures import Measures, _read_layers
from regardant.tasks.probe import Probe


def test_the_median_rank_of_an_even_number_of_targets_is_between_the_middle_ones(monkeypatch):
    reading = LensReading(torch.tensor([[9, 1, 4, 2], [1, 2, 1, 1]]), torch.ones(2, 4), torch.zeros(2, 4))
    monkeypatch.setattr("regardant.tasks.measures.logit_lens", lambda model, run, targets: reading)
    found = Measures("test", 4, {}, {})
    _read_layers(found, SimpleNamespace(scores=print), [Probe({}, torch.zeros(1, 4), {})])
    assert [one.rank for one in found.lens] == [3, 1]
    assert [one.first for one in found.lens] == [0.25, 0.75]
