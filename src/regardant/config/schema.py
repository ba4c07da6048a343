"""The keys, types and variants that a schema allows. The reference of recipes is made from them."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from regardant.config.base import KIND, Config, Variants


@dataclass(frozen=True)
class FieldHelp:
    """One row of the reference of recipes."""

    path: str
    """Dotted path, with [] after a list and the kind in brackets after a union: `layers[].mixer[lstm].size`."""
    type: str
    """Name of the type: a variant's kind, `section` for other configurations."""
    default: str
    """Default as JSON; `required` if there is none."""
    help: str


def describe(schema: type[Config]) -> list[FieldHelp]:
    """Return the fields of a schema, of its sections and of their variants, in order of declaration."""
    return list(_rows(schema, "", None))


def alternatives(annotation: Any) -> list[Any]:
    """Return the types that a value may have, without None: several for a union only."""
    if get_origin(annotation) is Annotated:
        return alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [choice for part in get_args(annotation) for choice in alternatives(part)]
    if isinstance(annotation, type) and issubclass(annotation, Variants):
        return list(annotation.kinds().values())
    return [] if annotation is NoneType else [annotation]


def inside(holder: Any, key: Any) -> list[Any]:
    """Return the types that the value under `key` of a `holder` may have; none for an unknown key."""
    if is_config(holder):
        return alternatives(holder.model_fields[key].annotation) if key in holder.model_fields else []
    items = {list: 0, tuple: 0, dict: 1, Mapping: 1}.get(get_origin(holder))
    return [] if items is None else alternatives(get_args(holder)[items])


def variants(choices: list[Any]) -> dict[str, type[Config]]:
    """Return the configurations of a union by the kind that selects them."""
    return {
        kind: choice
        for choice in choices
        if is_config(choice) and KIND in choice.model_fields
        for kind in get_args(choice.model_fields[KIND].annotation)
    }


def default_of(holder: Any, key: str) -> Any:
    """Return the default of a key as a document would give it; an empty mapping if it has none.

    A default section has its kind and the fields that are set explicitly; the others stay unset.
    """
    known = is_config(holder) and key in holder.model_fields
    default = _default(holder.model_fields[key]) if known else None
    return {} if default in (None, PydanticUndefined) else _as_set(default)


def _as_set(value: Any) -> Any:
    if not isinstance(value, Config):
        return to_jsonable_python(value)
    fields = type(value).model_fields
    names = (name for name in fields if name in value.model_fields_set or name == KIND)
    return {fields[name].alias or name: _as_set(getattr(value, name)) for name in names}


def default_kind(holder: Any, key: Any) -> str | None:
    """Return the default kind of the section under a key. None: the section must name its kind."""
    known = is_config(holder) and key in holder.model_fields
    annotation = holder.model_fields[key].annotation if known else None
    return annotation.default_kind if isinstance(annotation, type) and issubclass(annotation, Variants) else None


def may_be_kind_alone(holder: Any, key: Any) -> bool:
    """Return whether the section under a key may be given as its kind alone."""
    known = is_config(holder) and key in holder.model_fields
    annotation = holder.model_fields[key].annotation if known else None
    return isinstance(annotation, type) and issubclass(annotation, Variants) and annotation.kind_alone


def is_config(annotation: Any) -> TypeGuard[type[Config]]:
    return isinstance(annotation, type) and issubclass(annotation, Config)


def _rows(schema: type[Config], prefix: str, section: Any) -> Iterator[FieldHelp]:
    # The default section at the prefix may have other values than the defaults of its class.
    for name, field in schema.model_fields.items():
        if name == KIND:
            continue  # part of the type of the union
        default = getattr(section, name) if isinstance(section, schema) else _default(field)
        yield FieldHelp(prefix + name, _type_name(field.annotation), _shown(default), field.description or "")
        path, choices = prefix + name, alternatives(field.annotation)
        if len(choices) == 1 and get_origin(choices[0]) in (list, tuple):
            path, choices = f"{path}[]", inside(choices[0], 0)
        sections = [choice for choice in choices if is_config(choice)]
        for choice in sections:
            variant = f"[{_type_name(choice)}]" if len(sections) > 1 else ""
            yield from _rows(choice, f"{path}{variant}.", default)


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True)


def _shown(default: Any) -> str:
    if default is PydanticUndefined:
        return "required"
    if isinstance(default, Config):
        return _type_name(type(default))
    return json.dumps(to_jsonable_python(default), ensure_ascii=False)


def _type_name(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(arguments[0])
    if origin is Literal:
        return " | ".join(map(str, arguments))
    if origin in (Union, UnionType):
        return " | ".join(map(_type_name, arguments))
    if origin in (list, tuple):
        return f"list of {_type_name(arguments[0])}"
    if origin is dict:
        return f"mapping to {_type_name(arguments[1])}"
    if is_config(annotation):
        return " | ".join(variants(alternatives(annotation))) or "section"
    return "null" if annotation is NoneType else annotation.__name__
