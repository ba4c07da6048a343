"""A run folder is the only handle: train into it, load it, use what it has become, compare it with others.

What is learned, and what a run can be asked for, its task says (`regardant.tasks`).

RUN/run.yaml             what was asked, what it became, what was decided by measuring, the data's fingerprints
RUN/tokenizer.json       the vocabulary, or another file that the kind of item keeps
RUN/model.safetensors    the best weights so far
RUN/metrics.jsonl        every number of training
RUN/checkpoints/         all that resuming needs
RUN/data/                the data as the model takes it
RUN/evaluation/          scores, and what they were computed from
RUN/measures/            its attention in numbers
RUN/engines/             the model as other programs decode it
"""

from regardant.run.comparing import compare
from regardant.run.folder import Record
from regardant.run.opened import Run, load
from regardant.run.training import follow, plan, train

__all__ = ["Record", "Run", "compare", "follow", "load", "plan", "train"]
