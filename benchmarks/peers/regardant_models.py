"""Regardant's trainer on single-stack models: a language model, a masked language model, and an image classifier."""

import json
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from passes import Passes
from random_batches import CHANNELS, CLASSES, batches
from regardant_training import answer_and_train, trainer_for
from serve import Driver

from regardant.models import Model, next_token, tokens
from regardant.models.decoder_only import DecoderOnlyConfig
from regardant.models.encoder_only import EncoderOnlyConfig
from regardant.models.heads.next_token import TransformConfig, WordScoresConfig
from regardant.models.heads.sequence_class import SequenceClassConfig
from regardant.models.representations.patches import patches
from regardant.tasks.items.data import ItemBatch


def build(shape: dict[str, Any]) -> Model:
    """Return the model of a shape, with the layers of published models of its kind."""
    settings: dict[str, Any] = {name: shape[name] for name in ("d_model", "num_heads", "d_ff", "num_layers", "dropout")}
    settings |= {"positions": {"kind": "learned"}, "scale_embeddings": False, "max_length": shape["length"]}
    settings |= {"feed_forward": {"kind": "linear", "activation": "gelu"}}
    if shape["kind"] == "language model":
        writer = DecoderOnlyConfig.model_validate({**settings, "preset": None, "tie_embeddings": "all"})
        return writer.build(tokens(shape["vocab_size"]), next_token(shape["vocab_size"]))
    if shape["kind"] == "masked":
        own = {"norm": "post", "embedding_norm": True, "tie_embeddings": True}
        words = WordScoresConfig(bias=True, transform=TransformConfig())
        config = EncoderOnlyConfig.model_validate({**settings, **own})
        return config.build(tokens(shape["vocab_size"]), next_token(shape["vocab_size"], words=words))
    side = round(shape["length"] ** 0.5)
    head = SequenceClassConfig(pooling="class_token", dropout=0.0)
    own = EncoderOnlyConfig.model_validate({**settings, "max_length": shape["length"] + 1})
    return own.build(patches(shape["patch_size"], CHANNELS, (side, side)), partial(head.build, num_outputs=CLASSES))


def main() -> None:
    driver, shape = Driver(), json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    passes = Passes(driver)
    torch.manual_seed(1)
    model = build(shape)
    (name,) = model.inputs
    items = [ItemBatch({name: block}, targets, count) for block, targets, count in batches(shape)]
    with TemporaryDirectory(prefix="regardant-") as run:
        answer_and_train(driver, passes, *trainer_for(model, items, sys.argv[2], Path(run), passes))


if __name__ == "__main__":
    main()
