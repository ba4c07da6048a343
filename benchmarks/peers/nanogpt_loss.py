"""The loss of a nanoGPT checkpoint over a whole file of ids, in windows of its context without overlap.

Arguments: the checkout, the checkpoint, the file. Prints nats a token.
"""

import sys

import numpy as np
import torch

CHECKOUT, CHECKPOINT, DATA = sys.argv[1:]
WINDOWS_AT_ONCE = 64


def main() -> None:
    sys.path.insert(0, CHECKOUT)
    from model import GPT, GPTConfig

    saved = torch.load(CHECKPOINT, map_location="cpu", weights_only=True)
    sys.stdout, answers = sys.stderr, sys.stdout  # the constructor of the model prints its size
    model = GPT(GPTConfig(**saved["model_args"])).eval()
    model.load_state_dict(saved["model"])
    context = saved["model_args"]["block_size"]
    ids = torch.from_numpy(np.fromfile(DATA, dtype=np.uint16).astype(np.int64))
    count = (len(ids) - 1) // context
    read = ids[: count * context].view(count, context)
    targets = ids[1 : count * context + 1].view(count, context)
    total = 0.0
    with torch.inference_mode():
        for at in range(0, count, WINDOWS_AT_ONCE):
            chosen = slice(at, at + WINDOWS_AT_ONCE)
            _, mean = model(read[chosen], targets[chosen])
            total += float(mean) * targets[chosen].numel()
    print(total / targets.numel(), file=answers)


if __name__ == "__main__":
    main()
