"""Vectors to answers: one head, one file. A head is known by being imported."""

from regardant.models.heads.base import IGNORED, Head, HeadBuilder, HeadConfig, Loss
from regardant.models.heads.element_class import ElementClass, ElementClassConfig
from regardant.models.heads.forecast import Forecast, ForecastConfig
from regardant.models.heads.match import Match, MatchConfig
from regardant.models.heads.next_token import NextToken, NextTokenConfig, next_token
from regardant.models.heads.pooling import Pooling, pool
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
    "SequenceClass",
    "SequenceClassConfig",
    "Span",
    "SpanConfig",
    "next_token",
    "pool",
]
