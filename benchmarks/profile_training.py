"""Where a training step of ours spends its time, on the shape and the batches of `make bench-training`.

    make bench-profile

By torch.profiler over the product's own trainer. Lands in benchmarks/results/training_profile.json.
"""

from typing import Any

from . import multi30k
from .bars import rounded
from .records import RESULTS, ROOT, commit, keep, machine
from .shared_batches import SHAPE
from .workers import Peer

FOLDER = ROOT / "runs" / "bench-training"
PRECISIONS = ("bfloat16", "float32")


def shares(told: dict[str, Any]) -> dict[str, Any]:
    """What a peer said of its profile, as shares of the time and numbers of a step."""
    steps, total = told["updates"], told["profiled_seconds"]
    return {
        "seconds_a_step": rounded(told["seconds"] / steps),
        "seconds_a_step_profiled": rounded(total / steps),
        "shares": {part: rounded(seconds / total) for part, seconds in told["parts"].items()},
        "page_faults_a_step": round(told["page_faults"] / steps),
        "kernel_share": rounded(told["system_seconds"] / told["seconds"]),
        "decided": told["decided"],
        "slowest_operators": [
            {"operator": name, "calls_a_step": calls / steps, "share": rounded(seconds / total)}
            for name, calls, seconds in told["slowest"]
        ],
    }


def main() -> None:
    batches = FOLDER / "batches.json"
    data = multi30k.write_batches(batches)
    profiles = {}
    for precision in PRECISIONS:
        with Peer("regardant_profile", [str(batches), precision], folder=FOLDER) as peer:
            profiles[precision] = shares(peer.about)
    result = {
        "command": "make bench-profile",
        "shape": SHAPE,
        "data": data,
        "profiles": profiles,
        "machine": machine(),
        "commit": commit(),
    }
    keep(RESULTS / "training_profile.json", result)
    for precision, profile in profiles.items():
        print(f"{precision}: {profile['seconds_a_step']} s a step, attention by {profile['decided']['kernel']}")
        for part, share in profile["shares"].items():
            print(f"  {share:6.1%}  {part}")
        print(f"  {profile['kernel_share']:6.1%}  in the kernel, {profile['page_faults_a_step']:,} page faults a step")


if __name__ == "__main__":
    main()
