import subprocess
import sys

import pytest

from regardant import tasks
from regardant.errors import ConfigError
from regardant.tasks.base import Task, TaskConfig


def test_every_task_is_found_by_the_name_that_its_recipes_give_it():
    for name in tasks.MODULES:
        task = tasks.task_named(name)
        assert task.name == name and issubclass(task.config, TaskConfig)
        assert task.config.model_fields["task"].default == name and task.config.metrics


def test_a_recipe_is_checked_by_its_own_task():
    with pytest.raises(ConfigError, match=r"r: tokenizer\.kind: .*allowed: character, byte"):
        tasks.load_recipe(
            {"task": "language_modelling", "data": {"source": "a"}, "training": {"max_updates": 1}},
            ["tokenizer.kind=bpe"],
            origin="r",
        )


@pytest.mark.parametrize(("task", "told"), [("translatoin", "; did you mean translation"), (3, ""), (["a"], "")])
def test_an_unknown_task_is_told_with_those_there_are(monkeypatch, task, told):
    monkeypatch.setattr(Task, "registered", {})  # tasks that other tests registered are not the package's
    with pytest.raises(ConfigError) as refusal:
        tasks.load_recipe({"task": task}, origin="r.yaml")
    assert str(refusal.value).startswith(
        f"r.yaml: task: given {task!r}; allowed: classification, forecasting, language_modelling, "
        f"masked_language_modelling, question_answering, sequence_to_sequence, tagging, translation{told}"
    )


def test_a_task_can_be_added_from_outside_under_a_name_of_its_own(monkeypatch):
    monkeypatch.setattr(Task, "registered", dict(Task.registered))

    class Mine(Task):
        name = "mine"

    assert isinstance(tasks.task_named("mine"), Mine)
    with pytest.raises(TypeError, match=r"task 'mine' is taken by .*Mine: choose another name"):

        class Other(Task):
            name = "mine"


def test_no_task_waits_for_the_libraries_of_another():
    program = (
        "import sys; from regardant.tasks import task_named; task_named('language_modelling');"
        "import regardant.tasks.language_modelling.language_model, regardant.run;"
        "print(*sorted({'sacrebleu', 'datasets', 'pyarrow', 'lightning_fabric'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == [], done.stderr
