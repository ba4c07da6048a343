import contextlib
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from nanogpt_initial_weights import initialise
from torch import nn

from benchmarks import shakespeare
from benchmarks.shakespeare import (
    ALIKE,
    RECIPE,
    SEEDS,
    WITH_ITS_SETTINGS,
    compare,
    in_turn,
    main,
    products_alone,
    write_for_nanogpt,
)
from regardant.models import next_token, tokens
from regardant.models.decoder_only import DecoderOnlyConfig


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


def test_bars_are_of_means_over_the_runs_and_of_speeds_in_float32():
    theirs = [{"seconds": 108.0, "loss": 1.9, "tokens_per_second": 15_000.0}] * 3
    mine = [{"seconds": s, "loss": loss, "tokens_per_second": 1.0} for s, loss in ((30, 1.8), (40, 1.9), (35, 1.85))]
    alike = {
        f"{ALIKE}, {precision}": [{"seconds": 1.0, "loss": 2.0, "tokens_per_second": speed}]
        for precision, speed in (("bfloat16", 60_000.0), ("float32", 30_000.0))
    }
    compared = compare({"nanoGPT": theirs, "regardant": mine, **alike})
    assert [one["value"] for one in compared["bars"]] == [pytest.approx(-0.05), pytest.approx(0.3241), 2.0]
    assert all(one["pass"] for one in compared["bars"])
    mine[0] = {"seconds": 60.0, "loss": 2.1, "tokens_per_second": 1.0}
    alike[f"{ALIKE}, float32"][0]["tokens_per_second"] = 22_000.0
    compared = compare({"nanoGPT": theirs, "regardant": mine, **alike})
    assert [one["pass"] for one in compared["bars"]] == [False, False, False]


def test_all_trainings_are_taken_in_turn(tmp_path, monkeypatch):
    taken = []

    class Peak(contextlib.nullcontext):
        def __init__(self, program, folder):
            super().__init__(self)

        def ask(self, precisions):
            assert precisions == ["float32"]
            taken.append("products")
            return {"float32": 100.0 + len(taken)}

    def ours(recipe, name, fields):
        taken.append((recipe, *fields))
        return {"loss": float(len(taken))}

    monkeypatch.setattr(shakespeare, "Peer", Peak)
    monkeypatch.setattr(shakespeare, "ours", ours)
    monkeypatch.setattr(shakespeare, "nanogpt", lambda checkout: taken.append("nanoGPT") or {"loss": 0.0})
    runs_of, peak = in_turn(tmp_path, ["bfloat16", "float32"])
    assert taken == [
        one
        for seed in (f"seed={seed}" for seed in SEEDS)
        for one in (
            "nanoGPT",
            (RECIPE, seed),
            (WITH_ITS_SETTINGS, seed, "training.precision=bfloat16"),
            (WITH_ITS_SETTINGS, seed, "training.precision=float32"),
            "products",
        )
    ]
    assert peak == 100 + len(taken)
    assert [run["loss"] for run in runs_of[f"{ALIKE}, float32"]] == [4.0, 9.0, 14.0]
    assert {len(runs) for runs in runs_of.values()} == {len(SEEDS)}


def test_nanogpt_can_begin_from_our_initial_weights():
    shape = {"d_model": 128, "num_heads": 4, "num_layers": 1, "d_ff": 512, "max_length": 64}
    torch.manual_seed(1)
    ours = dict(DecoderOnlyConfig.model_validate(shape).build(tokens(65), next_token(65)).named_parameters())
    theirs = SimpleNamespace(lm_head=nn.Linear(128, 65, bias=False))
    theirs.transformer = nn.ModuleDict({"wpe": nn.Embedding(64, 128), "c_attn": nn.Linear(128, 384)})
    theirs.modules = lambda: [theirs.lm_head, *theirs.transformer.modules()]
    initialise(theirs, SimpleNamespace(n_embd=128))
    pairs = (
        (theirs.lm_head.weight, "table.weight"),
        (theirs.transformer.wpe.weight, "positions.table"),
        (theirs.transformer.c_attn.weight, "query_key_value.weight"),
    )
    for their_weight, name in pairs:
        (our_weight,) = (weight for full_name, weight in ours.items() if full_name.endswith(name))
        assert their_weight.shape == our_weight.shape
        assert their_weight.detach().std().item() == pytest.approx(our_weight.detach().std().item(), rel=0.05)


def test_products_alone_are_the_machine_s_rate_over_the_arithmetic_of_a_token():
    alone = products_alone(5e6, 200.0, 20_000.0)
    assert (alone["tokens_per_second"], alone["times_nanogpt"]) == (40_000, 2)
