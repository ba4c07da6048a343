"""Time of the parts of a training step, on the shape and the batches of `make bench-training`.

    make bench-profile

torch.profiler over Regardant's own trainer. Written to benchmarks/results/training_profile.json.
"""

from typing import Any

from . import multi30k
from .bars import rounded
from .records import ROOT, Measurement, arguments, precisions
from .shared_batches import SHAPE
from .workers import Peer

FOLDER = ROOT / "runs" / "bench-training"


def shares(profiled: dict[str, Any]) -> dict[str, Any]:
    """Return a peer's profile as shares of the time and numbers of a step."""
    steps, total = profiled["updates"], profiled["profiled_seconds"]
    return {
        "seconds_a_step": rounded(profiled["seconds"] / steps),
        "seconds_a_step_profiled": rounded(total / steps),
        "shares": {part: rounded(seconds / total) for part, seconds in profiled["parts"].items()},
        "page_faults_a_step": round(profiled["page_faults"] / steps),
        "kernel_share": rounded(profiled["system_seconds"] / profiled["seconds"]),
        "decided": profiled["decided"],
        "slowest_operators": [
            {"operator": name, "calls_a_step": calls / steps, "share": rounded(seconds / total)}
            for name, calls, seconds in profiled["slowest"]
        ],
    }


def main() -> None:
    measurement = Measurement(scratch=arguments(__doc__).parse_args().scratch)
    batches = FOLDER / "batches.json"
    data = multi30k.write_batches(batches)
    profiles = {}
    for precision in reversed(precisions()):
        with Peer("regardant_profile", [str(batches), precision], folder=FOLDER, variables={}) as peer:
            profiles[precision] = shares(peer.about)
    result = {
        "command": "make bench-profile",
        "shape": SHAPE,
        "data": data,
        "profiles": profiles,
    }
    measurement.keep("training_profile", result)
    for precision, profile in profiles.items():
        print(f"{precision}: {profile['seconds_a_step']} s a step, attention by {profile['decided']['kernel']}")
        for part, share in profile["shares"].items():
            print(f"  {share:6.1%}  {part}")
        print(f"  {profile['kernel_share']:6.1%}  in the kernel, {profile['page_faults_a_step']:,} page faults a step")


if __name__ == "__main__":
    main()
