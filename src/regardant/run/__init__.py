"""Run folders: train into one, load it, use its model, compare it with others.

The task of a run decides what it learns and which verbs it has (`regardant.tasks`).

RUN/run.yaml             configuration as given and as resolved, decisions, fingerprints of the data, the plan
RUN/tokenizer.json       the vocabulary, or another file that the kind of item needs
RUN/model.safetensors    the weights kept so far
RUN/metrics.jsonl        every number of training
RUN/checkpoints/         everything that resuming needs
RUN/data/                the data in the form that the model takes
RUN/evaluation/          scores, and the outputs that were scored
RUN/measures/            measures of attention
RUN/engines/             the model in the formats of other programs
"""

from regardant.run.comparing import compare
from regardant.run.folder import Record
from regardant.run.opened import Run, load
from regardant.run.training import follow, plan, shapes, train

__all__ = ["Record", "Run", "compare", "follow", "load", "plan", "shapes", "train"]
