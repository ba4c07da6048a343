"""Notebook view of a run: task, data, model, best score and possible calls, without opening its model."""

from pathlib import Path
from typing import Any

from regardant.config import Config
from regardant.config.run_files import METRICS, WEIGHTS
from regardant.pictures import facts
from regardant.run.folder import Record
from regardant.training.events import read_events

MOST_LETTERS = 100
"""Maximum number of characters of the settings of the data."""

CALLS = {"translate": "run.translate([text])", "generate": "run.generate(prompt)"}
"""Python calls by verb."""

UNSCORED = "encode"
"""Verb of models whose answers are vectors, which cannot be evaluated or measured."""


def overview(folder: Path, record: Record) -> str:
    """Return an HTML table: the task, the data, the model, the best score on validation data, and possible calls."""
    config = record.config
    verbs = [CALLS[verb] for verb in config.verbs if verb in CALLS] or ["run.predict([item])"]
    calls = [*verbs, "run.evaluate()", "run.inspect(item)", "run.measure()"]
    if UNSCORED in config.verbs:
        calls = [*verbs, "run.inspect(item)"]
    trained = (folder / WEIGHTS).is_file()
    rows = [
        ("task", config.task),
        ("data", _settings(config.data)),
        ("model", _model(config.model, record.plan)),
        (f"best {config.metric.name}", _best(folder, config.metric.unit)),
        ("use", ", ".join(calls) if trained else "not possible yet: train the run to its end first"),
    ]
    return facts(str(folder), rows)


def _settings(data: Config) -> str:
    """Return the kind of data, and the settings that are not the defaults."""
    given = data.model_dump(mode="json", exclude_defaults=True)
    kind = getattr(data, "kind", None)
    settings = ", ".join(f"{name} {value}" for name, value in given.items() if name != "kind" and value is not None)
    text = f"{kind}: {settings}" if kind and settings else kind or settings
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"


def _model(model: Config, plan: dict[str, Any]) -> str:
    kind = str(getattr(model, "kind", "")).replace("_", " ")
    size = f"{plan['parameters']:,} parameters" if "parameters" in plan else ""
    return ", ".join(part for part in (kind, size) if part)


def _best(folder: Path, unit: str) -> str:
    """Return the best validation score so far, with its unit."""
    best = None
    for event in read_events(folder / METRICS):
        found = (value for name, value in event.items() if name.startswith("best_") and value is not None)
        best = next(found, best)
    return "not validated yet" if best is None else f"{best:.4g}{f' {unit}' if unit else ''} on validation data"
