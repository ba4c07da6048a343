"""The class every configuration derives from."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """Base of every configuration: frozen, unknown keys and numbers that are not finite refused.

    The docstring under a field is its help.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
