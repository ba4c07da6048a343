"""Layouts: tables between one architecture of Hugging Face ("theirs") and a model of ours, read in both directions.

`settings` pairs the fields of config.json with those of our configuration, `weights` the tensors. A family is a module
of `families` that holds layouts and nothing else. Our fields are named by dotted paths from the root of the recipe.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from regardant.errors import DataError, RunError
from regardant.interop.huggingface.forms import SAME, Form

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "sigmoid": "sigmoid",
}
"""Activation functions: theirs to ours. The first of several names is written."""


class Computed(NamedTuple):
    """Conversion of a number that is defined differently on the two sides."""

    read: Callable[[Any], Any]
    """Theirs to ours."""
    write: Callable[[Any], Any]
    """Ours to theirs."""


ValueMap = Mapping[Any, Any] | Computed
"""Their values to ours, where they differ."""


class Setting(NamedTuple):
    """A field of config.json, and our fields with the same value."""

    theirs: str
    ours: tuple[str, ...]
    """Paths of our fields. All of them have the value."""
    default: Any = None
    """Default of transformers if config.json leaves the field out, or a function of config.json that returns it."""
    values: ValueMap | None = None

    def read(self, config: Mapping[str, Any]) -> Any:
        """Return our value. Raises DataError for one that cannot be expressed."""
        value = config.get(self.theirs)
        if value is None:
            value = self.default(config) if callable(self.default) else self.default
        if self.values is None:
            return value
        if isinstance(self.values, Computed):
            return self.values.read(value)
        if value not in self.values:
            known = ", ".join(str(value) for value in self.values)
            raise DataError(f"config.json: {self.theirs} is {value!r}, which cannot be imported (supported: {known})")
        return self.values[value]

    def write(self, value: Any) -> Any:
        """Return their value. Raises RunError for one that cannot be expressed."""
        if self.values is None or value is None:
            return value
        if isinstance(self.values, Computed):
            return self.values.write(value)
        theirs = [other for other, ours in self.values.items() if ours == value]
        if not theirs:
            raise RunError(f"{self.ours[0]} {value}")
        return theirs[0]


def setting(theirs: str, *ours: str, default: Any = None, values: ValueMap | None = None) -> Setting:
    """Return a Setting, given our fields as positional arguments."""
    return Setting(theirs, ours, default, values)


class Entry(NamedTuple):
    """Names of our weights and of the checkpoint's tensors that hold them. `{layer}` is the number of a layer."""

    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    form: Form = SAME
    only_untied: bool = False
    """True if a model with tied embeddings leaves them out."""


def linear(ours: str, *theirs: str, form: Form = SAME, bias: Form | None = SAME) -> Iterator[Entry]:
    """Yield the entries of the weight and bias of a linear layer or a norm. bias: form of the bias; None: no bias."""
    yield Entry((f"{ours}.weight",), tuple(f"{name}.weight" for name in theirs), form)
    if bias is not None:
        yield Entry((f"{ours}.bias",), tuple(f"{name}.bias" for name in theirs), bias)


@dataclass(frozen=True)
class CheckpointLayout:
    """One architecture, such as BertForMaskedLM."""

    model_type: str
    """Name of the family in config.json."""
    architecture: str
    model: type
    """Class of our model's configuration."""
    fixed: Mapping[str, Any]
    """Fields of our recipe that every model of the layout has."""
    settings: Sequence[Setting]
    weights: Sequence[Entry]
    """Entries that a model has once."""
    layers: Mapping[str, Sequence[Entry]]
    """Entries of each layer, by the path of our field with the number of layers."""
    required: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Values of config.json that the layout can express, by field. The first is written, and assumed if left out."""
    prefix: str = ""
    """Prefix of tensor names, which checkpoints of the bare model leave out."""
    ignored: Sequence[str] = ()
    """Patterns (fnmatch) of tensors that our model does not use."""
    tokenizer: str | None = None
    """Path of our tokenizer's configuration. None: items are no texts."""

    @property
    def task(self) -> str:
        """The task of a run of this layout."""
        task: str = self.fixed["task"]
        return task

    def entries(self, document: Mapping[str, Any], *, tied: bool) -> Iterator[Entry]:
        """Yield the entries of all weights of a model, given its recipe. tied: input and output share a matrix."""
        yield from (one for one in self.weights if not (tied and one.only_untied))
        for path, entries in self.layers.items():
            for layer in range(value_at(document, path)):
                for one in entries:
                    ours, theirs = (tuple(n.format(layer=layer) for n in names) for names in (one.ours, one.theirs))
                    yield Entry(ours, theirs, one.form)


def recipe_of(layout: CheckpointLayout, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return our recipe of a model, given its config.json. Raises DataError, by name, for an inexpressible setting."""
    for name, allowed in layout.required.items():
        if config.get(name, allowed[0]) not in allowed:
            raise DataError(
                f"config.json: {name} is {config[name]!r}, and a {layout.model_type} can be imported only with "
                f"{' or '.join(repr(value) for value in allowed)}"
            )
    document: dict[str, Any] = {}
    for path, value in layout.fixed.items():
        put_at(document, path, value)
    named: dict[str, str] = {}
    for one in layout.settings:
        value = one.read(config)
        for path in one.ours:
            if path in named and value_at(document, path) != value:
                raise DataError(f"config.json: {one.theirs} is {value!r}, and {named[path]} differs from it")
            put_at(document, path, value)
            named[path] = one.theirs
    return document


def config_of(layout: CheckpointLayout, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config.json of a model, given our recipe. Raises RunError, by name, for an inexpressible setting."""
    config: dict[str, Any] = {"architectures": [layout.architecture], "model_type": layout.model_type}
    for name, allowed in layout.required.items():
        if allowed[0] is not None:
            config[name] = allowed[0]
    for one in layout.settings:
        if (value := one.write(value_at(document, one.ours[0]))) is not None:
            config[one.theirs] = value
    return config


def value_at(document: Any, path: str) -> Any:
    """Return the value at a path. None: there is none."""
    for name in path.split("."):
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


def put_at(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the value at a path, creating sections on the way."""
    *sections, last = path.split(".")
    for name in sections:
        document = document.setdefault(name, {})
    document[last] = value
