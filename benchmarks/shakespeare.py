"""Tiny Shakespeare, letter by letter: nanoGPT's documented run on a CPU and ours, timed in turn, start-up included.

    make bench NANOGPT=/path/to/nanoGPT

nanoGPT is run from the checkout that is given, with that command and on data of ours in its format; nothing is written
there. Its seed is fixed. The loss is over the whole validation split, windows of 64 without overlap. Lands in
benchmarks/results/nanogpt.json.
"""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import yaml

from .bars import bar, rounded, told
from .records import RESULTS, ROOT, commit, keep, machine
from .workers import PROGRAMS, Peer

REGARDANT = ROOT / ".venv" / "bin" / "regardant"
FOLDER = ROOT / "runs" / "bench-shakespeare"
SEEDS = (1, 2, 3)
WITHOUT_TRACES = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
"""For what runs in somebody's checkout."""

SETTINGS = {
    "eval_iters": 20,
    "log_interval": 1,
    "block_size": 64,
    "batch_size": 12,
    "n_layer": 4,
    "n_head": 4,
    "n_embd": 128,
    "max_iters": 2000,
    "lr_decay_iters": 2000,
    "dropout": 0.0,
}
"""Of nanoGPT's README, for a CPU."""

RECIPE, WITH_ITS_SETTINGS = "shakespeare", "shakespeare-nanogpt"
PRECISIONS = {"probed precision": [], "float32": ["training.precision=float32"]}
"""Of the runs with nanoGPT's settings, to compare the speed of a step: what the probe takes, and nanoGPT's own on a
CPU."""

TIME_BAR, SPEED_BAR = 1 / 3, 1.5


def text() -> Path:
    if "REGARDANT_DATA" not in os.environ:
        sys.exit("this benchmark reads Tiny Shakespeare: set REGARDANT_DATA to the folder that holds tinyshakespeare")
    return Path(os.environ["REGARDANT_DATA"]) / "tinyshakespeare" / "input.txt"


def write_for_nanogpt(written: str, folder: Path) -> None:
    """The text as its prepare.py leaves it: letters in order, nine tenths to train on."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = sorted(set(written))
    ids = {letter: number for number, letter in enumerate(letters)}
    cut = int(len(written) * 0.9)
    for name, part in (("train", written[:cut]), ("val", written[cut:])):
        np.array([ids[letter] for letter in part], dtype=np.uint16).tofile(folder / f"{name}.bin")
    meta = {"vocab_size": len(letters), "stoi": ids, "itos": dict(enumerate(letters))}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def nanogpt(checkout: Path) -> dict[str, float]:
    """Its run: seconds, loss, and tokens a second of its median iteration."""
    out = FOLDER / "nanogpt"
    shutil.rmtree(out, ignore_errors=True)
    settings = {"device": "cpu", "compile": False, **SETTINGS, "dataset": FOLDER / "data", "out_dir": out}
    given = [f"--{name}={value}" for name, value in settings.items()]
    start = time.perf_counter()
    printed = subprocess.run(
        [sys.executable, "train.py", "config/train_shakespeare_char.py", *given],
        check=True,
        cwd=checkout,
        env=WITHOUT_TRACES,
        capture_output=True,
        text=True,
    ).stdout
    seconds = time.perf_counter() - start
    milliseconds = median(map(float, re.findall(r"^iter \d+:.* time ([\d.]+)ms", printed, flags=re.MULTILINE)))
    loss = subprocess.run(
        [sys.executable, PROGRAMS / "nanogpt_loss.py", checkout, out / "ckpt.pt", FOLDER / "data" / "val.bin"],
        check=True,
        env=WITHOUT_TRACES,
        capture_output=True,
        text=True,
    ).stdout
    tokens = SETTINGS["batch_size"] * SETTINGS["block_size"]
    return {"seconds": seconds, "loss": float(loss), "tokens_per_second": 1000 * tokens / milliseconds}


def ours(recipe: str, name: str, fields: list[str]) -> dict[str, float]:
    """Our run: the same."""
    run = FOLDER / name
    shutil.rmtree(run, ignore_errors=True)
    fields = [f"data.root={text().parent}", *fields]
    given = [argument for field in fields for argument in ("--set", field)]
    start = time.perf_counter()
    subprocess.run([REGARDANT, "train", recipe, "--out", run, *given], check=True)
    seconds = time.perf_counter() - start
    said = subprocess.run([REGARDANT, "evaluate", run, "--json"], check=True, capture_output=True, text=True).stdout
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    speed = median(event["tokens_per_second"] for event in events if event["event"] == "train")
    return {"seconds": seconds, "loss": json.loads(said)["loss"], "tokens_per_second": speed}


def compare(
    theirs: list[dict[str, float]], mine: list[dict[str, float]], alike: dict[str, dict[str, float]]
) -> dict[str, Any]:
    """Means over the runs, and the bars; `alike` those with nanoGPT's settings, by their precision."""
    runs_of = {"nanoGPT": theirs, "regardant": mine}
    runs_of |= {f"regardant, nanoGPT's settings, {precision}": [run] for precision, run in alike.items()}
    means = {
        name: {field: rounded(mean(one[field] for one in runs)) for field in runs[0]} for name, runs in runs_of.items()
    }
    nano, own = means["nanoGPT"], means["regardant"]
    return {
        "means": means,
        "bars": [
            bar("loss over that of nanoGPT", own["loss"] - nano["loss"], 0.0),
            bar("of nanoGPT's wall time", own["seconds"] / nano["seconds"], rounded(TIME_BAR)),
            *(
                bar(
                    f"times nanoGPT's tokens a second with its settings, {precision}",
                    run["tokens_per_second"] / nano["tokens_per_second"],
                    SPEED_BAR,
                    at_least=True,
                )
                for precision, run in alike.items()
            ),
        ],
    }


def products_alone(flops_a_token: float, gflops: float, theirs: float) -> dict[str, float | None]:
    """What a step in float32 could be at the most: all its time spent in matrix products, at the machine's own rate."""
    fastest = 1e9 * gflops / flops_a_token
    return {
        "megaflops_a_token": rounded(flops_a_token / 1e6),
        "peak_gflops": rounded(gflops),
        "tokens_per_second": rounded(fastest),
        "times_nanogpt": rounded(fastest / theirs),
    }


def main(paths: list[str]) -> None:
    if not paths:
        print("nanoGPT is left out: give the path of a checkout, make bench NANOGPT=/path/to/nanoGPT")
        return
    checkout = Path(paths[0]).resolve()
    if not (checkout / "config" / "train_shakespeare_char.py").is_file():
        sys.exit(f"{checkout} is no checkout of nanoGPT (no config/train_shakespeare_char.py)")
    write_for_nanogpt(text().read_text(encoding="utf-8"), FOLDER / "data")
    theirs, mine, peaks = [], [], []
    with Peer("matmul_peak", folder=FOLDER) as peak:
        for seed in SEEDS:
            theirs.append(nanogpt(checkout))
            mine.append(ours(RECIPE, f"seed-{seed}", [f"seed={seed}"]))
            peaks.append(peak.ask()["float32"])
    alike = {said: ours(WITH_ITS_SETTINGS, said.split()[0], fields) for said, fields in PRECISIONS.items()}
    compared = compare(theirs, mine, alike)
    told_of_run = yaml.safe_load((FOLDER / "float32" / "run.yaml").read_text(encoding="utf-8"))
    speed = compared["means"]["nanoGPT"]["tokens_per_second"]
    limit = products_alone(told_of_run["plan"]["flops_per_token"], max(peaks), speed)
    result = {
        "command": "make bench NANOGPT=/path/to/nanoGPT",
        **compared,
        "float32_products_alone": limit,
        "nanogpt_runs": theirs,
        "runs": mine,
        "machine": machine(),
        "commit": commit(),
    }
    for name, numbers in compared["means"].items():
        print(f"{name:50}" + "".join(f"{value:>12,.4g} {field}" for field, value in numbers.items()))
    print(f"matrix products in float32 alone would be {limit['times_nanogpt']} times nanoGPT's tokens a second")
    print(*told(compared["bars"]), sep="\n")
    keep(RESULTS / "nanogpt.json", result)


if __name__ == "__main__":
    main(sys.argv[1:])
