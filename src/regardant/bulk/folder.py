"""The output folder of bulk work: its manifest, and the shards that are left."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from regardant.bulk.work import Numbered, Work
from regardant.config.differences import differences
from regardant.data.addresses import MANIFEST, Shard, fingerprint, storage, write_whole
from regardant.errors import ConfigError, DataError, first_line


def begin(work: Work, shards: Sequence[Shard], weights: str) -> list[Numbered]:
    """Return the shards that are not answered yet; write the manifest of the work into a new folder.

    `weights` is the fingerprint of the model's weights. Raises ConfigError for a folder with other content or other
    work, DataError for one that cannot be read.
    """
    asked = {
        **{name: value for name, value in asdict(work).items() if name not in ("run", "out")},
        "columns": list(work.columns),
        "weights": weights,
        "shards": fingerprint(shards),
    }
    files, path = storage(work.out)
    try:
        files.invalidate_cache()
        if not files.exists(f"{path}/{MANIFEST}"):
            if files.exists(path) and _holds_files(files.ls(path, detail=False)):
                raise ConfigError(f"--out {work.out} holds files that are not answers: give a new folder")
            write_whole(f"{work.out}/{MANIFEST}", lambda sink: sink.write(json.dumps(asked, indent=2).encode()))
        elif changed := differences(json.loads(files.cat_file(f"{path}/{MANIFEST}")), asked):
            raise ConfigError(f"--out {work.out} holds the answers of other work ({'; '.join(changed)}): give another")
        done = {name.rpartition("/")[2] for name in files.find(f"{path}/_done")}
    except (OSError, ValueError) as error:
        raise DataError(f"--out {work.out} cannot be read ({first_line(error)}): check the address") from error
    return [Numbered(number, shard) for number, shard in enumerate(shards) if f"{number:05}" not in done]


def _holds_files(names: Sequence[str]) -> bool:
    """Return whether a folder has any file but hidden ones, such as a partly written manifest."""
    return any(not name.rstrip("/").rpartition("/")[2].startswith(".") for name in names)
