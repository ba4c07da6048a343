"""What can be learned. A task is known by the name that recipes call it."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from regardant import config as configuration
from regardant.config.problems import did_you_mean
from regardant.errors import ConfigError
from regardant.tasks.base import TaskConfig

TASKS = {
    "translation": "regardant.tasks.translation.config:TranslationConfig",
    "language_modelling": "regardant.tasks.language_modelling.config:LanguageModellingConfig",
}
"""Where the configuration of each is: a module and a class. It is imported when a recipe asks for it, so that no task
waits for the libraries of another."""


def load_recipe(document: Mapping[str, Any], overrides: Sequence[str] = (), origin: str = "recipe") -> TaskConfig:
    """The configuration that a recipe describes, checked by its task. Raises ConfigError with every problem of it."""
    document = dict(document)
    return configuration.load(schema_of(document.get("task", "translation"), origin), document, overrides, origin)


def schema_of(task: object, origin: str = "recipe") -> type[TaskConfig]:
    """The configuration class of a task. Raises ConfigError where there is none of that name."""
    if not isinstance(task, str) or task not in TASKS:
        raise ConfigError(f"{origin}: task: given {task!r}; allowed: {', '.join(TASKS)}{did_you_mean(task, TASKS)}")
    module, name = TASKS[task].split(":")
    schema: type[TaskConfig] = getattr(import_module(module), name)
    return schema
