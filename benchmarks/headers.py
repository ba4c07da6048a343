"""Lines on a measurement in the header of a recipe, written from the result alone."""

from pathlib import Path
from typing import Any

import regardant

RECIPES = Path(regardant.__file__).parent / "recipes"
TOYS = ("copy", "reverse", "sort", "recall", "recall-attention", "addition", "variable-distance")
"""Recipes that are judged by the share of exact answers."""

MEASURED = ("hardware", "time", "score", "commit")
"""The words that open those lines, below `command`."""


def lines_of(result: dict[str, Any]) -> list[str]:
    """The lines for a result as `benchmarks.recipes` keeps it."""
    cpu = result["machine"]
    also = [name for name, there in (("bfloat16", cpu.get("bfloat16")),) if there]
    inside = ", ".join([cpu["instructions"], *also]) if "instructions" in cpu else ""
    said = (
        f"{cpu['cores']} cores of {cpu['cpu']}{f' ({inside})' if inside else ''}",
        f"{_clock(result['training_seconds'])} of training, {_clock(result['wall_seconds'])} in all",
        score_of(result),
        result["commit"],
    )
    return [f"# {name:<9} {value}" for name, value in zip(MEASURED, said, strict=True)]


def score_of(result: dict[str, Any]) -> str:
    """Return the scores by which the recipe's task is judged, as one line."""
    scores = result["scores"]
    if result["recipe"] in TOYS:
        longer = scores.get("longer")
        twice = f", {100 * exact_match(longer):.1f} % of up to twice the length" if longer else ""
        return f"{100 * exact_match(scores):.1f} % of {scores['sentences']:,} unseen sequences exactly right{twice}"
    if "bracket_f1" in scores:
        of = scores["heldout"]
        return (
            f"bracket F1 {of['bracket_f1']:.4f}, well formed {of['well_formed']:.4f} on held-out combinations of words"
        )
    if "word_error_rate" in scores:
        return (
            f"exact match {scores['exact_match']:.4f}, word error rate {scores['word_error_rate']:.4f} of "
            f"{scores['sentences']:,} items, seed {result['seed']}"
        )
    if "heldout" in scores:
        combinations = scores["heldout"]["bleu"]
        return (
            f"BLEU {scores['bleu']:.2f} on unseen sentences, {combinations:.2f} on held-out combinations; "
            f"alignment error rate {scores['alignment_error_rate']:.3f}"
        )
    if "exact_match" in scores:
        return (
            f"exact match {scores['exact_match']:.4f}, F1 {scores['f1']:.4f}, F1 of no answer "
            f"{scores['no_answer_f1']:.4f} of {scores['items']:,} questions, seed {result['seed']}"
        )
    if "macro_f1" in scores:
        return f"accuracy {scores['accuracy']:.4f} of {scores['items']:,} items, seed {result['seed']}"
    if "zero_shot_accuracy" in scores:
        by_class = f"recall@1 by class {scores['class_recall_at_1']:.4f}"
        items = f"{scores['first_items']:,} items, seed {result['seed']}"
        return f"zero-shot accuracy {scores['zero_shot_accuracy']:.4f}, {by_class} of {items}"
    if "mse" in scores:
        return (
            f"MSE {scores['mse']:.4f}, MAE {scores['mae']:.4f} of {scores['items']:,} forecasts, seed {result['seed']}"
        )
    if "words" in scores and "accuracy" in scores:
        return f"accuracy {scores['accuracy']:.4f} of {scores['words']:,} words, seed {result['seed']}"
    if "bits_per_character" not in scores and "bleu" not in scores:
        return f"loss {scores['loss']:.3f} nats per masked token, {100 * scores['accuracy']:.1f} % of them named"
    if "bleu" not in scores:
        return f"loss {scores['loss']:.3f} nats a token, {scores['bits_per_character']:.3f} bits a character"
    tokenised = next(part for part in scores["signature"].split("|") if part.startswith("tok:"))
    return f"BLEU {scores['bleu']:.2f} (sacreBLEU, {tokenised}), seed {result['seed']}"


def exact_match(scores: dict[str, Any]) -> float:
    """Return the share of texts that are exactly right; results of earlier commits name it accuracy."""
    share: float = scores["exact_match"] if "exact_match" in scores else scores["accuracy"]
    return share


def write(result: dict[str, Any]) -> None:
    """Put them into the recipe, in the place of what an earlier measurement said."""
    path = RECIPES / f"{result['recipe']}.yaml"
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith(_opened(MEASURED))]
    at = next(number for number, line in enumerate(kept, 1) if line.startswith(_opened(("command",))))
    path.write_text("\n".join([*kept[:at], *lines_of(result), *kept[at:]]) + "\n", encoding="utf-8")


def _opened(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"# {word} " for word in words)


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 300 else f"{seconds / 60:.1f} min"
