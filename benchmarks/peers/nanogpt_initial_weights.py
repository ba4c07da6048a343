"""nanoGPT's train.py with the initial weights of Regardant's decoder-only model, and nothing else changed.

Arguments: the checkout, and those of train.py. Run in the checkout.
"""

import runpy
import sys
from typing import Any

from torch import nn


def initialise(model: Any, config: Any) -> None:
    """Initialise matrices by the Xavier uniform rule, and embeddings with a standard deviation of 1 / sqrt(d_model)."""
    for module in model.modules():
        if isinstance(module, nn.Linear) and module is not model.lm_head:
            nn.init.xavier_uniform_(module.weight)
    for table in (model.lm_head, model.transformer.wpe):  # lm_head is the token embedding, too
        nn.init.normal_(table.weight, std=config.n_embd**-0.5)


def main() -> None:
    checkout, *arguments = sys.argv[1:]
    sys.path.insert(0, checkout)
    from model import GPT

    build = GPT.__init__

    def build_and_initialise(self: Any, config: Any) -> None:
        build(self, config)
        initialise(self, config)

    GPT.__init__ = build_and_initialise
    sys.argv = ["train.py", *arguments]
    runpy.run_path("train.py", run_name="__main__")


if __name__ == "__main__":
    main()
