"""Lines on a measurement in the header of a recipe, written from the result alone."""

import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import regardant

RECIPES = Path(regardant.__file__).parent / "recipes"
TOYS = ("copy", "reverse")
"""Recipes that are judged by the share of exact answers."""

MEASURED = ("hardware", "time", "score", "beside", "published", "commit")
"""First words of the lines on a measurement, which follow the line of `command`."""

NOT_MEASURED = "# Not measured yet."
SUPERSEDED = (NOT_MEASURED, "# Measured before ")
"""Prefixes of lines that a measurement replaces."""


def lines_of(result: dict[str, Any]) -> list[str]:
    """Return the lines for a result as `benchmarks.recipes` or `benchmarks.families` keeps it."""
    scores = _scores_of_models(result) if "models" in result else _scores_of_one(result)
    lines = [("hardware", _hardware(result["machine"])), *scores, ("commit", result["commit"])]
    return [f"# {name:<9} {value}" for name, value in lines]


def _hardware(cpu: dict[str, Any]) -> str:
    also = [name for name, there in (("bfloat16", cpu.get("bfloat16")),) if there]
    inside = ", ".join([cpu["instructions"], *also]) if "instructions" in cpu else ""
    return f"{cpu['cores']} cores of {cpu['cpu']}{f' ({inside})' if inside else ''}"


def _scores_of_one(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "time", f"{_clock(result['training_seconds'])} of training, {_clock(result['wall_seconds'])} in all"
    yield "score", score_of(result)


def _scores_of_models(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield time and scores of the first model as means over seeds, and the first score of all others."""
    (_, first), *others = result["models"].items()
    runs, (score, *_) = first["runs"], result["scores"]
    training, wall = (statistics.mean(run[name] for run in runs) for name in ("training_seconds", "wall_seconds"))
    yield "time", f"{_clock(training)} of training, {_clock(wall)} in all"
    scores = ", ".join(f"{words(name)} {mean_and_deviation(first, name)}" for name in result["scores"])
    seeds = "seed 1" if len(runs) == 1 else f"mean and deviation of {len(runs)} seeds"
    yield "score", f"{scores} on {result['test']} ({seeds})"
    for name, model in others:
        yield "beside", f"{name}: {mean_and_deviation(model, score)}"
    for name, found in result["baselines"].items():
        yield "beside", f"{name}: {found[score]:.4f}"
    if result["published"]:
        yield "published", result["published"]


def mean_and_deviation(model: dict[str, Any], score: str) -> str:
    """Return the mean of a score, and its standard deviation if there are several seeds."""
    deviation = f" ± {model['deviation'][score]:.4f}" if score in model["deviation"] else ""
    return f"{model['mean'][score]:.4f}{deviation}"


def words(score: str) -> str:
    """Return the name of a score as people read it."""
    return score.replace(".", ": ").replace("_", " ")


def score_of(result: dict[str, Any]) -> str:
    """Return the scores by which the recipe's task is judged, as one line."""
    scores = result["scores"]
    if result["recipe"] in TOYS:
        return f"{100 * exact_match(scores):.1f} % of {scores['sentences']:,} unseen sequences exactly right"
    if "heldout" in scores:
        combinations, aligned = scores["heldout"]["bleu"], scores.get("alignment_error_rate")  # None without attention
        alignment = "" if aligned is None else f"; alignment error rate {aligned:.3f}"
        return f"BLEU {scores['bleu']:.2f} on unseen sentences, {combinations:.2f} on held-out combinations{alignment}"
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
    """Write the lines of a result into its recipe, in place of those of an earlier measurement."""
    path = RECIPES / f"{result['recipe']}.yaml"
    dropped = (*_opened(MEASURED), *SUPERSEDED)
    kept = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith(dropped)]
    at = next(number for number, line in enumerate(kept, 1) if line.startswith(_opened(("command",))))
    path.write_text("\n".join([*kept[:at], *lines_of(result), *kept[at:]]) + "\n", encoding="utf-8")


def refer(recipe: str, family: str) -> None:
    """Write into the recipe of another model of a family where its scores are, if it says that it is not measured."""
    path = RECIPES / f"{recipe}.yaml"
    told = f"# docs/results.md has its scores, under {family}."
    path.write_text(path.read_text(encoding="utf-8").replace(NOT_MEASURED, told), encoding="utf-8")


def _opened(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"# {word} " for word in words)


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 300 else f"{seconds / 60:.1f} min"
