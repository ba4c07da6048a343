"""Loading of YAML into validated, frozen objects, with dotted overrides and one report of all problems.

This room knows no component of a model. A section selects its variant by the key `kind`.
"""

from regardant.config.base import Config, Variants
from regardant.config.documents import dump, read_yaml
from regardant.config.library import groups, header, purpose, recipe, recipes
from regardant.config.loading import load
from regardant.config.schema import FieldHelp, describe

__all__ = [
    "Config",
    "FieldHelp",
    "Variants",
    "describe",
    "dump",
    "groups",
    "header",
    "load",
    "purpose",
    "read_yaml",
    "recipe",
    "recipes",
]
