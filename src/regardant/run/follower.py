"""Program of a follower, a rank of a training other than 0: python -m regardant.run.follower RUN [MODULE...]"""

import sys
from pathlib import Path

from regardant.config.plugins import import_plugins
from regardant.run.training import follow
from regardant.training.processes import end_with_starter, joined

if __name__ == "__main__":
    end_with_starter()
    folder, *modules = sys.argv[1:]
    import_plugins(modules)
    with joined() as group:
        follow(Path(folder), group)
