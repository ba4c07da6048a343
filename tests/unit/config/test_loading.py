import copy
from typing import Annotated, Any, ClassVar, Literal, Self

import pytest
from pydantic import Field, model_validator

from regardant.config import Config, load
from regardant.errors import ConfigError


class Noam(Config):
    kind: Literal["noam"] = "noam"
    warmup_steps: int = Field(4000, gt=0)


class Cosine(Config):
    kind: Literal["cosine"] = "cosine"
    total_steps: int = 100_000
    floor: float = 0.0


class Model(Config):
    d_model: int = Field(512, gt=0)
    num_heads: int = Field(8, gt=0)
    norm: Literal["pre", "post"] = "pre"

    @model_validator(mode="after")
    def heads_divide_d_model(self) -> Self:
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model {self.d_model} is not a multiple of num_heads {self.num_heads}")
        return self


Schedule = Annotated[Noam | Cosine, Field(discriminator="kind")]


class Recipe(Config):
    model: Model = Model()
    schedule: Schedule = Cosine(floor=0.1)
    second_schedule: Schedule | None = None
    stages: tuple[Schedule, ...] = ()
    threads: int | Literal["auto"] = "auto"
    language: str = "en"
    evaluate: bool = False
    seed: int = 1


def lines_of(document: dict[str, Any], *overrides: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(Recipe, document, overrides, "demo")
    return [" ".join(line.split()) for line in str(caught.value).splitlines()]


def test_every_problem_stands_on_its_own_line_by_dotted_path():
    assert lines_of(
        {
            "model": {"d_modle": 3, "num_heads": 0, "norm": "middle"},
            "schedule": {"kind": "cosin"},
            "second_schedule": {"kind": "noam", "warmup_steps": -1},
            "stages": [{"kind": "cosine", "flor": 1}, {"warmup_steps": 1}, 7],
            "threads": "many",
            "sede": 1,
        }
    ) == [
        "demo: 10 problems",
        "model.num_heads given 0; must be greater than 0",
        "model.norm given 'middle'; allowed: pre, post",
        "model.d_modle unknown key; did you mean d_model? (allowed: d_model, num_heads, norm)",
        "schedule.kind given 'cosin'; allowed: noam, cosine; did you mean cosine?",
        "second_schedule.warmup_steps given -1; must be greater than 0",
        "stages.0.flor unknown key; did you mean floor? (allowed: kind, total_steps, floor)",
        "stages.1.kind missing; allowed: noam, cosine",
        "stages.2 given 7; must be a mapping of keys to values",
        "threads given 'many'; must be a valid integer, unable to parse string as an integer, or allowed: auto",
        "sede unknown key; did you mean seed? (allowed: model, schedule, second_schedule, stages, threads, "
        "language, evaluate, seed)",
    ]


def test_unions_of_sections_and_words_are_told_apart():
    class Mixed(Config):
        schedule: Schedule | Literal["none"] = "none"
        model: Model | int = 1
        names: str | list[str] = "all"

    document = {"schedule": {"kind": "noam", "warm": 1}, "model": {"d_modle": 1}, "names": [1]}
    with pytest.raises(ConfigError) as caught:
        load(Mixed, document)
    assert [line.split("  ")[1].strip() for line in str(caught.value).splitlines()[1:]] == [
        "schedule.warm",
        "schedule",
        "model.d_modle",
        "model",
        "names",
        "names.0",
    ]
    assert "unknown key (allowed: kind, warmup_steps)" in str(caught.value)
    assert "unknown key; did you mean d_model?" in str(caught.value)


def test_one_problem_is_one_line():
    assert lines_of({"model": {"num_heads": 0}}) == ["demo: model.num_heads: given 0; must be greater than 0"]


def test_a_required_key_left_out_is_named():
    class Required(Config):
        path: str

    with pytest.raises(ConfigError, match=r"^configuration: path: missing; it has no default$"):
        load(Required, {})


def test_a_validator_speaks_for_its_section():
    assert lines_of({"model": {"num_heads": 7}}) == ["demo: model: d_model 512 is not a multiple of num_heads 7"]


def test_a_validator_of_the_whole_speaks_without_a_path():
    with pytest.raises(ConfigError, match=r"^demo: d_model 512 is not"):
        load(Model, {"num_heads": 7}, origin="demo")


def test_problems_of_overrides_and_of_the_document_come_in_one_report():
    assert lines_of(
        {"model": {"norm": "middle"}, "stages": [{"kind": "noam"}]},
        "abc",
        "model..d_model=3",
        "model.d_modle=3",
        "modle.d_model=3",
        "seed.x=1",
        "stages.1.kind=noam",
        "threads=[1,",
    ) == [
        "demo: 8 problems",
        "abc malformed override; write key=value, as in model.d_model=256",
        "model..d_model=3 malformed override; write key=value, as in model.d_model=256",
        "threads given '[1,'; must be a YAML value",
        "seed.x cannot be set; 1 has no keys",
        "stages.1.kind cannot be set; 1 is not an index of this list of 1 (indices start at 0)",
        "model.norm given 'middle'; allowed: pre, post",
        "model.d_modle unknown key; did you mean d_model? (allowed: d_model, num_heads, norm)",
        "modle unknown key; did you mean model? (allowed: model, schedule, second_schedule, stages, threads, "
        "language, evaluate, seed)",
    ]


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("model.d_model=256", ["model", "d_model"], 256),
        ("schedule.floor=1e-4", ["schedule", "floor"], 1e-4),
        ("second_schedule=null", ["second_schedule"], None),
        ("second_schedule.kind=noam", ["second_schedule"], Noam()),
        ("stages=[{kind: noam}, {kind: cosine}]", ["stages"], (Noam(), Cosine())),
        ("stages.0.warmup_steps=5", ["stages"], (Noam(warmup_steps=5),)),
        ("language=no", ["language"], "no"),
        ("language=a=b", ["language"], "a=b"),
        ("evaluate=true", ["evaluate"], True),
        ("threads=2", ["threads"], 2),
    ],
)
def test_an_override_sets_its_key(override: str, path: list[str], value: object):
    document = {
        "second_schedule": {"kind": "cosine"},
        "stages": [{"kind": "noam"}],
    }
    found: Any = load(Recipe, document, [override])
    for key in path:
        found = getattr(found, key)
    assert found == value
    assert type(found) is type(value)


def test_overrides_leave_the_document_as_it_was():
    document = {"model": {"d_model": 8}}
    load(Recipe, document, ["model.d_model=16", "stages=[{kind: noam}]"])
    assert document == {"model": {"d_model": 8}}


def test_the_later_override_wins_and_the_more_specific_before_it():
    assert load(Recipe, {}, ["seed=2", "seed=3"]).seed == 3
    assert load(Recipe, {}, ["model.d_model=16", "model={d_model: 8}"]).model.d_model == 16


def test_an_override_below_a_section_left_out_keeps_the_rest_of_its_default():
    assert load(Recipe, {}, ["schedule.total_steps=10"]).schedule == Cosine(total_steps=10, floor=0.1)


@pytest.mark.parametrize("order", [1, -1])
def test_a_changed_kind_drops_the_old_kinds_keys_but_not_the_overrides(order: int):
    document = {"schedule": {"kind": "cosine", "total_steps": 10, "floor": 0.5}}
    overrides = ["schedule.kind=noam", "schedule.warmup_steps=7"][::order]
    assert load(Recipe, document, overrides).schedule == Noam(warmup_steps=7)


def test_a_kind_overridden_by_itself_drops_nothing():
    document = {"schedule": {"kind": "cosine", "total_steps": 10}}
    assert load(Recipe, document, ["schedule.kind=cosine"]).schedule == Cosine(total_steps=10)


def test_a_changed_kind_drops_the_default_of_a_section_left_out():
    assert load(Recipe, {}, ["schedule.kind=noam"]).schedule == Noam()


def test_a_changed_kind_with_a_key_of_the_old_kind_overridden_is_refused():
    [line] = lines_of({"schedule": {"kind": "cosine"}}, "schedule.kind=noam", "schedule.floor=1")
    assert line == "demo: schedule.floor: unknown key (allowed: kind, warmup_steps)"


class Stack(Config):
    num_layers: int = 1
    norm: str = "pre"


class Sized(Config):
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "small": {"d_model": 8, "encoder": {"num_layers": 2}},
        "large": {"d_model": 64, "encoder": {"num_layers": 6}},
    }

    preset: Literal["small", "large", "auto"] | None = None
    d_model: int = 1
    dropout: float = 0.1
    encoder: Stack = Stack()


def test_an_override_sets_no_other_field_of_a_section_left_out():
    config = load(Sized, {}, ["encoder.norm=post"])
    assert config.encoder.model_fields_set == {"norm"} and config.model_fields_set == {"encoder"}


class SizedRecipe(Config):
    model: Sized = Sized()


OWN_SIZES = {"model": {"d_model": 5, "dropout": 0.3, "encoder": {"num_layers": 3, "norm": "post"}}}


@pytest.mark.parametrize(
    ("overrides", "left"),
    [
        (["model.preset=large"], {"preset": "large", "dropout": 0.3, "encoder": {"norm": "post"}}),
        (["model.preset=auto"], {"preset": "auto", "dropout": 0.3, "encoder": {"norm": "post"}}),
        (["model.preset=null"], {"preset": None, **OWN_SIZES["model"]}),
        (
            ["model.encoder.num_layers=4", "model.d_model=7", "model.preset=large"],
            {"preset": "large", "d_model": 7, "dropout": 0.3, "encoder": {"num_layers": 4, "norm": "post"}},
        ),
    ],
)
def test_an_override_of_a_preset_goes_before_the_sizes_of_the_document_but_not_of_overrides(overrides, left):
    document = copy.deepcopy(OWN_SIZES)
    assert load(SizedRecipe, document, overrides).model_dump(exclude_unset=True) == {"model": left}
    assert document == OWN_SIZES


def test_sizes_of_a_document_stay_beside_its_own_preset():
    document = {"model": {"preset": "large", **OWN_SIZES["model"]}}
    assert load(SizedRecipe, document).model.d_model == 5
