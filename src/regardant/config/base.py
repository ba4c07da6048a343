"""The class every configuration derives from."""

from pydantic import BaseModel, ConfigDict


class Config(BaseModel):
    """Base of every configuration: frozen, unknown keys refused, the docstring under a field is its help."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
