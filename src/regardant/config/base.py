"""Base classes of all configurations."""

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

KIND = "kind"
"""The key by which a section names its variant."""

PRESET = "preset"
"""The key by which a section names values to start from."""


class Config(BaseModel):
    """Base of all configurations: frozen, unknown keys refused, with the docstring under a field as its help."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, defer_build=True)

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Values of a section by the name of a preset, nested as in a document. An override of `preset` removes the
    document's values of the same keys."""

    made: ClassVar[list[type["Config"]]] = []
    """Configuration classes, the parts of a section before the section."""

    named_by: ClassVar[str] = KIND
    """The key by which a document names the class of this configuration, if the class has such a field."""

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        Config.made.append(cls)

    def model_post_init(self, context: Any) -> None:
        """Count the name of the class as given unless it is the default, so that a dump of the given fields can be read
        back."""
        default = getattr(type(self), "default_kind", None)
        if self.named_by in type(self).model_fields and getattr(self, self.named_by) != default:
            self.model_fields_set.add(self.named_by)


def _literals(cls: type[Config]) -> tuple[str, ...]:
    """Return the kinds that a class itself declares."""
    if KIND not in inspect.get_annotations(cls):
        return ()
    annotation = cls.model_fields[KIND].annotation
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _section(given: Any) -> Any:
    """Return a section for a kind that is given as a plain string; any other value unchanged."""
    return {KIND: given} if isinstance(given, str) else given


class Variants(Config):
    """Base of a section that is one of several kinds.

    A subclass whose `kind` has one literal value adds a kind to every field of the base's type, whether it is in the
    package or in a user's module.
    """

    kind: str

    default_kind: ClassVar[str | None] = None
    """Kind of a section that names none. None: a section must name its kind."""

    kind_alone: ClassVar[bool] = False
    """True if a section may be given as a plain string, its kind."""

    @classmethod
    def kinds(cls) -> dict[str, type[Self]]:
        """Return all kinds by name."""
        return {name: made for made in Config.made if issubclass(made, cls) for name in _literals(made)}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if _literals(cls) or not cls.kinds():
            return handler(source)
        members = {kind: handler.generate_schema(member) for kind, member in cls.kinds().items()}

        def kind_of(given: Any) -> str | None:
            kind: str | None = given.get(KIND) if isinstance(given, dict) else getattr(given, KIND, None)
            return kind or cls.default_kind

        union = core_schema.tagged_union_schema(members, discriminator=kind_of if cls.default_kind else KIND)
        return core_schema.no_info_before_validator_function(_section, union) if cls.kind_alone else union

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        bases = [base for base in cls.__mro__[1:] if issubclass(base, Variants) and base is not Variants]
        taken = {name: other for base in bases for name, other in base.kinds().items()}
        if again := sorted(set(_literals(cls)) & set(taken)):
            raise TypeError(f"kind {again[0]!r} is taken by {taken[again[0]].__qualname__}: give it another name")
        super().__pydantic_init_subclass__(**options)
        used = {field.annotation for made in Config.made for field in made.model_fields.values()}
        if _literals(cls) and not used.isdisjoint(bases):  # fields of the base lack this kind so far
            for made in Config.made:
                if made.__pydantic_complete__:  # the others are built when they are used first
                    made.model_rebuild(force=True)
