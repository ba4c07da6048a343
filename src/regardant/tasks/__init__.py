"""The tasks by the name in a recipe. A plugin registers a task by deriving from `Task`."""

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
"""Modules of the package's own tasks. Each is imported when a recipe names its task, so that no task loads the
libraries of another."""


def task_named(name: object, origin: str = "recipe") -> Task:
    """Return the task of a name. Raises ConfigError for an unknown name."""
    if isinstance(name, str) and name not in Task.registered and name in MODULES:
        import_module(MODULES[name])
    if not isinstance(name, str) or name not in Task.registered:
        names = sorted(MODULES.keys() | Task.registered.keys())
        raise ConfigError(f"{origin}: task: given {name!r}; allowed: {', '.join(names)}{did_you_mean(name, names)}")
    return Task.registered[name]


def load_recipe(document: Mapping[str, Any], overrides: Sequence[str] = (), origin: str = "recipe") -> TaskConfig:
    """Return the validated configuration of a recipe. Raises ConfigError that lists every problem."""
    document = dict(document)
    task = task_named(document.get("task", "translation"), origin)
    return configuration.load(task.config, document, overrides, origin)
