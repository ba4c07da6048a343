"""Program of a follower in a training: python -m regardant.run.follower RUN [MODULE...] RANK SIZE STORE."""

import sys
from pathlib import Path

from regardant.run.training import follow
from regardant.training.processes import end_with_leader

if __name__ == "__main__":
    end_with_leader()
    folder, *modules, rank, size, store = sys.argv[1:]
    follow(Path(folder), int(rank), int(size), store, modules)
