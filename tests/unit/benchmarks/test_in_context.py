import json
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import torch

from benchmarks.in_context import PROMPTS, Prompt, accuracy, by_shots, of_a_rule, of_training, table
from benchmarks.records import RESULTS
from regardant.data.in_context import InContextConfig
from regardant.data.tokenizer_config import TokenizerConfig
from regardant.data.tokenizers import Tokenizer

CONFIG = InContextConfig()


class Reader:
    """A run that answers as a reader who copies the digit behind the same letter, or else says 0."""

    def __init__(self):
        self.config = SimpleNamespace(data=CONFIG)
        self.tokenizer = Tokenizer.train(TokenizerConfig(kind="character"), CONFIG.pieces(), 100)
        self.device = torch.device("cpu")
        self.trained = self.model = self

    def scores(self, text):
        rows = [self.tokenizer.decode(row) for row in text.tolist()]
        answers = [dict(tuple(one) for one in row.split(" ")[:-1]).get(row[-1], "0") for row in rows]
        ids = torch.tensor([self.tokenizer.encode(answer) for answer in answers])
        return torch.nn.functional.one_hot(ids, self.tokenizer.vocab_size).float()


@pytest.mark.parametrize("shots", [0, 1, 4])
def test_a_prompt_asks_for_the_digit_of_its_function(shots):
    random = Random(1)
    for _ in range(100):
        prompt = of_training(CONFIG, random, shots)
        *examples, asked = prompt.text.split(" ")
        assert len(examples) == shots and len(asked) == 1 and prompt.answer in "0123456789"
        assert prompt.known == (asked + prompt.answer in examples)
        assert prompt.known or not any(one[0] == asked for one in examples)


def test_the_letter_of_a_rule_is_none_of_its_examples():
    random = Random(1)
    for _ in range(100):
        prompt = of_a_rule(CONFIG, random, 4)
        *examples, asked = prompt.text.split(" ")
        (number,) = {(int(digit) - "abcde".index(letter)) % 10 for letter, digit in [*examples, asked + prompt.answer]}
        assert 0 <= number < 10 and asked not in {one[0] for one in examples} and not prompt.known


def test_the_share_of_right_answers_is_counted():
    prompts = [Prompt("a3 c7 a", "3", True), Prompt("a3 c7 c", "3", True), Prompt("a3 c7 b", "0", False)]
    assert accuracy(Reader(), prompts) == 2 / 3


def test_a_reader_who_copies_is_as_good_as_can_be_and_knows_no_rule():
    rows = by_shots(Reader())
    assert [row["shots"] for row in rows] == [0, 1, 2, 4, 8]
    for row in rows:
        assert row["accuracy"] == pytest.approx(row["best"], abs=0.03)
        assert row["best"] == pytest.approx(1 - 0.9 * 0.8 ** row["shots"], abs=0.04)
        assert row.get("rule", 0.1) == pytest.approx(0.1, abs=0.04)
    assert "rule" in rows[3] and "rule" not in rows[4] and PROMPTS == 1000
    assert table(rows).splitlines()[-1].startswith("| 8 | 0.8") and table(rows).endswith("| - |")


def test_the_page_on_prompting_has_the_table_that_was_measured():
    page = (Path(__file__).parents[3] / "docs" / "prompting.md").read_text(encoding="utf-8")
    kept = json.loads((RESULTS / "in-context-shots.json").read_text(encoding="utf-8"))
    assert table(kept["shots"]) in page and f"{kept['prompts']:,} prompts" in page
