"""Loading of a document and its overrides: a validated configuration, or one report of all problems."""

import copy
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from yaml import YAMLError

from regardant.config.base import KIND, PRESET, Config
from regardant.config.documents import parse
from regardant.config.problems import ConfigProblem, explain, report
from regardant.config.schema import default_kind, default_of, inside, is_config, may_be_kind_alone, variants
from regardant.errors import ConfigError

T = TypeVar("T", bound=Config)


def load(
    schema: type[T],
    document: Mapping[str, Any],
    overrides: Sequence[str] = (),
    origin: str = "configuration",
) -> T:
    """Return the configuration of a document, changed by overrides such as `model.d_model=256`.

    Values of overrides are YAML. The more specific override wins, then the later one. Items of a list are given by
    number: `layers.0.size=3`. An override that changes a section's `kind` removes the section's other keys, which
    belong to the old kind; an override of a section's `preset` removes the document's values of the keys that presets
    define.

    Raises one ConfigError, which begins with `origin`, with every problem of the document and the overrides.
    """
    changed = copy.deepcopy(dict(document))
    problems = _override(changed, schema, overrides)
    try:
        config = schema.model_validate(changed)
    except ValidationError as error:
        raise ConfigError(report(origin, problems + explain(error, schema))) from error
    if problems:
        raise ConfigError(report(origin, problems))
    return config


def _override(document: dict[str, Any], schema: type[Config], overrides: Sequence[str]) -> list[ConfigProblem]:
    """Apply the overrides to the document in place, and return the problems of those that cannot be applied."""
    problems = []
    assignments = []
    for override in overrides:
        path, equals, text = override.partition("=")
        keys = path.split(".")
        if not (equals and all(keys)):
            problems.append(ConfigProblem(override, "malformed override; write key=value, as in model.d_model=256"))
            continue
        try:
            assignments.append((keys, parse(text)))
        except YAMLError:
            problems.append(ConfigProblem(path, f"given {text!r}; must be a YAML value"))
    # A section comes before its keys; its kind and preset, which remove keys, before its other keys.
    assignments.sort(key=lambda one: (len(one[0]), one[0][-1] != KIND, one[0][-1] != PRESET))
    for keys, value in assignments:
        try:
            _assign(document, schema, keys, value)
        except LookupError as error:
            problems.append(ConfigProblem(".".join(keys), f"cannot be set; {error.args[0]}"))
    return problems


def _assign(node: Any, holder: Any, keys: Sequence[str], value: Any) -> None:
    """Set a key below a node of the document. `holder` is the type of the schema that describes the node."""
    slot, rest = _slot(node, keys[0]), keys[1:]
    if rest:
        if isinstance(node, dict) and node.get(slot) is None:
            node[slot] = default_of(holder, keys[0])
        if may_be_kind_alone(holder, slot) and isinstance(node[slot], str):
            node[slot] = {KIND: node[slot]}
        child = node[slot]
        choices = inside(holder, slot)
        if len(choices) > 1:
            choices = [_variant(child, choices, default_kind(holder, slot))]
        _assign(child, choices[0] if choices else None, rest, value)
        return
    if slot == KIND and node.get(KIND, value) != value:
        node.clear()
    if slot == PRESET and value is not None and is_config(holder):
        for preset in holder.presets.values():
            _drop(node, preset)
    node[slot] = value


def _drop(node: dict[str, Any], keys: Mapping[str, Any]) -> None:
    """Remove the keys of a nested mapping from a document."""
    for key, below in keys.items():
        if isinstance(below, Mapping) and isinstance(node.get(key), dict):
            _drop(node[key], below)
        else:
            node.pop(key, None)


def _variant(section: Any, choices: list[Any], default: str | None) -> Any:
    """Return the type of a section that may be of several kinds. Writes the default kind into a section that names
    none."""
    if not isinstance(section, dict):
        return None
    if default is not None:
        section.setdefault(KIND, default)
    return variants(choices).get(str(section.get(KIND)))


def _slot(node: Any, key: str) -> str | int:
    if isinstance(node, dict):
        return key
    if not isinstance(node, list):
        raise LookupError(f"{reprlib.repr(node)} has no keys")
    if not key.isdecimal() or int(key) >= len(node):
        raise LookupError(f"{key} is not an index of this list of {len(node)} (indices start at 0)")
    return int(key)
