"""JoeyNMT's own trainer, which cuts the text of the whole corpus into batches of its own."""

import sys
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from joeynmt.config import parse_global_args
from joeynmt.prediction import prepare
from joeynmt.training import TrainManager
from joeynmt_model import keep_attention_weights, model_section, words
from passes import Passes
from serve import Driver
from training_loop import read

TRAINING = {"batch_tokens": 4096, "learning_rate": 1e-3, "warmup_steps": 300}


def configuration(shape: dict[str, Any], text: Path, folder: Path, training: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a user's YAML file. `text` holds train.en, train.de, dev.en and dev.de, as token ids."""
    vocabulary = folder / "words.txt"
    vocabulary.write_text("".join(f"{word}\n" for word in words(shape["vocab_size"])), encoding="utf-8")
    sides = {
        side: {"lang": language, "level": "word", "voc_file": str(vocabulary)}
        for side, language in (("src", "en"), ("trg", "de"))
    }
    return {
        "name": "benchmark",
        "model_dir": str(folder),
        "use_cuda": False,
        "data": {"train": str(text / "train"), "dev": str(text / "dev"), "dataset_type": "plain", **sides},
        "testing": {"beam_size": 1, "batch_size": 10},
        "training": {
            "normalization": "tokens",
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "scheduling": "warmupinversesquareroot",
            "learning_rate": training["learning_rate"],
            "learning_rate_min": 1e-9,
            "learning_rate_warmup": training["warmup_steps"],
            "clip_grad_norm": 1.0,
            "label_smoothing": 0.1,
            "batch_size": training["batch_tokens"],
            "batch_type": "token",
            "epochs": 10**6,
            "logging_freq": 100,
            "validation_freq": 10**6,
        },
        "model": model_section(shape),
    }


def manager(
    shape: dict[str, Any], text: Path, folder: Path, training: dict[str, Any] = TRAINING
) -> tuple[TrainManager, Any, Any]:
    """Return the trainer of a model of this shape, with its data for training and validation. `training` holds the
    tokens of a batch, the largest learning rate and the updates before it."""
    settings = parse_global_args(configuration(shape, text, folder, training))
    model, train_data, dev_data, _ = prepare(settings, rank=0, mode="train")
    keep_attention_weights(model)
    trainer = TrainManager(
        rank=0,
        model=model,
        model_dir=settings.model_dir,
        device=settings.device,
        autocast=settings.autocast,
        seed=settings.seed,
        train_args=settings.train,
        dev_args=settings.test,
    )
    return trainer, train_data, dev_data


def about(trainer: TrainManager) -> dict[str, Any]:
    """Return the first answer to the driver."""
    return {
        "versions": {"joeynmt": version("joeynmt"), "torch": str(torch.__version__)},
        "threads": torch.get_num_threads(),
        "parameters": sum(parameter.numel() for parameter in trainer.model.parameters()),
    }


def main() -> None:
    driver = Driver()
    shape, _ = read(Path(sys.argv[1]))
    with TemporaryDirectory(prefix="joeynmt-") as folder:
        trainer, train_data, dev_data = manager(shape, Path(sys.argv[1]).parent / "text", Path(folder))
        driver.answer(**about(trainer))
        passes = Passes(driver)
        collate = train_data.collate_fn

        def counted(*arguments: Any, **settings: Any) -> Any:
            batch = collate(*arguments, **settings)
            passes.trained_on(batch.ntokens)
            return batch

        train_data.collate_fn = counted
        passes.begin()
        trainer.train_and_validate(train_data, dev_data)


if __name__ == "__main__":
    main()
