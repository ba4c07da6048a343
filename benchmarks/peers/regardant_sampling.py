"""Regardant's sampling from a language model with fresh weights. Argument: its shape."""

import json
import sys
from pathlib import Path

import torch
from random_batches import prompt_of
from regardant_models import build
from serve import Clock, Driver

import regardant
from regardant.generation.sampling import SamplingConfig, sample
from regardant.layers.linear import Layouts
from regardant.models.base import CausalModel
from regardant.training.devices import keep_freed_memory


def main() -> None:
    driver, shape = Driver(), json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    keep_freed_memory()  # as for every run that is opened
    torch.manual_seed(1)
    model, prompt = build(shape).eval(), prompt_of(shape)
    assert isinstance(model, CausalModel)
    layouts = {"float32": Layouts(), "bfloat16": Layouts(torch.bfloat16)}
    driver.answer(
        versions={"regardant": regardant.__version__, "torch": str(torch.__version__)},
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )
    for request in driver.requests():
        clock = Clock()
        config = SamplingConfig(max_tokens=request["tokens"])
        written = sample(
            model, prompt, config, samples=range(request["rows"]), seed=1, layouts=layouts[request["precision"]]
        )
        driver.answer(tokens=sum(map(len, written)), **clock.read())


if __name__ == "__main__":
    main()
