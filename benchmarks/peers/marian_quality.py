"""Marian's model trained by transformers' Trainer, and translations by the model.

Trainer computes in bfloat16, by its own setting, if the driver asks for that precision.
Arguments: the file of the driver, and a folder for what Trainer writes.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from marian import PAD, SOS, build
from marian_decoding import until_end
from quality import Marks
from serve import Driver
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments
from transformers_attention import attend

IGNORED = -100
TOKENS_A_SENTENCE = 16
"""Number of target tokens of a sentence, about: Trainer counts the sentences of a batch."""


def collate(rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    """Return a padded batch. With label smoothing, Trainer passes no labels to the model, so they are shifted here."""
    source = pad_sequence([torch.tensor(row["input_ids"]) for row in rows], True, PAD)
    labels = pad_sequence([torch.tensor(row["labels"]) for row in rows], True, IGNORED)
    before = pad_sequence([torch.tensor([SOS, *row["labels"][:-1]]) for row in rows], True, PAD)
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "decoder_input_ids": before,
        "labels": labels,
    }


def main() -> None:
    driver = Driver()
    content = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    model = build(content["shape"])
    attend(model, "matmul")  # faster in bfloat16 on a CPU for short sentences: `make bench-training` tries both
    pairs = [{"input_ids": source, "labels": target} for source, target in content["pairs"]]
    sources: list[list[int]] = content["sources"]

    def translate() -> list[list[int]]:
        model.eval()
        written: list[list[int]] = []
        for first in range(0, len(sources), 50):
            rows = [torch.tensor(ids) for ids in sources[first : first + 50]]
            source = pad_sequence(rows, True, PAD)
            with torch.inference_mode():
                found = model.generate(
                    input_ids=source,
                    attention_mask=(source != PAD).long(),
                    num_beams=5,
                    do_sample=False,
                    length_penalty=1.0,
                    max_new_tokens=content["most_tokens"],
                )
            written += [until_end(row[1:]) for row in found.tolist()]
        model.train()
        return written

    arguments = Seq2SeqTrainingArguments(
        output_dir=sys.argv[2],
        max_steps=10**6,
        per_device_train_batch_size=content["batch_tokens"] // TOKENS_A_SENTENCE,
        train_sampling_strategy="group_by_length",
        learning_rate=content["learning_rate"],
        lr_scheduler_type="inverse_sqrt",
        warmup_steps=content["warmup_steps"],
        adam_beta2=0.98,
        label_smoothing_factor=0.1,
        bf16=content["precision"] == "bfloat16",
        use_cpu=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_steps=100,
        seed=1,
    )
    driver.answer(
        versions={"transformers": version("transformers"), "torch": str(torch.__version__)},
        threads=torch.get_num_threads(),
    )
    marks = Marks(driver, translate)
    marks.begin()
    Seq2SeqTrainer(model, arguments, data_collator=collate, train_dataset=pairs).train()


if __name__ == "__main__":
    main()
