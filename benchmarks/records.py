"""What every measurement leaves: its numbers, with the machine and the commit they come from, and its figures."""

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"


def keep(path: Path, result: dict[str, Any]) -> None:
    """Write numbers where readers find them, and say where."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(path.relative_to(ROOT))


def draw(name: str, chart: str) -> None:
    """Keep a chart as docs/experiments/NAME.svg."""
    from regardant.pictures import alone

    path = ROOT / "docs" / "experiments" / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(alone(chart), encoding="utf-8")
    print(path.relative_to(ROOT))


def machine() -> dict[str, Any]:
    """What computed."""
    import torch

    said = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    core = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in said)}
    return {
        "cpu": core.get("model name", platform.processor()),
        "cores": os.cpu_count(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "bfloat16": "avx512_bf16" in core.get("flags", "").split(),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }


def commit() -> str:
    """What was computed. Ask before work begins: it may move on meanwhile."""
    return subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
