"""docs/speed.md agrees with the kept results, and names every bar's verdict."""

import json
import re
from pathlib import Path
from statistics import median

import pytest

from benchmarks import recipes, shakespeare
from benchmarks.bars import MISSED, markdown, missed, verdict
from benchmarks.decoding import CTRANSLATE2, EXPORTED, REGARDANT, TRANSFORMERS
from benchmarks.model_steps import best_over_others, cells
from benchmarks.quality import MINUTES, scores_of
from benchmarks.recipes import LEAST_BLEU, Asked
from benchmarks.records import RESULTS
from benchmarks.side_by_side import best_of_each
from benchmarks.training import OURS, speeds_of

PAGE = (Path(__file__).parents[3] / "docs" / "speed.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
README = " ".join((Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8").split())


def kept(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def section(title):
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def bars_of(name):
    return shakespeare.bars(kept(name)["means"]) if name == "nanogpt" else kept(name)["bars"]


@pytest.mark.parametrize(
    "name",
    [
        *("training_speed", "nanogpt", "decoding_speed", "engines_speed", "models_speed", "sampling_speed"),
        *("preparing", "memory", "startup", "pages", "quality"),
        *("accelerator-training_speed", "accelerator-translation_speed"),
    ],
)
def test_every_bar_has_its_number_and_its_verdict(name):
    assert "\n".join(markdown(bars_of(name))) in PAGE


def test_bars_of_attention_are_counted():
    bars = kept("attention")["bars"]
    passed = sum(verdict(one) == "pass" for one in bars)
    assert f"Of {len(bars)} bars {passed} pass, {len(missed(bars))} are {MISSED}" in TEXT


def test_training_speeds_are_those_measured():
    number = r" ([\d.,]+) \|"
    told = re.findall(rf"^\| ([^|]+) \| (float32|bfloat16) \|{number * 4}$", section("Training"), re.MULTILINE)
    measured = kept("training_speed")["allocators"].values()
    as_it_comes, alike = (one["rows"] for one in measured)
    best, _ = (best_of_each(speeds_of(one), OURS) for one in measured)
    assert told == [
        (
            one["name"],
            one["precision"],
            f"{one['tokens_per_second']:,.0f}",
            f"{one['regardant_is_times_as_fast']:.2f}",
            f"{other['regardant_is_times_as_fast']:.2f}",
            f"{best[one['name']]:.2f}",
        )
        for one, other in zip(as_it_comes, alike, strict=True)
    ]


def ratios_of_passes(ours, theirs):
    """Ratios of two rows of a result, pass by pass."""
    return [one / other for one, other in zip(ours["readings"], theirs["readings"], strict=True)]


def test_ratios_of_single_passes_are_those_measured():
    rows = {(row["name"], row["precision"]): row for row in kept("training_speed")["allocators"]["as it comes"]["rows"]}
    ratios = ratios_of_passes(rows[OURS, "bfloat16"], rows["transformers Marian", "bfloat16"])
    middle = f"{median(ratios):.2f}"
    assert f"{min(ratios):.2f} to {max(ratios):.2f} in single passes, {middle} in their median" in TEXT
    assert f"{middle} in the median of single passes" in README
    (beam, *_) = kept("decoding_speed")["cases"]
    rows = {(row["engine"], row["precision"]): row for row in beam["rows"]}
    ratios = ratios_of_passes(rows[REGARDANT, "float32"], rows[CTRANSLATE2, "float32"])
    assert f"({median(ratios):.3f} in the median of single passes" in TEXT


def test_shares_of_the_peak_are_those_measured():
    result = kept("training_speed")
    measured = result["allocators"]["as it comes"]
    shares = {row["precision"]: row["share_of_peak"] for row in measured["rows"] if row["name"] == "regardant"}
    peaks = {precision: f"{peak:,.0f}" for precision, peak in measured["peak_gflops"].items()}
    low, full = (f"{shares[precision]:.0%}".replace("%", " %") for precision in ("bfloat16", "float32"))
    assert f"reaches {low} of the machine's matmul rate in bfloat16 ({peaks['bfloat16']} GFLOP/s)" in TEXT
    assert f"{full} of that in float32 ({peaks['float32']})" in TEXT


def test_shares_of_a_step_are_those_measured():
    shares = kept("training_profile")["profiles"]["bfloat16"]["shares"]
    told = {part: f"{share:.0%}".replace("%", " %") for part, share in shares.items()}
    assert (
        f"layers take {told['matmul']} of a step in bfloat16, the loss with its own {told['loss']}, "
        f"attention {told['attention']}, dropout and the ReLU beside it {told['dropout, some with ReLU']}"
    ) in TEXT


def test_starting_takes_what_was_measured():
    seconds = kept("startup")["seconds"]
    assert f"one sentence after {seconds['translate']:.2f} s" in TEXT
    assert f"`import torch` takes {seconds['import torch']:.2f} s" in TEXT
    assert f"`--help` takes {seconds['--help']:.2f} s" in TEXT


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Training", ["training_speed", "training_profile"]),
        ("Tiny Shakespeare", ["nanogpt"]),
        ("Translating", ["decoding_speed"]),
        ("Translating as installed", ["engines_speed"]),
        ("Models of one stack", ["models_speed"]),
        ("Sampling", ["sampling_speed"]),
        ("Long sequences", ["attention"]),
        ("Recurrent models", ["recurrent_speed"]),
        ("Sentences of a hundred tokens", ["long_speed"]),
        ("Before the first update", ["preparing"]),
        ("Memory", ["memory"]),
        ("On an accelerator", ["accelerator-training_speed", "accelerator-translation_speed"]),
        ("Starting", ["startup"]),
        ("Pages", ["pages"]),
    ],
)
def test_a_section_names_its_processor_unless_it_is_the_page_s(title, names):
    text = " ".join(section(title).split())
    for machine in (kept(name)["machine"] for name in names):
        is_usual = machine["cpu"].startswith("AMD EPYC") and machine["cores"] == 2
        cores = {2: "two", 16: "16"}[machine["cores"]]
        assert (f"{cores} cores of an Intel Xeon" in text) is not is_usual
        assert is_usual or machine["cpu"].startswith("Intel(R) Xeon(R)")


def test_training_speeds_of_an_accelerator_are_those_measured():
    text = section("On an accelerator")
    told = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([\d,]+) \| (\d+) % \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    training = kept("accelerator-training_speed")["training"]
    assert told == [
        (
            name,
            row["name"],
            f"{row['tokens_per_second']:,.0f}",
            f"{100 * row['share_of_peak']:.0f}",
            f"{row['peak_gibibytes']:.1f}",
            f"{row['regardant_is_times_as_fast']:.2f}",
        )
        for name, measured in training.items()
        for row in measured["rows"]
    ]
    padding = {f"{1 - measured['data']['real_share_of_target']:.0%}" for measured in training.values()}
    assert padding == {"12%"} and "12 % of the target blocks are padding" in text


def test_ratios_of_long_sentences_are_those_measured():
    ratios = {}
    for case in kept("long_speed")["translation"]["cases"]:
        speeds = {(row["engine"], row["precision"]): row["tokens_per_second"] for row in case["rows"]}
        for engine in ("CTranslate2", "regardant exported"):
            own = speeds["regardant", "float32"] / speeds[engine, "float32"]
            ratios.setdefault(engine, []).append(f"{own:.2f}")
    first, second, third = ratios["CTranslate2"]
    assert f"{first}, {second} and {third} times the speed of CTranslate2 in float32. In batches of 32" in TEXT
    first, second, third = ratios["regardant exported"]
    assert f"beside them the three ratios are {first}, {second} and {third}" in TEXT


def test_translating_speeds_are_those_measured():
    number = r" ([\d.,]+) \|"
    told = re.findall(rf"^\| ([^|]+) \| (float32|bfloat16|int8) \|{number * 4}$", section("Translating"), re.MULTILINE)
    cases = [case["rows"] for case in kept("decoding_speed")["cases"]]
    assert told == [
        (rows[0]["engine"], rows[0]["precision"], *(f"{row['sentences_per_second']:,.0f}" for row in rows))
        for rows in zip(*cases, strict=True)
    ]


def test_the_best_of_each_engine_is_compared():
    cases = [case["rows"] for case in kept("decoding_speed")["cases"]]

    def fastest(rows, engine):
        return max(row["sentences_per_second"] for row in rows if row["engine"].removesuffix(" autocast") == engine)

    for ours in (REGARDANT, EXPORTED):
        for theirs in (TRANSFORMERS, CTRANSLATE2):
            ratios = (f"{fastest(rows, ours) / fastest(rows, theirs):.2f}" for rows in cases)
            assert f"| {ours} / {theirs} | {' | '.join(ratios)} |" in PAGE


def test_speeds_of_models_of_one_stack_are_those_measured():
    for model, found in kept("models_speed")["models"].items():
        best = best_over_others(found["targets_per_second"])
        for precision, speeds in found["targets_per_second"].items():
            assert f"| {model} | {precision} | {' | '.join(cells(speeds))} | {best:.2f} |" in PAGE


def test_preparing_takes_what_was_measured():
    result = kept("preparing")
    seconds = {library: median(one[library]["seconds"] for one in result["passes"]) for library in result["passes"][0]}
    assert f"takes {seconds['regardant']:.0f} seconds, `tokenizers` {seconds['tokenizers']:.0f}" in TEXT
    peak = max(one["regardant"]["peak_anonymous_bytes"] for one in result["passes"])
    few = result["quarter"]["peak_anonymous_bytes"]
    assert f"{peak / 1e6:.0f} MB for a million pairs, {few / 1e6:.0f} MB for a quarter" in TEXT


def test_quality_by_time_is_that_measured():
    names = {"Regardant": "Regardant", "transformers": "transformers' `Trainer`", "JoeyNMT": "JoeyNMT"}
    text = section("Quality by time")
    for one in kept("quality")["systems"]:
        name, processor = names[one["name"]], one["machine"]["cpu"].replace("(R)", "").replace(" Processor", "")
        scores = scores_of(one)
        cells = [f"{scores[budget]:.2f}" if budget in scores else "–" for budget in MINUTES]
        assert f"| {name} | {processor} | {' | '.join(cells)} |\n" in text
        for tried in one.get("candidates", ()):
            rate, tokens = tried["settings"]["learning_rate"], tried["settings"]["batch_tokens"]
            assert f"| {name} | {rate} | {tokens:,} | {tried['bleu']:.2f} |\n" in text


def test_bleu_of_recipes_has_its_verdict():
    judged = []
    for asked in (Asked(recipe, seed) for recipe in LEAST_BLEU for seed in (1, 2)):
        found = RESULTS / f"{asked.name}.json"
        judged += recipes.bars(asked, kept(asked.name)["scores"] if found.is_file() else {"bleu": None})
    assert "\n".join(markdown(judged)) in section("Quality by time")


def test_speeds_of_sampling_are_those_measured():
    for case, found in kept("sampling_speed")["tokens_per_second"].items():
        best = best_over_others(found)
        for precision, speeds in found.items():
            ours, theirs = speeds["regardant"], speeds["transformers"]
            assert f"| {case} | {precision} | {ours:,.0f} | {theirs:,.0f} | {best:.2f} |" in PAGE


def test_ratios_of_translating_are_of_float32_against_float32():
    rows = {
        (case["case"], row["engine"], row["precision"]): row["sentences_per_second"]
        for case in kept("decoding_speed")["cases"]
        for row in case["rows"]
    }

    def times(case, engine):
        return rows[case, "regardant", "float32"] / rows[case, engine, "float32"]

    cases = ("beam 5, batch 32", "greedy, batch 32", "beam 5, batch 1", "greedy, batch 1")
    beam, greedy, alone, greedy_alone = (times(case, "transformers") for case in cases)
    assert (
        f"In float32 Regardant is {beam:.2f} times as fast as `generate` of transformers with five beams, "
        f"{greedy:.2f} times greedily, {alone:.2f} times for one sentence at a time, and {greedy_alone:.2f} times for "
        "one greedily."
    ) in TEXT
    beside = times("beam 5, batch 32", "CTranslate2")
    assert f"{beside:.2f} times the speed of CTranslate2 in float32" in TEXT and beside < 1
    least = min(one["value"] for one in kept("decoding_speed")["bars"] if "exported" in one["bar"])
    assert f"An export reaches at least {least:.2f} of the speed of CTranslate2 used directly" in TEXT


def test_bleu_is_that_measured():
    bleu = kept("decoding_speed")["bleu"]
    assert (
        f"BLEU is {bleu['uncached']:.2f} with uncached search, {bleu['regardant, float32']:.2f} in float32 and "
        f"{bleu['regardant, bfloat16']:.2f} in bfloat16"
    ) in TEXT


def test_costs_of_attention_are_those_measured():
    digits = {
        "slope_of_time": 2,
        "slope_of_memory": 2,
        "times_faster_than_sdpa": 1,
        "times_the_memory_of_sdpa": 2,
        "error_on_random": 3,
        "error_on_trained": 3,
    }
    rows = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.count("|") == 8]
    measured = [
        [
            one["mechanism"] + ", causal" * one["causal"],
            *("–" if one.get(key) is None else f"{one[key]:.{number}f}" for key, number in digits.items()),
        ]
        for one in kept("attention")["mechanisms"]
    ]
    assert [row for row in rows if row[0] in {name for name, *_ in measured}] == measured


def test_tiny_shakespeare_takes_what_was_measured():
    told = re.findall(r"^\| ([^|]+) \| (\d+) \| ([\d.]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE)
    assert told == [
        (name, f"{run['seconds']:.0f}", f"{run['loss']:.3f}", f"{run['tokens_per_second']:,.0f}")
        for name, run in kept("nanogpt")["means"].items()
    ]
    alone = kept("nanogpt")["float32_products_alone"]
    assert (
        f"at the {alone['peak_gflops']:.0f} GFLOP/s that large ones reach, would train on "
        f"{alone['tokens_per_second']:,.0f} tokens a second, {alone['times_nanogpt']:.2f} times as many as nanoGPT"
    ) in TEXT
