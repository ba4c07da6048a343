"""Export of a run's model to a folder of Hugging Face.

FOLDER/config.json, model.safetensors        the model
FOLDER/tokenizer.json, tokenizer_config.json its tokenizer
FOLDER/preprocessor_config.json              the preprocessing of its images
FOLDER/generation_config.json                the search by which transformers writes texts with it
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from regardant import config as configuration
from regardant.config.differences import differences
from regardant.data.tokenizers import Tokenizers
from regardant.data.vocabulary import EOS, MASK, PAD, SOS, UNK
from regardant.errors import RegardantError, RunError
from regardant.interop.folders import replacing, require_empty
from regardant.interop.given import Given
from regardant.interop.huggingface.families import LAYOUTS
from regardant.interop.huggingface.folder import CONFIG, GENERATION, PREPROCESSOR, WEIGHTS
from regardant.interop.huggingface.layouts import CheckpointLayout, config_of, put_at, recipe_of, value_at
from regardant.interop.huggingface.reading import BILINEAR, TEXTS, sizes_of, with_image
from regardant.interop.huggingface.tokenizer import files_of
from regardant.interop.settings import file_ids

FREE = frozenset(
    {
        "preset",
        "dropout",
        "embedding_dropout",
        "feed_forward_dropout",
        "attention_dropout",
        "label_smoothing",
        "z_loss",
        "activation_checkpointing",
        "absent",
    }
)
"""Fields of a model and its head that no layout depends on."""


def export(given: Given, folder: Path) -> None:
    """Export a run to `folder`.

    Raises RunError if the folder is not empty, for a run with two tokenizers and a model that no layout can express.
    """
    require_empty(folder)
    if given.tokenizers is not None and given.tokenizers.source is not given.tokenizers.target:
        raise RunError("this run has a tokenizer for sources and one for targets, and tokenizer.json holds only one")
    layout, config = layout_for(given)
    tensors = write_weights(layout, given)
    files = dict(_files(layout, given, config))
    with replacing(folder) as part:
        save_file(tensors, part / WEIGHTS, metadata={"format": "pt"})
        for name, content in files.items():
            (part / name).write_text(content, encoding="utf-8")


def layout_for(given: Given) -> tuple[CheckpointLayout, dict[str, Any]]:
    """Return the layout that expresses a run, and its config.json. Raises RunError, with every reason, if none does."""
    task = given.config.task
    known = [
        one
        for one in LAYOUTS
        if one.task == task and (given.image if one.tokenizer is None else given.tokenizers) is not None
    ]
    if not known:
        tasks = ", ".join(sorted({one.task for one in LAYOUTS}))
        raise RunError(f"a run of {task} has no Hugging Face layout: export a run of {tasks} over texts or images")
    unfit: list[tuple[CheckpointLayout, list[str]]] = []
    for layout in known:
        try:
            config, reasons = _expressed(layout, given)
        except RegardantError as error:
            reasons = [str(error)]
        if not reasons:
            return layout, config
        unfit.append((layout, reasons))
    layout, reasons = min(unfit, key=lambda one: len(one[1]))
    raise RunError(f"this run is not a Hugging Face {layout.architecture}, whose settings differ: {'; '.join(reasons)}")


def write_weights(layout: CheckpointLayout, given: Given) -> dict[str, Tensor]:
    """Return the tensors of a checkpoint, by name."""
    sizes = sizes_of(given.config.model, given.tokenizers, given.image)
    document = given.config.model_dump(by_alias=True)
    tied = value_at(document, "model.tie_embeddings") not in (False, "none")
    state = given.model.state_dict()
    tensors: dict[str, Tensor] = {}
    for one in layout.entries(document, tied=tied):
        written = one.form.write([state[name].detach().float().cpu() for name in one.ours], sizes)
        tensors |= {name: tensor.clone().contiguous() for name, tensor in zip(one.theirs, written, strict=True)}
    return tensors


def _expressed(layout: CheckpointLayout, given: Given) -> tuple[dict[str, Any], list[str]]:
    """Return the config.json of a run, and the settings of the run that it cannot express. These are found by importing
    the config.json and comparing the imported run with the given one."""
    document = given.config.model_dump(by_alias=True)
    document["image"] = given.image
    config = config_of(layout, document)
    again = recipe_of(layout, config)
    if given.image is not None:
        again = with_image(again, again.pop("image"))
    _keep_equal_widths(layout, document, again)
    reasons = []
    if given.tokenizers is not None:
        ids = _ids(layout, given.tokenizers)
        other = [name for name, allowed in layout.required.items() if name in ids and ids[name] not in allowed]
        reasons += [f"{name} was {layout.required[name][0]!r}, is {ids[name]!r}" for name in other]
    for name in ("model", "head"):
        own = getattr(given.config, name, None)
        if own is None:
            continue
        imported = {"kind": own.kind, **again.get(name, {})} if hasattr(own, "kind") else again.get(name, {})
        if getattr(own, "kind", None) != imported.get("kind"):
            reasons.append(f"{name}.kind {own.kind}")
            continue
        loaded = configuration.load(type(own), imported, origin=name).model_dump(exclude=FREE)
        reasons += differences(loaded, own.model_dump(exclude=FREE), path=name)
    if given.image is not None and given.image["height"] != given.image["width"]:
        reasons.append(f"images of {given.image['height']} x {given.image['width']}, which are not square")
    return config, reasons


def _keep_equal_widths(layout: CheckpointLayout, document: Mapping[str, Any], again: dict[str, Any]) -> None:
    """Keep the run's own value of a setting where it and the imported value are written as the same number."""
    for one in layout.settings:
        for path in one.ours:
            own = value_at(document, path)
            if own is not None and one.write(own) == one.write(value_at(again, path)):
                put_at(again, path, own)


def _files(layout: CheckpointLayout, given: Given, config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if given.tokenizers is not None:
        config |= _ids(layout, given.tokenizers)
        length = given.model.max_length(given.model.inputs[0])
        writes, ends = layout.task in TEXTS, layout.task == "translation"
        yield from files_of(given.tokenizers.source, max_length=length, writes=writes, ends=ends)
    if given.labels:
        config["id2label"] = {str(number): label for number, label in enumerate(given.labels)}
        config["label2id"] = {label: number for number, label in enumerate(given.labels)}
    if given.image is not None:
        yield PREPROCESSOR, _as_json(_preprocessor(given.image))
    if layout.task in TEXTS and given.tokenizers is not None:
        yield GENERATION, _as_json(_generation(given))
    yield CONFIG, _as_json(config | {"dtype": "float32"})


def _ids(layout: CheckpointLayout, tokenizers: Tokenizers) -> dict[str, Any]:
    """Return the sizes of the vocabulary and the ids of its special tokens, by their names in config.json."""
    rows = file_ids(tokenizers.source)
    found: dict[str, Any] = {"vocab_size": sum(theirs is not None for theirs in rows)}
    named = {"pad_token_id": PAD, "bos_token_id": SOS, "eos_token_id": EOS}
    if layout.task == "translation":
        found |= {"is_encoder_decoder": True, "decoder_vocab_size": found["vocab_size"]}
        named = {"decoder_start_token_id": SOS, "eos_token_id": EOS, "pad_token_id": PAD}
    if layout.task == "language_modelling" and rows[SOS] is None:
        named["bos_token_id"] = EOS
    found |= {name: rows[ours] for name, ours in named.items() if rows[ours] is not None}
    if layout.task == "translation" and rows[PAD] is None:  # one token both pads and starts targets
        found["pad_token_id"] = rows[SOS]
    return found


def _generation(given: Given) -> dict[str, Any]:
    """Return generation_config.json with the search of the run, which never writes special tokens."""
    assert given.tokenizers is not None
    rows, config = file_ids(given.tokenizers.source), given.config.generation
    ends = getattr(config, "ends", True)
    never = [rows[ours] for ours in (PAD, SOS, UNK, MASK, *(() if ends else (EOS,))) if rows[ours] is not None]
    found = _ids_of_generation(rows)
    if hasattr(config, "beam_size"):
        found |= {"num_beams": config.beam_size, "length_penalty": config.length_penalty}
        found |= {"max_length": given.config.model.max_length}
    return found | {"suppress_tokens": never}


def _ids_of_generation(rows: Sequence[int | None]) -> dict[str, Any]:
    pad = rows[PAD] if rows[PAD] is not None else rows[SOS] if rows[SOS] is not None else rows[EOS]
    start = rows[SOS] if rows[SOS] is not None else rows[EOS]
    return {"pad_token_id": pad, "bos_token_id": start, "decoder_start_token_id": start, "eos_token_id": rows[EOS]}


def _preprocessor(image: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": image["height"], "width": image["width"]},
        "resample": BILINEAR,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(image["mean"]),
        "image_std": list(image["deviation"]),
    }


def _as_json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"
