import json

import pytest

from benchmarks import headers, sst2, sst2_baseline
from benchmarks.bars import verdict
from benchmarks.records import RESULTS, ROOT
from regardant import config
from regardant.tasks import load_recipe


def results(**means):
    """Results of four models with these means, from three seeds."""
    names = dict(zip(("scratch", "lstm", "bag", "pretrained"), sst2.MODELS, strict=True))
    return {
        name: {
            "mean": means.get(key, 0.5),
            "runs": [
                {"scores": {"accuracy": means.get(key, 0.5) + step}, "parameters": 1000, "wall_seconds": 90.0}
                for step in (-0.01, 0.0, 0.01)
            ],
        }
        for key, name in names.items()
    }


def test_the_table_has_a_row_for_each_model_and_the_baseline():
    baseline = {"accuracy": 0.8, "features": 82_149, "seconds": 30.0}
    _, _, *rows = sst2.table(results(scratch=0.79), baseline)
    assert rows[0] == "| Transformer | 0.7900 | 0.7800, 0.7900, 0.8000 | 1,000 | 1.5 |"
    assert [row.split(" | ")[0] for row in rows[1:]] == [
        "| LSTM",
        "| bag of words",
        "| Transformer, pre-trained",
        "| TF-IDF, logistic regression",
    ]
    assert rows[-1].endswith("| 0.8000 | - | 82,149 | 0.5 |")


def test_the_page_has_the_table_that_was_measured():
    kept = json.loads((RESULTS / "sst2-classifiers.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "using.md").read_text(encoding="utf-8")
    assert "\n".join(sst2.table(kept["dev_accuracy"], kept["baseline"])) in page
    _, gain = kept["bars"]
    assert (
        f"Pre-training gains {gain['value']:.4f} of accuracy over training from scratch: the goal of 0.01 is " in page
    )
    assert ("**MISSED**" in page) == (verdict(gain) == "MISSED")


@pytest.mark.parametrize(
    ("scratch", "pretrained", "verdicts"),
    [(0.78, 0.79, ["pass", "pass"]), (0.7799, 0.79, ["MISSED", "pass"]), (0.78, 0.7899, ["pass", "MISSED"])],
)
def test_training_from_scratch_has_a_bar_and_pre_training_a_goal(scratch, pretrained, verdicts):
    bars = list(sst2.bars_of(results(scratch=scratch, pretrained=pretrained)))
    assert [verdict(one) for one in bars] == verdicts
    assert [one.get("goal", False) for one in bars] == [False, True]


def test_the_models_are_recipes_that_load():
    for name, (recipe, *options) in sst2.MODELS.items():
        loaded = load_recipe(config.recipe(recipe), [option for option in options if option != "--set"])
        assert loaded.task == "classification", name
        assert (loaded.training.parts is not None) == (name == sst2.PRETRAINED)


def test_pre_training_is_of_the_classifier_s_sizes():
    """Fine-tuned and trained from scratch, models are equal but for their first weights and vocabulary."""
    scratch, pretrained, masked = (
        load_recipe(config.recipe(name)) for name in ("sst2", "sst2-pretrained", "sst2-masked")
    )
    assert pretrained.model == scratch.model and pretrained.head == scratch.head
    assert masked.model.model_copy(update={"dropout": scratch.model.dropout, "tie_embeddings": False}) == scratch.model
    assert masked.input.tokenizer.vocab_size == scratch.input.tokenizer.vocab_size
    equal = {"start_from": None, "parts": None}
    assert pretrained.training.model_copy(update=equal) == scratch.training


def test_the_baseline_reads_texts_and_labels(tmp_path):
    (tmp_path / "dev.tsv").write_text("a good film\t1\n\nbad\t0\n", encoding="utf-8")
    assert sst2_baseline.read(tmp_path / "dev.tsv") == (["a good film", "bad"], ["1", "0"])


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"accuracy": 0.78913, "macro_f1": 0.7, "items": 871}, "accuracy 0.7891 of 871 items, seed 2"),
        (
            {"zero_shot_accuracy": 0.95833, "class_recall_at_1": 0.96111, "loss": 2.1, "first_items": 1360},
            "zero-shot accuracy 0.9583, recall@1 by class 0.9611 of 1,360 items, seed 2",
        ),
        ({"mse": 0.38031, "mae": 0.4, "loss": 0.4, "items": 2785}, "MSE 0.3803, MAE 0.4000 of 2,785 forecasts, seed 2"),
        (
            {"accuracy": 0.92581, "loss": 0.3, "words": 25149, "items": 2001},
            "accuracy 0.9258 of 25,149 words, seed 2",
        ),
        (
            {"loss": 3.5, "perplexity": 33.0, "accuracy": 0.31234, "tokens": 5000},
            "loss 3.500 nats per masked token, 31.2 % of them named",
        ),
    ],
)
def test_a_header_scores_what_the_task_is_judged_by(scores, said):
    assert headers.score_of({"recipe": "x", "seed": 2, "scores": scores}) == said
