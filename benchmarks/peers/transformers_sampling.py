"""Sampling by `generate` of transformers from GPT-2 with fresh weights and a cache. Argument: its shape."""

import copy
import json
import sys
from importlib.metadata import version
from pathlib import Path

import torch
from random_batches import PAD, prompt_of
from serve import Clock, Driver
from transformers_attention import attend
from transformers_models import build


def main() -> None:
    driver, shape = Driver(), json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    torch.manual_seed(1)
    model, prompt = build(shape).eval(), prompt_of(shape)
    model.generation_config.eos_token_id = None  # so that all texts have an equal number of tokens
    models = {"float32": model, "bfloat16": copy.deepcopy(model).bfloat16()}
    driver.answer(
        versions={"transformers": version("transformers"), "torch": str(torch.__version__)},
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )
    for request in driver.requests():
        clock = Clock()
        texts = prompt.expand(request["rows"], -1)
        used = models[request["precision"]]
        with torch.inference_mode(), attend(used, request["attention"]):
            written = used.generate(
                input_ids=texts,
                attention_mask=torch.ones_like(texts),
                do_sample=True,
                cache_implementation=None if request["cache"] == "dynamic" else request["cache"],
                top_k=0,
                max_new_tokens=request["tokens"],
                pad_token_id=PAD,
            )
        driver.answer(tokens=written[:, len(prompt) :].numel(), **clock.read())


if __name__ == "__main__":
    main()
