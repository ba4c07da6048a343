"""JoeyNMT's model, loss and batch object, in the plain loop and on the batches that all share."""

from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.encoders import RecurrentEncoder
from joeynmt.model import Model, build_model
from joeynmt.vocabulary import Vocabulary
from joeynmt_model import EOS, PAD, keep_attention_weights, model_section, renumbering, special_symbols, words
from torch import Tensor
from training_loop import train


def build(shape: dict[str, Any]) -> Model:
    vocabulary = Vocabulary(words(shape["vocab_size"]), special_symbols())
    model = build_model(model_section(shape), vocabulary, vocabulary)
    model.loss_function = ("crossentropy", 0.1)
    keep_attention_weights(model)
    return model


def batch_of(source: Tensor, target: Tensor) -> Batch:
    """Return JoeyNMT's batch of our ids [B, S] and [B, T]."""
    ids = renumbering(int(max(source.max(), target.max())) + 1)
    source, target = ids[source], ids[target]
    return Batch(
        src=source,
        src_length=(source != PAD).sum(1),
        src_prompt_mask=None,
        trg=target,
        trg_prompt_mask=None,
        indices=torch.arange(len(source)),
        device=source.device,
        pad_index=PAD,
        eos_index=EOS,
    )


def loss(model: Model, source: Tensor, target: Tensor) -> Tensor:
    batch = batch_of(source, target)
    if isinstance(model.encoder, RecurrentEncoder):
        batch.sort_by_src_length()  # the recurrent encoder needs it, and JoeyNMT's trainer does it
    total, *_ = model(return_type="loss", **vars(batch))
    return batch.normalize(total, "tokens")


if __name__ == "__main__":
    train("joeynmt", build, loss)
