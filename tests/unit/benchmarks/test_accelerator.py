import sys
from random import Random

import numpy as np
import pytest
import torch

from benchmarks import accelerator_training, accelerator_translation, decoding
from benchmarks.accelerator_training import bars, planned_batches
from benchmarks.decoding import REGARDANT, TRANSFORMERS
from benchmarks.training import MARIAN, OURS
from regardant.data.batching import plan_batches

CASE = {
    "precision": "bfloat16",
    "sentences_per_second": 10.0,
    "tokens_per_second": 130.0,
    "regardant_is_times_as_fast": 1.0,
}


def trained(share, planned=1200.0):
    rows = [
        {"name": name, "precision": "bfloat16", "tokens_per_second": 1000.0}
        | {"regardant_is_times_as_fast": 1.0, "share_of_peak": share / number, "peak_gibibytes": 1.0}
        for number, name in enumerate((OURS, MARIAN), 1)
    ]
    return {"rows": rows, "planned_tokens_per_second": planned}


def test_a_shape_is_held_to_the_rate_of_the_accelerator_s_products():
    base, _, big, _ = bars({"base": trained(0.3), "big": trained(0.6)})
    assert (base["value"], base["pass"]) == (0.3, False)
    assert (big["value"], big["pass"]) == (0.6, True)
    assert base["goal"] and big["goal"]


@pytest.mark.parametrize(("planned", "off", "kept"), [(1200.0, 0.2, True), (1300.0, 0.3, False), (None, None, None)])
def test_a_plan_is_held_to_the_measured_speed(planned, off, kept):
    _, speed = bars({"base": trained(0.3, planned)})
    assert (speed["value"], speed["pass"]) == (off, kept)


def test_the_table_of_training_has_every_row():
    training = {"base": trained(0.5)}
    result = {"training": training, "bars": list(bars(training)), "versions": {"torch": "2.13.0"}}
    lines = list(accelerator_training.table(result))
    assert [line.split(",")[0] for line in lines if "1,000" in line] == [OURS, MARIAN]
    assert all("bfloat16" in line for line in lines if "1,000" in line)
    assert lines[-1] == "torch 2.13.0"


def test_the_table_of_translation_has_every_row():
    cases = [{"case": "beam 5", "rows": [{"engine": engine} | CASE for engine in (REGARDANT, TRANSFORMERS)]}]
    judged = list(accelerator_translation.bars(cases))
    lines = list(accelerator_translation.table({"cases": cases, "bars": judged, "versions": {"torch": "2.13.0"}}))
    assert [line.split(",")[0] for line in lines if "130" in line] == [REGARDANT, TRANSFORMERS]
    assert judged[0]["value"] == 1.0 and judged[0]["goal"]


@pytest.mark.parametrize(
    ("benchmark", "measure"), [(accelerator_training, "train"), (accelerator_translation, "translate")]
)
def test_where_there_is_none_it_says_so_and_measures_nothing(monkeypatch, capsys, benchmark, measure):
    monkeypatch.setattr(sys, "argv", ["accelerator"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(benchmark, measure, lambda *given: pytest.fail("there is nothing to measure on"))
    benchmark.main()
    assert capsys.readouterr().out == "no accelerator here: nothing is measured\n"


def test_batches_are_those_of_the_trainer_from_short_to_long():
    random = Random(0)
    sources = [random.randint(2, 40) for _ in range(500)]
    targets = [random.randint(2, 40) for _ in range(500)]
    batches = planned_batches(sources, targets, 512)
    planned = plan_batches(np.array(sources), np.array(targets), batch_tokens=512, seed=1, epoch=0)
    assert sorted(batches) == sorted(batch.tolist() for batch in planned)
    longest = [max(targets[index] for index in batch) for batch in batches]
    assert longest == sorted(longest)


def test_a_hundred_sentences_are_translated_one_at_a_time():
    alone = next(case for case in accelerator_translation.CASES if case.batch_size == 1)
    assert len(decoding.batches([5] * 1000, alone)) == 100
