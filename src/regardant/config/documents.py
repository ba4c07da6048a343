"""Conversion of YAML text to plain values and back, by the YAML 1.2 core schema.

PyYAML follows YAML 1.1, where `no` is false, `1e-4` a string, `010` eight and `12:30` 750. In the core schema `no` and
`12:30` are strings, `1e-4` is a number and `010` is ten.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from regardant.config.base import Config
from regardant.errors import ConfigError

CORE_SCHEMA = {
    "null": ("~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": ("true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": ("[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
}
"""Pattern of a plain scalar of each type, and the characters it may start with. The first match wins: int is before
float."""


MOST_BYTES = 1 << 20
"""Maximum size of a YAML text [bytes of a file, characters of a string]. PyYAML parses that much in ten seconds."""

DEEPEST = 50
"""Maximum depth of nested lists and mappings. Deeper ones would raise RecursionError."""


class Loader(yaml.SafeLoader):
    """Loader of the core schema. Duplicate keys are refused; PyYAML silently keeps the last."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.depth == DEEPEST:
            raise yaml.MarkedYAMLError(
                problem=f"more than {DEEPEST} levels of lists or mappings",
                problem_mark=self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_core_int(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        return int(text, 0) if text.startswith(("0o", "0x")) else int(text)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value} given twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class Dumper(yaml.SafeDumper):
    """Dumper that quotes every string which YAML 1.1 or the core schema would read as another type."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        # Unicode's line breaks survive only if they are escaped.
        style = '"' if re.search("[\x85\u2028\u2029]", text) else None
        return self.represent_scalar("tag:yaml.org,2002:str", text, style)


Loader.yaml_implicit_resolvers = {}  # none of YAML 1.1's
for _type, (_pattern, _first) in CORE_SCHEMA.items():
    for _class in (Loader, Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_type}", re.compile(f"(?:{_pattern})$"), _first)
Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_core_int)
Dumper.add_representer(str, Dumper.represent_text)


def parse(text: str) -> Any:
    """Return the plain value of a YAML text. Raises yaml.YAMLError."""
    if len(text) > MOST_BYTES:
        raise yaml.YAMLError(f"more than {MOST_BYTES:,} characters, which no recipe has")
    try:
        return yaml.load(text, Loader)
    except (ValueError, KeyError, AttributeError) as error:  # from a tag that does not fit: `!!int x`, `!!bool x`
        raise yaml.YAMLError(f"a tag (!!) does not fit its value ({error})") from error


def parse_mapping(text: str, origin: str) -> dict[str, Any]:
    """Return the mapping of a YAML text. `origin` names the text in a ConfigError."""
    try:
        document = parse(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{origin}{_where(error)}: not YAML: {_what(error)}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{origin}: holds {type(document).__name__}; must be a mapping, as in 'seed: 1'")
    return document


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping of a YAML file. Raises ConfigError with line and column."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)  # /dev/zero never ends
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}; give the path of a YAML file") from error
    except ValueError as error:  # a NUL in the path
        raise ConfigError(f"{str(path)!r}: {error}; give the path of a YAML file") from error
    return parse_mapping(text, str(path))


def dump(config: Config) -> str:
    """Return every field of a configuration as YAML, from which `load` makes an equal object."""
    content = config.model_dump(mode="json", by_alias=True)
    return yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


def _what(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error)
    return " ".join(problem.split())


def _where(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
