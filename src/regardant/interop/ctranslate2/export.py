"""Export of a model to a folder that CTranslate2 reads.

FOLDER/model.bin, config.json, *_vocabulary.json    CTranslate2's own
FOLDER/tokenizer.json                               the tokenizers: text to tokens of the vocabulary, and back
FOLDER/origin.sha256                                two hashes: of the weights and both programs' versions, of the files

The folder is written under a temporary name and renamed, so that a reader finds a complete folder or none.
"""

import hashlib
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from regardant.data.tokenizers import Tokenizers
from regardant.errors import ConfigError, RunError
from regardant.interop.ctranslate2.specification import specify
from regardant.interop.ctranslate2.threads import THREADS
from regardant.interop.folders import FORMATS, replacing, require_empty
from regardant.models import SequenceToSequenceModel

ORIGIN = "origin.sha256"


def export(model: SequenceToSequenceModel, tokenizers: Tokenizers, folder: Path, quantization: str) -> None:
    """Export a model to `folder`.

    Raises RunError if the folder is not empty or CTranslate2 cannot compute the model, ConfigError for an unknown
    quantization.
    """
    require_empty(folder)
    _write(model, tokenizers, folder, quantization)


def exported(model: SequenceToSequenceModel, tokenizers: Tokenizers, folder: Path, quantization: str) -> None:
    """Export a model to `folder`, in place of an earlier export, unless an intact export of these weights is there.

    Give each quantization a folder of its own: it is not compared. Raises as `export`, but for a folder that is not
    empty.
    """
    with suppress(OSError, ValueError):
        if (folder / ORIGIN).read_text(encoding="ascii") == _fingerprint(model, folder):
            return
    _write(model, tokenizers, folder, quantization)


def _write(model: SequenceToSequenceModel, tokenizers: Tokenizers, folder: Path, quantization: str) -> None:
    if quantization not in FORMATS["ctranslate2"]:
        known = ", ".join(FORMATS["ctranslate2"])
        raise ConfigError(f"there is no quantization {quantization}: take {known}")
    spec = specify(model, tokenizers)
    spec.validate()
    spec.optimize(quantization=quantization)
    with replacing(folder) as part:
        spec.save(str(part))
        tokenizers.save(part / "tokenizer.json")
        (part / ORIGIN).write_text(_fingerprint(model, part), encoding="ascii")


def origin_of(model: SequenceToSequenceModel) -> str:
    """Return the SHA-256 of the weights and of the versions of both programs."""
    digest = hashlib.sha256(" ".join(version(package) for package in ("regardant", "ctranslate2")).encode())
    for name, tensor in model.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.float().cpu().numpy().tobytes())
    return digest.hexdigest()


def require_intact(folder: Path) -> None:
    """Raise RunError for an export whose files are not those that were written. An export of an earlier version has no
    hash of its files alone, and is not checked."""
    with suppress(OSError, ValueError):
        kept = (folder / ORIGIN).read_text(encoding="ascii").split()
        if len(kept) == 1 or kept[1:] == [_sha256_of_files(folder)]:
            return
    raise RunError(f"{folder} is not what was exported: remove it; it is exported again when an engine needs it")


def _fingerprint(model: SequenceToSequenceModel, folder: Path) -> str:
    """Return the SHA-256 of the origin and of the files of an export, so that a damaged export is written again."""
    return f"{origin_of(model)}\n{_sha256_of_files(folder)}\n"


def _sha256_of_files(folder: Path) -> str:
    digest = hashlib.sha256()
    # Threads are measured when the export is opened; threads.json is checked by its reader.
    for path in sorted(one for one in folder.iterdir() if one.name not in (ORIGIN, THREADS)):
        digest.update(f"{path.name} {path.stat().st_size}".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
