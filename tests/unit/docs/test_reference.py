"""The generated reference has every verb and every configuration."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from docs.build import configuration, verbs
from regardant import cli
from regardant.config.base import Config, _literals
from regardant.tasks import MODULES
from regardant.training.config import TrainingConfig

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def pages():
    return configuration.pages()


def test_every_verb_has_its_help_with_all_options():
    parts = dict(re.findall(r"^## (\w+)\n\n```text\n(.*?)^```", verbs.page(), flags=re.MULTILINE | re.DOTALL))
    commands = typer.main.get_command(cli.app).commands
    assert parts.keys() == commands.keys()
    for verb, command in commands.items():
        assert parts[verb].startswith(f"Usage: regardant {verb} ")
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("--")]
        assert [option for option in options if option not in parts[verb]] == []


def test_every_kind_of_every_section_is_on_a_page(pages):
    shown = "\n".join(pages.values())
    kinds = [made for made in Config.made if _literals(made) and made.__module__.startswith("regardant.")]
    assert len(kinds) > 80
    assert [made for made in kinds if f"{{ #{configuration.anchor(made)} }}" not in shown] == []


def test_each_configuration_is_on_one_page_once(pages):
    anchors = [anchor for text in pages.values() for anchor in re.findall(r"\{ #(\S+) \}|<a id=\"(\S+)\">", text)]
    assert len(anchors) == len(set(anchors)) > 90


def test_links_between_the_pages_hold(pages):
    for text in pages.values():
        for name, anchor in re.findall(r"\]\((\w+)\.md#([\w.]+)\)", text):
            assert f"#{anchor} }}" in pages[name] or f'id="{anchor}"' in pages[name], (name, anchor)


def test_a_field_has_its_type_its_default_and_its_docstring(pages):
    help_text = TrainingConfig.model_fields["batch_tokens"].description
    assert f"| `batch_tokens` | `int` | `4096` | {help_text} |" in pages["training"]
    assert "| `patience` | `int | null` | `null` |" in pages["training"]


def test_a_field_has_the_name_that_recipes_call_it(pages):
    assert "| `from` |" in pages["training"] and "start_from" not in pages["training"]


def test_every_task_lists_its_own_sections(pages):
    parts = re.split(r"^## ", pages["recipe"], flags=re.MULTILINE)[1:]
    assert [part.split("\n")[0] for part in parts] == list(MODULES)
    assert all("| `training` | [section](training.md#" in part for part in parts)


def test_a_task_lists_no_kind_that_another_task_adds():
    code = "from docs.build import configuration; print(configuration.pages()['recipe'].split('## ')[1])"
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("classification") and "`moving_digits`" in shown
    assert "`digits_captions`" not in shown, "sequence_to_sequence adds it"
