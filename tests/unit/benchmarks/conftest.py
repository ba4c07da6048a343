"""Peers are programs of environments of their own, and no package: they find each other in their folder."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[3] / "benchmarks" / "peers")]
