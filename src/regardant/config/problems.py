"""Problems of a configuration: one line for each dotted path, with the values allowed there."""

import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from regardant.config.base import KIND, Config
from regardant.config.did_you_mean import did_you_mean
from regardant.config.schema import inside, is_config, variants


@dataclass(frozen=True)
class ConfigProblem:
    """One problem of a configuration."""

    path: str
    """Dotted path; empty for the whole configuration."""
    text: str


def report(origin: str, problems: Sequence[ConfigProblem]) -> str:
    """Return one line for one problem; for several, their count and a line for each."""
    if len(problems) == 1:
        return ": ".join(filter(None, [origin, problems[0].path, problems[0].text]))
    width = max(len(problem.path) for problem in problems)
    lines = [f"  {problem.path:{width}}  {problem.text}" for problem in problems]
    return "\n".join([f"{origin}: {len(problems)} problems", *lines])


def explain(error: ValidationError, schema: type[Config]) -> list[ConfigProblem]:
    """Return the problems that pydantic found, by the keys of the file."""
    rules: dict[str, list[str]] = {}  # several for a plain union, each member of which reports an error
    given: dict[str, str] = {}
    for detail in error.errors(include_url=False):
        keys, choices = _locate(schema, detail["loc"])
        if detail["type"].startswith("union_tag"):
            keys.append(KIND)
        path = ".".join(keys)
        given[path] = _given(detail)
        rules.setdefault(path, []).append(_rule(detail, choices, schema))
    return [ConfigProblem(path, given[path] + ", or ".join(rules[path])) for path in rules]


def _locate(schema: type[Config], location: tuple[int | str, ...]) -> tuple[list[str], list[Any]]:
    """Return the keys of a location and the types allowed there."""
    keys: list[str] = []
    choices: list[Any] = [schema]
    for step in location:
        if len(choices) > 1 or _is_label(choices, str(step)):
            # pydantic's label of a union's member, not a key of the file
            choices = _labelled(choices, str(step))
        else:
            keys.append(str(step))
            choices = inside(choices[0], step) if choices else []
    return keys, choices


def _is_label(choices: list[Any], step: str) -> bool:
    """Return whether a step names the one kind of a union instead of a key."""
    return step in variants(choices) and not any(step in choice.model_fields for choice in choices)


def _labelled(choices: list[Any], label: str) -> list[Any]:
    """Return the types that a label of pydantic stands for: it is a kind, or contains the names of classes."""
    if label in variants(choices):
        return [variants(choices)[label]]
    return [choice for choice in choices if is_config(choice) and re.search(rf"\b{choice.__name__}\b", label)]


def _given(detail: ErrorDetails) -> str:
    match detail["type"]:
        case "missing" | "extra_forbidden" | "union_tag_not_found" | "value_error" | "assertion_error":
            return ""
        case "union_tag_invalid":
            return f"given {detail['ctx']['tag']!r}; "
        case _:
            return f"given {reprlib.repr(detail['input'])}; "


def _rule(detail: ErrorDetails, choices: list[Any], schema: type[Config]) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            *parents, key = detail["loc"]
            _, holders = _locate(schema, tuple(parents))
            fields = [field for holder in holders for field in holder.model_fields]
            return f"unknown key{did_you_mean(key, fields)} (allowed: {', '.join(fields)})"
        case "missing":
            return "missing; it has no default"
        case "union_tag_not_found":
            return f"missing; allowed: {', '.join(variants(choices))}"
        case "union_tag_invalid":
            return f"allowed: {', '.join(variants(choices))}{did_you_mean(context['tag'], variants(choices))}"
        case "literal_error" | "enum":
            allowed = context["expected"].replace("'", "").replace(" or ", ", ")
            return f"allowed: {allowed}{did_you_mean(detail['input'], allowed.split(', '))}"
        case "value_error" | "assertion_error":
            return str(context["error"])
        case "model_type" | "model_attributes_type" | "dict_type":
            return "must be a mapping of keys to values"
        case _:
            return re.sub(r"^\w+ should ", "must ", detail["msg"])
