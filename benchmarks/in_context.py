"""Accuracy of a run of the recipe `in-context` by the number of examples in its prompt.

    .venv/bin/python -m benchmarks.in_context runs/in-context

A prompt is examples of a function and a letter, `a3 c7 a`. Functions of the first kind are drawn as those of training,
which have no rule: the digit of a letter can be known only if the letter is among the examples. Those of the second
kind have a rule that no line of the training text has, the place of the letter in the alphabet plus a number; the
letter asked for is none of the examples. One example is enough for a reader who guesses the rule.
"""

import sys
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import torch

from regardant.data.in_context import InContextConfig
from regardant.data.toys import DIGITS, LETTERS
from regardant.run import Run, load

from .records import Measurement, arguments

SHOTS = (0, 1, 2, 4, 8)
"""Numbers of examples in a prompt."""

PROMPTS = 1000
"""Number of prompts for each number of examples."""


class Prompt(NamedTuple):
    """A prompt and its answer."""

    text: str
    answer: str
    known: bool
    """True if the letter asked for is among the examples."""


def of_training(config: InContextConfig, random: Random, shots: int) -> Prompt:
    """Return a prompt of a function as in training."""
    *examples, asked = config.draw(random, shots + 1)
    return Prompt(" ".join([*examples, asked[0]]), asked[1], asked in examples)


def of_a_rule(config: InContextConfig, random: Random, shots: int) -> Prompt:
    """Return a prompt of a function with a rule, for fewer examples than letters."""
    number = random.randrange(len(DIGITS))
    *examples, asked = (
        LETTERS[letter] + DIGITS[(letter + number) % len(DIGITS)]
        for letter in random.sample(range(config.letters), shots + 1)
    )
    return Prompt(" ".join([*examples, asked[0]]), asked[1], known=False)


def accuracy(run: Run, prompts: Sequence[Prompt]) -> float:
    """Return the share of prompts of equal length that the likeliest next token answers."""
    trained = run.trained
    ids = torch.tensor([trained.tokenizer.encode(prompt.text) for prompt in prompts], device=trained.device)
    with torch.inference_mode():
        best = trained.model.scores(text=ids)[:, -1].argmax(-1).tolist()
    written = [trained.tokenizer.decode([token]) for token in best]
    return sum(found == prompt.answer for found, prompt in zip(written, prompts, strict=True)) / len(prompts)


def measure(run: Run) -> dict[str, float]:
    """Return the accuracy after each number of examples."""
    return {f"accuracy_after_{row['shots']}": row["accuracy"] for row in by_shots(run)}


def by_shots(run: Run) -> list[dict[str, Any]]:
    """Return the accuracies after each number of examples, with the best possible accuracy."""
    config, random, rows = run.config.data, Random("prompts"), []
    for shots in SHOTS:
        drawn = [of_training(config, random, shots) for _ in range(PROMPTS)]
        known = sum(prompt.known for prompt in drawn)
        row = {"shots": shots, "accuracy": accuracy(run, drawn), "best": (known + 0.1 * (PROMPTS - known)) / PROMPTS}
        if shots < config.letters:
            row["rule"] = accuracy(run, [of_a_rule(config, random, shots) for _ in range(PROMPTS)])
        rows.append(row)
    return rows


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the accuracies as a table for docs/prompting.md."""
    lines = ["| examples | accuracy | best possible | a rule never trained on |", "|--:|--:|--:|--:|"]
    for row in rows:
        rule = f"{row['rule']:.3f}" if "rule" in row else "-"
        lines.append(f"| {row['shots']} | {row['accuracy']:.3f} | {row['best']:.3f} | {rule} |")
    return "\n".join(lines)


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("run", help="the folder of a run of in-context")
    asked = parser.parse_args(given)
    measurement = Measurement(scratch=asked.scratch)
    rows = by_shots(load(asked.run))
    print(table(rows))
    measurement.keep("in-context-shots", {"run": "in-context", "prompts": PROMPTS, "shots": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
