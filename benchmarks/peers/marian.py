"""MarianMTModel of transformers in the shape that all share."""

from typing import Any

from transformers import MarianConfig, MarianMTModel

PAD, SOS, EOS = 0, 1, 2


def build(shape: dict[str, Any]) -> MarianMTModel:
    """Return a post-norm model with ReLU and tied embeddings; dropout as in the paper, and in feed-forward networks."""
    layers, heads, d_ff = shape["num_layers"], shape["num_heads"], shape["d_ff"]
    return MarianMTModel(
        MarianConfig(
            vocab_size=shape["vocab_size"],
            d_model=shape["d_model"],
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_ffn_dim=d_ff,
            decoder_ffn_dim=d_ff,
            activation_function="relu",
            dropout=shape["dropout"],
            activation_dropout=shape["dropout"],
            attention_dropout=0.0,
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            max_position_embeddings=shape["max_length"],
            pad_token_id=PAD,
            bos_token_id=SOS,
            eos_token_id=EOS,
            decoder_start_token_id=SOS,
            forced_eos_token_id=None,
        )
    )
