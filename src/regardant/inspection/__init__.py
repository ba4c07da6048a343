"""Look into a model, and intervene in it, at named places. Gives data, knows no picture.

with capture(model, "*.weights") as records:
    model.scores(source, target)
records["decoder.layers.0.cross_attention.weights"][0]    # [B, H, T, S]
"""

from regardant.inspection.capture import capture
from regardant.inspection.interventions import EditRow, MaskKey, Patch, ScaleHead, intervene
from regardant.inspection.places import place_names
from regardant.inspection.records import Records

__all__ = ["EditRow", "MaskKey", "Patch", "Records", "ScaleHead", "capture", "intervene", "place_names"]
