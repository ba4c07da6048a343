"""Tiny Shakespeare by characters: nanoGPT's documented run on a CPU and Regardant, timed in turn, start-up included.

    make bench NANOGPT=/path/to/nanoGPT

nanoGPT is run from the given checkout, with its documented command, on data that is written here in its format;
nothing is written to the checkout. Its seed is fixed; Regardant's recipes are trained from three seeds. The loss of
every run is over the whole validation split, in windows of 64 without overlap. Written to
benchmarks/results/nanogpt.json.
"""

import os
import pickle
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import yaml

from regardant.training.events import named, read_events

from .bars import bar, conclude, lines, rounded
from .recipes import json_of
from .records import REGARDANT, ROOT, Measurement, arguments, commit_of, precisions, set_options
from .workers import PROGRAMS, Peer

FOLDER = ROOT / "runs" / "bench-shakespeare"
SEEDS = (1, 2, 3)
WITHOUT_TRACES = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
"""The environment of programs that run in the checkout: they leave no compiled files there."""

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
"""The options of nanoGPT's README for a CPU."""

RECIPE, WITH_ITS_SETTINGS = "shakespeare", "shakespeare-nanogpt"
"""Recipes: one that reaches nanoGPT's loss fastest; one with nanoGPT's shape, optimizer, updates and settings of the
schedule. The second differs from nanoGPT in initial weights, biases, which weights decay, the update at which its
learning rate begins to decay, and the order of its windows."""

ALIKE = "regardant, nanoGPT's settings"

TIME_BAR, SPEED_BAR = 1 / 3, 1.5


def text() -> Path:
    """Return the file of the text."""
    if "REGARDANT_DATA" not in os.environ:
        sys.exit("this benchmark reads Tiny Shakespeare: set REGARDANT_DATA to the folder that holds tinyshakespeare")
    return Path(os.environ["REGARDANT_DATA"]) / "tinyshakespeare" / "input.txt"


def write_for_nanogpt(written: str, folder: Path) -> None:
    """Write the text as nanoGPT's prepare.py does: characters in order, nine tenths to train on."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = sorted(set(written))
    ids = {letter: number for number, letter in enumerate(letters)}
    cut = int(len(written) * 0.9)
    for name, part in (("train", written[:cut]), ("val", written[cut:])):
        np.array([ids[letter] for letter in part], dtype=np.uint16).tofile(folder / f"{name}.bin")
    meta = {"vocab_size": len(letters), "stoi": ids, "itos": dict(enumerate(letters))}
    (folder / "meta.pkl").write_bytes(pickle.dumps(meta))


def nanogpt(checkout: Path, *program: str | Path) -> dict[str, float]:
    """Run train.py, or `program`. Return seconds, loss, and tokens a second of the median iteration."""
    out = FOLDER / "nanogpt"
    shutil.rmtree(out, ignore_errors=True)
    settings = {"device": "cpu", "compile": False, **SETTINGS, "dataset": FOLDER / "data", "out_dir": out}
    given = [f"--{name}={value}" for name, value in settings.items()]
    start = time.perf_counter()
    printed = subprocess.run(
        [sys.executable, *(program or ("train.py",)), "config/train_shakespeare_char.py", *given],
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
    """Train and evaluate a recipe. Return the numbers that `nanogpt` returns."""
    run = FOLDER / name
    shutil.rmtree(run, ignore_errors=True)
    start = time.perf_counter()
    subprocess.run([REGARDANT, "train", recipe, "--out", run, *set_options(fields)], check=True)
    seconds = time.perf_counter() - start
    loss = json_of(["evaluate", run, "--json"])["loss"]
    speed = median(event["tokens_per_second"] for event in named(read_events(run / "metrics.jsonl"), "train"))
    return {"seconds": seconds, "loss": loss, "tokens_per_second": speed}


def in_turn(checkout: Path, precisions: Sequence[str]) -> tuple[dict[str, list[dict[str, float]]], float]:
    """Run nanoGPT and both recipes in turn, the second in each precision, as often as there are SEEDS.

    Return the numbers of all runs by name, and the largest rate of float32 products in between, in GFLOP/s.
    """
    runs_of: dict[str, list[dict[str, float]]] = {"nanoGPT": [], "regardant": []}
    runs_of |= {f"{ALIKE}, {precision}": [] for precision in precisions}
    peaks = []
    with Peer("matmul_peak", folder=FOLDER) as peak:
        for seed in SEEDS:
            runs_of["nanoGPT"].append(nanogpt(checkout))
            runs_of["regardant"].append(ours(RECIPE, f"seed-{seed}", [f"seed={seed}"]))
            for precision in precisions:
                fields = [f"seed={seed}", f"training.precision={precision}"]
                runs_of[f"{ALIKE}, {precision}"].append(ours(WITH_ITS_SETTINGS, precision, fields))
            peaks.append(peak.ask(precisions=["float32"])["float32"])
    return runs_of, max(peaks)


def compare(runs_of: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    """Return means over the runs of each name, and the bars."""
    means = {
        name: {field: rounded(mean(one[field] for one in runs)) for field in runs[0]} for name, runs in runs_of.items()
    }
    return {"means": means, "bars": bars(means)}


def bars(means: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the bars. nanoGPT computes in float32, and a speed is compared in that precision alone."""
    nano, own = means["nanoGPT"], means["regardant"]
    alike = means[f"{ALIKE}, float32"]
    times = alike["tokens_per_second"] / nano["tokens_per_second"]
    return [
        bar("loss less that of nanoGPT", own["loss"] - nano["loss"], 0.0),
        bar("share of nanoGPT's wall time, any precision", own["seconds"] / nano["seconds"], rounded(TIME_BAR)),
        bar("float32: times nanoGPT's tokens a second, its settings", times, SPEED_BAR, at_least=True),
    ]


def products_alone(flops_a_token: float, gflops: float, theirs: float) -> dict[str, float | None]:
    """Return the speed of a float32 step that spends all its time in matrix products, at the machine's own rate."""
    fastest = 1e9 * gflops / flops_a_token
    return {
        "megaflops_a_token": rounded(flops_a_token / 1e6),
        "peak_gflops": rounded(gflops),
        "tokens_per_second": rounded(fastest),
        "times_nanogpt": rounded(fastest / theirs),
    }


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("checkout", nargs="?", help="folder of nanoGPT")
    asked = parser.parse_args(given)
    if asked.checkout is None:
        print("nanoGPT is left out: give the path of a checkout, make bench NANOGPT=/path/to/nanoGPT")
        return
    checkout = Path(asked.checkout).resolve()
    if not (checkout / "config" / "train_shakespeare_char.py").is_file():
        sys.exit(f"{checkout} is no checkout of nanoGPT (no config/train_shakespeare_char.py)")
    measurement = Measurement(scratch=asked.scratch)
    write_for_nanogpt(text().read_text(encoding="utf-8"), FOLDER / "data")
    runs_of, peak = in_turn(checkout, list(reversed(precisions())))
    initialised = nanogpt(checkout, PROGRAMS / "nanogpt_initial_weights.py", checkout)
    runs_of = {"nanoGPT": runs_of["nanoGPT"], "nanoGPT, Regardant's initial weights": [initialised], **runs_of}
    compared = compare(runs_of)
    record = yaml.safe_load((FOLDER / "float32" / "run.yaml").read_text(encoding="utf-8"))
    speed = compared["means"]["nanoGPT"]["tokens_per_second"]
    limit = products_alone(record["plan"]["flops_per_token"], peak, speed)
    result = {
        "command": "make bench NANOGPT=/path/to/nanoGPT",
        "versions": {"nanoGPT": commit_of(checkout)},
        **compared,
        "float32_products_alone": limit,
        "runs": runs_of,
    }
    for name, numbers in compared["means"].items():
        print(f"{name:50}" + "".join(f"{value:>12,.4g} {field}" for field, value in numbers.items()))
    print(f"matrix products in float32 alone would be {limit['times_nanogpt']} times nanoGPT's tokens a second")
    print(*lines(compared["bars"]), sep="\n")
    measurement.keep("nanogpt", result)
    conclude(compared["bars"])


if __name__ == "__main__":
    main()
