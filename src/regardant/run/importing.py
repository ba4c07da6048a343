"""Import of a Hugging Face model as a run folder."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from regardant.config.run_files import TOKENIZER, WEIGHTS
from regardant.errors import DataError, RunError
from regardant.files import write_atomically
from regardant.interop.folders import require_empty
from regardant.planning.probes import Decisions
from regardant.run.fingerprints import fingerprints_of
from regardant.run.folder import IMPORTED, Record
from regardant.tasks import load_recipe, task_named
from regardant.tasks.base import Log
from regardant.training.checkpoints import save_weights


def import_model(source: Path, folder: Path, log: Log = print) -> None:
    """Make a run folder from a Hugging Face folder: config.json, model.safetensors, tokenizer.json.

    Nothing in the folder is executed. The new run is opened once, as a check, before it is moved to `folder`.

    Raises:
        DataError: the model cannot be imported; the message names the setting and its value.
        RunError: `folder` is not empty or cannot be replaced.
    """
    from regardant.interop.huggingface.reading import read

    require_empty(folder)
    try:
        found = read(source)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # from a wrong type, a zero
        raise DataError(f"{source}: its .json files hold invalid values ({error}): restore them") from error
    config = load_recipe(found.recipe, origin=str(source))
    task = task_named(config.task)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
        part = Path(scratch) / "run"
        part.mkdir()
        if found.tokenizers is not None:
            found.tokenizers.save(part / TOKENIZER)
        for name, content in found.files.items():
            write_atomically(part / name, json.dumps(content, ensure_ascii=False) + "\n")
        save_weights(part / WEIGHTS, found.weights, {})
        try:
            model = task.open(config, part, torch.device("cpu")).model
        except RunError as error:
            raise DataError(str(error).replace(str(part), str(source))) from error
        parameters = sum(one.numel() for one in model.parameters())
        record = Record(
            asked=config,
            config=config,
            decided=Decisions("float32", "sdpa", torch.get_num_threads()),
            fingerprints={},
            plan={"parameters": parameters, IMPORTED: str(source)},
            files=fingerprints_of(part, task.files_of(config)),
        )
        record.write(part)
        if folder.is_dir():
            folder.rmdir()
        part.rename(folder)
    log(f"{folder}: a run of {config.task}, {parameters:,} parameters, from {source}")
