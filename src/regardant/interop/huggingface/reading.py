"""Import of a folder of Hugging Face: recipe, weights and files of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from math import isclose
from pathlib import Path
from typing import Any

from torch import Tensor

from regardant import config as configuration
from regardant.config.did_you_mean import did_you_mean
from regardant.data.pretrained_tokenizers import absent_of
from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import EOS, MASK
from regardant.errors import DataError
from regardant.interop.huggingface.families import LAYOUTS
from regardant.interop.huggingface.folder import GENERATION, PREPROCESSOR, read_config, read_json, read_tensors
from regardant.interop.huggingface.forms import Sizes
from regardant.interop.huggingface.layouts import CheckpointLayout, put_at, recipe_of, value_at
from regardant.interop.huggingface.sentence_encoders import max_length, put_lower_case, require_mean_pooling
from regardant.interop.huggingface.sentencepiece import has_sentence_pieces, read_backends
from regardant.interop.huggingface.tokenizer import read_backend, tokenizer_of
from regardant.interop.settings import file_ids

LEGACY = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
"""Suffixes of tensor names, with those that early checkpoints have in their place."""

BILINEAR = 2
"""Pillow's number of the filter with which runs resize images: bilinear, antialiased."""

PIXELS: Mapping[str, Any] = {
    "resample": BILINEAR,
    "do_center_crop": False,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
}
"""Fields of preprocessor_config.json, with the only values that can be imported: those of a run's preprocessing."""

ROUNDING = 1e-6
"""Relative tolerance for a factor that was written in lower precision."""

SEARCH = {"num_beams": "generation.beam_size", "length_penalty": "generation.length_penalty"}
"""Fields of generation_config.json, or of config.json in earlier versions, and ours."""

TEXTS = ("language_modelling", "translation")
"""Tasks whose models write texts."""

LENGTH, POSITIONS = "model.max_length", "encoder.positions.table"
"""Our field of an encoder's maximum length, and our name of its positions, of which there are as many."""


@dataclass(frozen=True)
class Imported:
    """Parts of an imported run."""

    recipe: dict[str, Any]
    weights: dict[str, Tensor]
    tokenizers: Tokenizers | None = None
    """None: items are no texts."""
    files: Mapping[str, Any] = field(default_factory=dict)
    """Content of JSON files, by name."""


def read(folder: Path) -> Imported:
    """Return the run that a folder becomes. Raises DataError that names what cannot be imported, and its value."""
    config = read_config(folder)
    layout = layout_of(config)
    recipe = recipe_of(layout, config)
    if layout.task == "sentence_embedding":
        require_mean_pooling(folder)
        put_at(recipe, LENGTH, max_length(folder, value_at(recipe, LENGTH)))
    files: dict[str, Any] = {}
    tokenizers = None
    if layout.tokenizer is not None:
        tokenizers = _tokenizers(folder, config, layout.task)
        _put_vocabulary(layout, recipe, tokenizers)
    if layout.task == "translation":
        given = {**config, **read_json(folder / GENERATION)}
        for theirs, ours in SEARCH.items():
            if given.get(theirs) is not None:
                put_at(recipe, ours, given[theirs])
    image = recipe.pop("image", None)
    if image is not None:
        files["image.json"] = _statistics(folder, image)
        recipe = with_image(recipe, image)
    if layout.task == "classification":
        files["labels.json"] = _labels(config)
    model: Any = configuration.load(layout.model, recipe["model"], origin=f"{folder}")
    sizes = sizes_of(model, tokenizers, image)
    weights = read_weights(layout, recipe, read_tensors(folder), sizes)
    if layout.task == "sentence_embedding":
        weights[POSITIONS] = weights[POSITIONS][: value_at(recipe, LENGTH)].clone()
    return Imported(recipe, weights, tokenizers, files)


def layout_of(config: Mapping[str, Any]) -> CheckpointLayout:
    """Return the layout that a config.json names. Raises DataError if there is none."""
    family = [one for one in LAYOUTS if one.model_type == config.get("model_type")]
    if not family:
        known = sorted({one.model_type for one in LAYOUTS})
        near = did_you_mean(str(config.get("model_type")), known)
        raise DataError(
            f"config.json: model_type is {config.get('model_type')!r}, and {', '.join(known)} can be imported{near}"
        )
    named = config.get("architectures") or [family[0].architecture]
    for one in family:
        if one.architecture == named[0]:
            return one
    known = [one.architecture for one in family]
    raise DataError(f"config.json: architectures is {named[0]!r}, and {', '.join(known)} can be imported")


def read_weights(
    layout: CheckpointLayout, recipe: Mapping[str, Any], tensors: Mapping[str, Tensor], sizes: Sizes
) -> dict[str, Tensor]:
    """Return our weights by name, converted from a checkpoint's tensors.

    Raises:
        DataError: a tensor is missing, has the wrong shape or is unknown to the layout.
    """
    tied = value_at(recipe, "model.tie_embeddings") not in (False, "none")
    weights: dict[str, Tensor] = {}
    used: set[str] = set()
    for one in layout.entries(recipe, tied=tied):
        names = [_name_in(tensors, name, layout.prefix) for name in one.theirs]
        used.update(names)
        try:
            read = one.form.read([tensors[name] for name in names], sizes)
        except (RuntimeError, IndexError) as error:
            shape = " x ".join(map(str, tensors[names[0]].shape))
            raise DataError(
                f"the weights hold {names[0]} of the shape {shape}, which does not match config.json"
            ) from error
        weights |= dict(zip(one.ours, (tensor.contiguous() for tensor in read), strict=True))
    ignored = [pattern.removeprefix(start) for pattern in layout.ignored for start in ("", layout.prefix)]
    left = [name for name in tensors if name not in used and not any(fnmatchcase(name, one) for one in ignored)]
    if left:
        raise DataError(f"the weights hold {left[0]}, which a {layout.architecture} of these settings does not have")
    return weights


def _name_in(tensors: Mapping[str, Tensor], name: str, prefix: str) -> str:
    """Return the name that a tensor has in a checkpoint: with the prefix or without, now or in early versions."""
    names = [name, name.removeprefix(prefix)]
    names += [one.replace(now, then) for one in names for now, then in LEGACY.items() if one.endswith(now)]
    for one in names:
        if one in tensors:
            return one
    raise DataError(f"the weights hold no {name}: give the whole model")


def _tokenizers(folder: Path, config: Mapping[str, Any], task: str) -> Tokenizers:
    size = _vocab_size(config)
    if config.get("is_encoder_decoder") and has_sentence_pieces(folder):
        source, target = (
            tokenizer_of(folder, config, backend, vocab_size=size, joint=False) for backend in read_backends(folder)
        )
        return Tokenizers(source, target)
    backend = read_backend(folder)
    if task == "sentence_embedding":
        put_lower_case(folder, backend)
    tokenizer = tokenizer_of(folder, config, backend, vocab_size=size)
    return Tokenizers(tokenizer, tokenizer)


def _vocab_size(config: Mapping[str, Any]) -> int:
    size = config.get("vocab_size")
    if not isinstance(size, int):
        raise DataError(f"config.json: vocab_size is {size!r}: give the number of words")
    if config.get("decoder_vocab_size") not in (None, size):
        raise DataError(
            f"config.json: decoder_vocab_size is {config['decoder_vocab_size']}, and only vocabularies of one size can "
            f"be imported (vocab_size is {size})"
        )
    return size


def _put_vocabulary(layout: CheckpointLayout, recipe: dict[str, Any], tokenizers: Tokenizers) -> None:
    """Set the fields of a recipe that depend on the vocabulary."""
    assert layout.tokenizer is not None
    config = tokenizers.source.config
    put_at(recipe, layout.tokenizer, config.model_dump(exclude_unset=True))
    lacks_mask = config.special[MASK] is None
    if layout.task == "masked_language_modelling" and lacks_mask:
        raise DataError("tokenizer.json has no mask token, which fills in blanks: name it in tokenizer_config.json")
    if layout.task in TEXTS:
        put_at(recipe, "head.absent", absent_of(config.special))
    if layout.task == "language_modelling":
        put_at(recipe, "generation.ends", config.special[EOS] is not None)


def with_image(recipe: dict[str, Any], image: Mapping[str, Any]) -> dict[str, Any]:
    """Set the fields of a recipe that follow from the size of images and patches, and return it.

    Raises DataError if patches do not fill an image.
    """
    height, side = image["height"], image["patch_size"]
    if height % side:
        raise DataError(f"config.json: image_size is {height}, which is not a multiple of patch_size {side}")
    put_at(recipe, "input.resize", [height, height])
    put_at(recipe, "model.max_length", (height // side) ** 2)
    return recipe


def sizes_of(model: Any, tokenizers: Tokenizers | None, image: Mapping[str, Any] | None) -> Sizes:
    """Return the sizes that forms depend on, given a model's configuration, tokenizers and image settings."""
    rows: Sequence[int | None] = () if tokenizers is None else file_ids(tokenizers.source)
    return (
        Sizes(model.heads, rows) if image is None else Sizes(model.heads, rows, image["channels"], image["patch_size"])
    )


def _statistics(folder: Path, image: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of image.json. Raises DataError for preprocessing that a run does not do."""
    given = read_json(folder / PREPROCESSOR)
    for name, allowed in PIXELS.items():
        value = given.get(name)
        if value is not None and not isclose(value, allowed, rel_tol=ROUNDING):
            raise DataError(
                f"{PREPROCESSOR}: {name} is {value!r}, and only images with {name} {allowed!r} can be imported"
            )
    standard = [0.5] * image["channels"]
    moments = {"mean": given.get("image_mean") or standard, "deviation": given.get("image_std") or standard}
    if given.get("do_normalize") is False:
        moments = {"mean": [0.0] * image["channels"], "deviation": [1.0] * image["channels"]}
    if any(len(numbers) != image["channels"] for numbers in moments.values()):
        raise DataError(f"{PREPROCESSOR}: image_mean and image_std need {image['channels']} numbers: restore them")
    return {"height": image["height"], "width": image["width"], "channels": image["channels"], **moments}


def _labels(config: Mapping[str, Any]) -> list[str]:
    """Return the labels in their order. Raises DataError for a single label: its model predicts a number."""
    named = config.get("id2label") or {str(number): f"LABEL_{number}" for number in range(config.get("num_labels", 2))}
    labels = [str(named[number]) for number in sorted(named, key=int)]
    if len(labels) == 1:
        raise DataError(
            f"config.json: id2label is {named!r}, of a model that writes one number (a regression or a cross-encoder), "
            "and only classifiers of two labels or more can be imported"
        )
    return labels
