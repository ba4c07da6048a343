"""JoeyNMT's own trainer on the text of the driver, and translations by its model.

Arguments: the file of the driver, beside which the text is.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from joeynmt.search import search
from joeynmt_model import EOS, OF_OURS
from joeynmt_trainer import about, manager
from joeynmt_training import batch_of
from quality import Marks
from serve import Driver
from torch.nn.utils.rnn import pad_sequence

OURS = {theirs: ours for ours, theirs in OF_OURS.items()}


def main() -> None:
    driver = Driver()
    path = Path(sys.argv[1])
    content = json.loads(path.read_text(encoding="utf-8"))
    sources: list[list[int]] = content["sources"]
    with TemporaryDirectory(prefix="joeynmt-") as folder:
        trainer, train_data, dev_data = manager(content["shape"], path.parent / "text", Path(folder), content)

        def translate() -> list[list[int]]:
            model = trainer.model.eval()
            written: list[list[int]] = []
            for first in range(0, len(sources), 50):
                rows = [torch.tensor(ids) for ids in sources[first : first + 50]]
                source = pad_sequence(rows, True, 0)
                batch = batch_of(source, torch.tensor([[1, 2]] * len(rows)))
                found, *_ = search(model, batch, content["most_tokens"], beam_size=5, beam_alpha=1.0)
                written += [until_end(row) for row in found.tolist()]
            model.train()
            return written

        driver.answer(**about(trainer))
        marks = Marks(driver, translate)
        marks.begin()
        trainer.train_and_validate(train_data, dev_data)


def until_end(ids: list[int]) -> list[int]:
    """Return our ids of the tokens of a target before EOS."""
    kept = ids[: ids.index(EOS)] if EOS in ids else ids
    return [OURS.get(token, token) for token in kept]


if __name__ == "__main__":
    main()
