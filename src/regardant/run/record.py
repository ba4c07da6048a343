"""RUN/run.yaml: what was asked, what it became, what was measured and decided, fingerprints of the data, the plan."""

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml

from regardant import __version__
from regardant import config as configuration
from regardant.config.did_you_mean import did_you_mean
from regardant.config.documents import Dumper
from regardant.errors import ConfigError, RunError
from regardant.planning.probes import Decisions
from regardant.tasks import load_recipe
from regardant.tasks.base import TaskConfig
from regardant.training.checkpoints import write_atomically
from regardant.training.run_folder import names_in


@dataclass(frozen=True)
class Record:
    """What run.yaml holds."""

    asked: dict[str, Any]
    """The configuration as the user gave it, and the defaults of what this version knows beside."""
    config: TaskConfig
    """With everything chosen."""
    decided: Decisions
    fingerprints: dict[str, str]
    plan: dict[str, Any]

    def write(self, run: Path) -> None:
        """Put it into the run folder."""
        content = {
            "regardant": __version__,
            "versions": {"python": platform.python_version(), "torch": str(torch.__version__)},
            "asked": self.asked,
            "config": self.config.model_dump(mode="json", by_alias=True),
            "decided": self.decided.as_dict(),
            "fingerprints": self.fingerprints,
            "plan": self.plan,
        }
        write_atomically(run / "run.yaml", yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True))

    @classmethod
    def read(cls, run: Path) -> "Record":
        """What a run folder says of itself. Raises RunError where it is no whole run."""
        if not run.is_dir():
            near = did_you_mean(run.name, names_in(run.parent))
            raise RunError(f"there is no run {run}{near or ': give a folder that `regardant train` has made'}")
        if not (run / "run.yaml").is_file():
            raise RunError(f"{run} is no run, or half written (no run.yaml): train into it first")
        try:
            content, origin = configuration.read_yaml(run / "run.yaml"), str(run / "run.yaml")
            return cls(
                asked=load_recipe(content["asked"], origin=origin).model_dump(mode="json", by_alias=True),
                config=load_recipe(content["config"], origin=origin),
                decided=Decisions.from_dict(content["decided"]),
                fingerprints=content["fingerprints"],
                plan=content["plan"],
            )
        except ConfigError as error:
            raise ConfigError("; ".join(line.strip() for line in str(error).splitlines())) from error
        except KeyError as error:
            raise RunError(f"{run / 'run.yaml'} is damaged (no {error}): restore it or train anew") from error
        except (TypeError, ValueError) as error:
            raise RunError(f"{run / 'run.yaml'} is damaged ({error}): restore it or train anew") from error


def require_verb(folder: Path, config: TaskConfig, verb: str) -> None:
    """Raise RunError for a run whose task lacks a verb."""
    if verb not in config.verbs:
        known = ", ".join((*config.verbs, "predict"))
        raise RunError(f"{folder} is a run of {config.task}, which has no {verb}: it has {known}")
