from typing import Annotated, Literal

from pydantic import Field

from regardant.config import Config, FieldHelp, describe


class Linear(Config):
    kind: Literal["linear"] = "linear"
    floor: float = 1e-6
    """Smallest normaliser."""


class Window(Config):
    kind: Literal["window"] = "window"
    size: int
    """Keys on each side."""


class Layer(Config):
    attention: Annotated[Linear | Window, Field(discriminator="kind")] = Linear(floor=0.5)
    """How a query weighs keys."""
    norm: Literal["pre", "post"] = "pre"


class Model(Config):
    first: Layer = Layer(norm="post")
    """Where it begins."""
    more: tuple[Layer, ...] = ()
    name: str | None = None
    sizes: dict[str, int] = Field({})


def test_the_reference_goes_down_into_sections_lists_and_variants():
    assert describe(Model) == [
        FieldHelp("first", "section", "section", "Where it begins."),
        FieldHelp("first.attention", "linear | window", "linear", "How a query weighs keys."),
        FieldHelp("first.attention[linear].floor", "float", "0.5", "Smallest normaliser."),
        FieldHelp("first.attention[window].size", "int", "required", "Keys on each side."),
        FieldHelp("first.norm", "pre | post", '"post"', ""),
        FieldHelp("more", "list of section", "[]", ""),
        FieldHelp("more[].attention", "linear | window", "linear", "How a query weighs keys."),
        FieldHelp("more[].attention[linear].floor", "float", "0.5", "Smallest normaliser."),
        FieldHelp("more[].attention[window].size", "int", "required", "Keys on each side."),
        FieldHelp("more[].norm", "pre | post", '"pre"', ""),
        FieldHelp("name", "str | null", "null", ""),
        FieldHelp("sizes", "mapping to int", "{}", ""),
    ]
