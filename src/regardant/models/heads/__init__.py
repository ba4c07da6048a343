"""Vectors to answers: one head, one file. A head is known by being imported."""

from regardant.models.heads.base import Head, HeadBuilder, HeadConfig, Loss
from regardant.models.heads.next_token import NextToken, NextTokenConfig, next_token
from regardant.models.heads.sequence_class import SequenceClass, SequenceClassConfig

__all__ = [
    "Head",
    "HeadBuilder",
    "HeadConfig",
    "Loss",
    "NextToken",
    "NextTokenConfig",
    "SequenceClass",
    "SequenceClassConfig",
    "next_token",
]
