"""The tasks, by the name that recipes call them. A plugin registers its own by deriving from `Task`."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from regardant import config as configuration
from regardant.config.did_you_mean import did_you_mean
from regardant.errors import ConfigError
from regardant.tasks.base import Task, TaskConfig

MODULES = {
    "classification": "regardant.tasks.classification.task",
    "forecasting": "regardant.tasks.forecasting.task",
    "language_modelling": "regardant.tasks.language_modelling.task",
    "masked_language_modelling": "regardant.tasks.masked_language_modelling.task",
    "matching": "regardant.tasks.matching.task",
    "node_classification": "regardant.tasks.node_classification.task",
    "question_answering": "regardant.tasks.question_answering.task",
    "sentence_embedding": "regardant.tasks.sentence_embedding.task",
    "sequence_to_sequence": "regardant.tasks.sequence_to_sequence.task",
    "tagging": "regardant.tasks.tagging.task",
    "translation": "regardant.tasks.translation.task",
}
"""The package's own tasks. A module is imported when a recipe asks for its task: no task waits for another's
libraries."""


def task_named(name: object, origin: str = "recipe") -> Task:
    """Return a task. Raises ConfigError if there is none of that name."""
    if isinstance(name, str) and name not in Task.registered and name in MODULES:
        import_module(MODULES[name])
    if not isinstance(name, str) or name not in Task.registered:
        names = sorted(MODULES.keys() | Task.registered.keys())
        raise ConfigError(f"{origin}: task: given {name!r}; allowed: {', '.join(names)}{did_you_mean(name, names)}")
    return Task.registered[name]


def load_recipe(document: Mapping[str, Any], overrides: Sequence[str] = (), origin: str = "recipe") -> TaskConfig:
    """Return the configuration that a recipe describes, checked. Raises ConfigError with every problem of it."""
    document = dict(document)
    task = task_named(document.get("task", "translation"), origin)
    return configuration.load(task.config, document, overrides, origin)
