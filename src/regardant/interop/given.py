"""Run to export, as the writers of all formats receive it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regardant.config.run_files import TOKENIZER
from regardant.data.tokenizers import Tokenizers
from regardant.models import Model


@dataclass(frozen=True)
class Given:
    """Run to export."""

    model: Model
    config: Any
    """The configuration of its task."""
    tokenizers: Tokenizers | None
    """None: items are no texts."""
    image: Mapping[str, Any] | None
    """Size, channels, mean, deviation and patch size of images. None: items are no images."""
    labels: list[str]


def given_by(folder: Path, model: Model, config: Any) -> Given:
    """Return the run to export, with the tokenizers, image settings and labels of its folder."""
    image = None
    if (folder / "image.json").is_file():
        image = json.loads((folder / "image.json").read_text("utf-8"))
        image["patch_size"] = image.get("patch_size") or config.input.patch_size
    labels = json.loads((folder / "labels.json").read_text("utf-8")) if (folder / "labels.json").is_file() else []
    has_text = (folder / TOKENIZER).is_file()
    return Given(model, config, Tokenizers.load(folder / TOKENIZER) if has_text else None, image, labels)
