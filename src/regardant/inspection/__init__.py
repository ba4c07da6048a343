"""Capture and change tensors at named places of a model, and measure its attention heads. Draws no pictures.

with capture(model, "*.weights") as records:
    model.scores(source, target)
records["decoder.layers.0.cross_attention.weights"][0]    # [B, H, T, S]
"""

from regardant.inspection.capture import Records, capture, real_elements
from regardant.inspection.dependencies import RelationScore, relation_scores
from regardant.inspection.explanations import Explanation, agreement, explain
from regardant.inspection.gradients import GradientNorms, gradient_norms
from regardant.inspection.heads import Attended, HeadMeasures, jensen_shannon, measure_heads
from regardant.inspection.importance import HeadImportance, head_importance
from regardant.inspection.interventions import EditRow, MaskKey, Patch, ScaleHead, intervene
from regardant.inspection.lens import LensReading, logit_lens
from regardant.inspection.patching import Patching, patch_positions
from regardant.inspection.places import attention_places, mixer_places, place_names
from regardant.inspection.rollout import flow, rollout

__all__ = [
    "Attended",
    "EditRow",
    "Explanation",
    "GradientNorms",
    "HeadImportance",
    "HeadMeasures",
    "LensReading",
    "MaskKey",
    "Patch",
    "Patching",
    "Records",
    "RelationScore",
    "ScaleHead",
    "agreement",
    "attention_places",
    "capture",
    "explain",
    "flow",
    "gradient_norms",
    "head_importance",
    "intervene",
    "jensen_shannon",
    "logit_lens",
    "measure_heads",
    "mixer_places",
    "patch_positions",
    "place_names",
    "real_elements",
    "relation_scores",
    "rollout",
]
