"""Program of a follower in a training: python -m regardant.run.follower RUN [MODULE...] RANK SIZE STORE."""

import signal
import sys
from pathlib import Path

from regardant.run.training import follow
from regardant.training.processes import end_with_leader

if __name__ == "__main__":
    for stopper in (signal.SIGINT, signal.SIGTERM):  # a service manager sends them to all processes; the leader saves
        signal.signal(stopper, signal.SIG_IGN)
    end_with_leader()
    folder, *modules, rank, size, store = sys.argv[1:]
    follow(Path(folder), int(rank), int(size), store, modules)
