"""Heads, which turn vectors into scores: one file each. Importing a head registers it."""

from regardant.models.heads.base import IGNORED, Head, HeadBuilder, HeadConfig, Loss
from regardant.models.heads.element_class import ElementClass, ElementClassConfig
from regardant.models.heads.forecast import Forecast, ForecastConfig
from regardant.models.heads.match import Match, MatchConfig
from regardant.models.heads.next_token import NextToken, NextTokenConfig, WordScoresConfig, next_token
from regardant.models.heads.pooling import Pooling, pool
from regardant.models.heads.sentence_vector import SentenceVector, SentenceVectorConfig
from regardant.models.heads.sequence_class import SequenceClass, SequenceClassConfig
from regardant.models.heads.span import Span, SpanConfig

__all__ = [
    "IGNORED",
    "ElementClass",
    "ElementClassConfig",
    "Forecast",
    "ForecastConfig",
    "Head",
    "HeadBuilder",
    "HeadConfig",
    "Loss",
    "Match",
    "MatchConfig",
    "NextToken",
    "NextTokenConfig",
    "Pooling",
    "SentenceVector",
    "SentenceVectorConfig",
    "SequenceClass",
    "SequenceClassConfig",
    "Span",
    "SpanConfig",
    "WordScoresConfig",
    "next_token",
    "pool",
]
