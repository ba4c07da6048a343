"""A translator around torch.nn.Transformer, as its documentation suggests."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD = 0


class Translator(nn.Module):
    """Pre-norm model with sinusoidal positions and one matrix for source, target and output."""

    positions: Tensor

    def __init__(self, shape: dict[str, Any]) -> None:
        super().__init__()
        d_model = shape["d_model"]
        self.embedding = nn.Embedding(shape["vocab_size"], d_model)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
        self.register_buffer("positions", waves(shape["max_length"], d_model))
        self.dropout = nn.Dropout(shape["dropout"])
        self.transformer = nn.Transformer(
            d_model,
            shape["num_heads"],
            shape["num_layers"],
            shape["num_layers"],
            shape["d_ff"],
            shape["dropout"],
            batch_first=True,
            norm_first=True,
        )

    def forward(self, source: Tensor, read: Tensor) -> Tensor:
        """Return the logits [B, T, V] of the tokens after each of `read` [B, T], given source [B, S]."""
        padding = source == PAD
        return self.decode(self.encode(source, padding), padding, read)

    def encode(self, source: Tensor, padding: Tensor) -> Tensor:
        """Return the encoder's vectors [B, S, M] of source [B, S], whose padding is True in `padding` [B, S]."""
        memory: Tensor = self.transformer.encoder(self.embed(source), src_key_padding_mask=padding)
        return memory

    def decode(self, memory: Tensor, padding: Tensor, read: Tensor) -> Tensor:
        """Return the logits of `forward`, given what `encode` returned."""
        vectors = self.transformer.decoder(
            self.embed(read),
            memory,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(read.shape[1]),
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return F.linear(vectors, self.embedding.weight)

    def embed(self, tokens: Tensor) -> Tensor:
        scaled = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(scaled + self.positions[: tokens.shape[1]])


def waves(length: int, d_model: int) -> Tensor:
    frequencies = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    angles = torch.arange(length)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
