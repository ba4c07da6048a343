"""Comparison of runs."""

from collections.abc import Sequence
from pathlib import Path

from regardant.errors import ConfigError
from regardant.files import write_atomically
from regardant.run.fingerprints import require_as_evaluated
from regardant.run.folder import Record
from regardant.tasks import task_named
from regardant.tasks.base import Report


def compare(folders: Sequence[Path], page: Path | None = None) -> Report:
    """Return the report that compares evaluated runs with the first one, and write it to `page` if given.

    Scores are computed as the first run's recipe says. Raises ConfigError for runs that cannot be compared, RunError
    for a run that is incomplete or not evaluated.
    """
    if len(folders) < 2:
        raise ConfigError(f"{', '.join(map(str, folders))} is a single run: give two runs or more")
    places = [folder.resolve() for folder in folders]
    for number, folder in enumerate(folders):
        if places[number] in places[:number]:
            raise ConfigError(f"{folder} was given twice: give each run once")
    for folder in folders:
        require_as_evaluated(folder)
    records = {folder: Record.read(folder) for folder in folders}
    first = records[folders[0]].config
    for folder, record in records.items():
        if record.config.task != first.task:
            raise ConfigError(
                f"{folders[0]} is a run of {first.task}, {folder} of {record.config.task}: give runs of one task"
            )
    report = task_named(first.task).compare({folder: (one.config, one.plan) for folder, one in records.items()})
    if page is not None:
        write_atomically(page, report.page())
    return report
