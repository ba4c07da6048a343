"""Families of models, a module each: tables in both directions (`layouts`)."""

from regardant.interop.huggingface.families import bert, gpt2, llama, marian, roberta, t5, vit
from regardant.interop.huggingface.layouts import CheckpointLayout

LAYOUTS: tuple[CheckpointLayout, ...] = (
    *bert.LAYOUTS,
    *roberta.LAYOUTS,
    *gpt2.LAYOUTS,
    *llama.LAYOUTS,
    *marian.LAYOUTS,
    *t5.LAYOUTS,
    *vit.LAYOUTS,
)
