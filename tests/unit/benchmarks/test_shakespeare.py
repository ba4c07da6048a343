import pickle

import numpy as np
import pytest

from benchmarks.shakespeare import compare, main, products_alone, write_for_nanogpt


def test_nanogpt_s_files_hold_the_text(tmp_path):
    written = "to be or not to be" * 10
    write_for_nanogpt(written, tmp_path / "data")
    meta = pickle.loads((tmp_path / "data" / "meta.pkl").read_bytes())
    parts = [np.fromfile(tmp_path / "data" / f"{name}.bin", dtype=np.uint16) for name in ("train", "val")]
    assert "".join(meta["itos"][token] for part in parts for token in part.tolist()) == written
    assert [len(part) for part in parts] == [162, 18]
    assert meta["vocab_size"] == len(set(written)) == len(meta["stoi"])


def test_without_a_checkout_it_is_left_out_with_a_word(capsys):
    main([])
    assert "NANOGPT=" in capsys.readouterr().out


def test_a_folder_that_is_no_checkout_is_named(tmp_path):
    with pytest.raises(SystemExit, match="no checkout of nanoGPT"):
        main([str(tmp_path)])


def test_bars_are_of_means_over_the_runs():
    theirs = [{"seconds": 108.0, "loss": 1.9, "tokens_per_second": 15_000.0}] * 3
    mine = [{"seconds": s, "loss": loss, "tokens_per_second": 1.0} for s, loss in ((30, 1.8), (40, 1.9), (35, 1.85))]
    alike = {"float32": {"seconds": 1.0, "loss": 2.0, "tokens_per_second": 30_000.0}}
    compared = compare(theirs, mine, alike)
    assert [one["value"] for one in compared["bars"]] == [pytest.approx(-0.05), pytest.approx(0.3241), 2.0]
    assert all(one["pass"] for one in compared["bars"])
    mine[0] = {"seconds": 60.0, "loss": 2.1, "tokens_per_second": 1.0}
    assert [one["pass"] for one in compare(theirs, mine, alike)["bars"]] == [False, False, True]


def test_products_alone_are_the_machine_s_rate_over_the_arithmetic_of_a_token():
    alone = products_alone(5e6, 200.0, 20_000.0)
    assert (alone["tokens_per_second"], alone["times_nanogpt"]) == (40_000, 2)
