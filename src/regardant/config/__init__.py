"""YAML to checked frozen objects, with dotted overrides and all problems in one report. Knows no component.

A node that names its variant does so by the key `kind`.
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
