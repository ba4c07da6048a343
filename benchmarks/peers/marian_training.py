"""Marian's model of transformers, trained."""

from marian import PAD, build
from torch import Tensor, nn
from training_loop import smoothed, train
from transformers_attention import attend


def loss(model: nn.Module, source: Tensor, target: Tensor) -> Tensor:
    written = model(
        input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target[:, :-1], use_cache=False
    )
    return smoothed(written.logits, target)


if __name__ == "__main__":
    train("transformers", build, loss, attend)
