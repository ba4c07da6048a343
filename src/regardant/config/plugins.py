"""Plugins: modules of a user, whose import adds mechanisms, positions, models or tasks.

The user names them on the command line or in Python. A run folder names none, so that loading a run cannot execute
code.
"""

import importlib
import importlib.util
import keyword
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

from regardant.config.base import Config
from regardant.errors import ConfigError

PARTS: Mapping[str, Mapping[str, str]] = {
    "attention": {"{name}.py": "attention.py.txt", "test_{name}.py": "test_attention.py.txt"},
}
"""File names and their templates, by the part that a plugin adds."""

BASES = frozenset({"Attention", "ScoredAttention"})
"""Names of classes that templates import, which the class of a plugin must not shadow."""


def import_plugins(names: Sequence[str]) -> None:
    """Import modules, also from the working directory. Raises ConfigError for one that cannot be imported."""
    if names and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # a user's module may raise anything
            raise ConfigError(
                f"plugin {name} cannot be imported ({type(error).__name__}: {error}): give the name of a module, "
                "such as my_module for my_module.py in this folder"
            ) from error


def modules_of(config: Config) -> list[str]:
    """Return the modules outside the package that define classes of a configuration: another process that reads it has
    to import them."""
    values = [one for _, value in config for one in (value.values() if isinstance(value, Mapping) else [value])]
    parts = [value for value in values if isinstance(value, Config)]
    own = [] if type(config).__module__.startswith("regardant.") else [type(config).__module__]
    return sorted({*own, *(module for part in parts for module in modules_of(part))})


def plugin_module(file: Path) -> str:
    """Return the name of the module in a file, and make it importable by `import_plugins`.

    Raises ConfigError for a file that is missing or whose name is not that of a module.
    """
    if file.suffix != ".py" or not file.stem.isidentifier():
        raise ConfigError(f"{file} is no Python module: give a file such as my_attention.py")
    if not file.is_file():
        raise ConfigError(f"there is no file {file}: write one with: regardant new attention {file.stem}")
    if (folder := str(file.resolve().parent)) not in sys.path:
        sys.path.insert(0, folder)
    return file.stem


def write_plugin(part: str, name: str, folder: Path) -> list[Path]:
    """Write a plugin that adds a part, and its test, from templates. Returns the files.

    Raises ConfigError for an unknown part, an invalid name or one that is taken, and a file that exists.
    """
    if part not in PARTS:
        raise ConfigError(f"there is no template for {part!r}: give one of {', '.join(PARTS)}")
    class_name = "".join(word.capitalize() for word in name.split("_"))
    is_name = name.isidentifier() and not keyword.iskeyword(name) and name == name.lower() and name != "__main__"
    if not is_name or not class_name.isidentifier() or class_name in BASES:
        raise ConfigError(f"{name!r} is no name for a module: give lower-case letters, as in my_{part}")
    texts = {folder / file.format(name=name): template for file, template in PARTS[part].items()}
    if existing := [str(path) for path in texts if path.exists()]:
        raise ConfigError(f"{', '.join(existing)} exists: give another name, or remove it")
    if importlib.util.find_spec(name) is not None:
        raise ConfigError(f"Python has a module {name} already: give another name, as my_{name}")
    title = name.replace("_", " ").capitalize()
    for path, template in texts.items():
        text = (files("regardant.config") / "templates" / template).read_text(encoding="utf-8")
        path.write_text(Template(text).substitute(name=name, class_name=class_name, title=title), encoding="utf-8")
    return list(texts)
