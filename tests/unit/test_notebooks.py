"""What a notebook shows of runs, answers, pictures, measures and comparisons, by IPython's own formatter."""

import json
import shutil
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from IPython.core.formatters import DisplayFormatter

from regardant import run
from regardant.pictures.notebook import MOST_SHOWN, Answers
from regardant.tasks.base import Prediction

SENTENCE = "the cat sat on a mat ."


class Text(HTMLParser):
    """The text of an element, and the names of its elements."""

    def __init__(self, html):
        super().__init__()
        self.text, self.names = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def shown(thing, kind="text/html"):
    """What a notebook shows of it."""
    found, _ = DisplayFormatter().format(thing)
    return found[kind]


@pytest.fixture
def opened(tiny_run):
    return run.load(tiny_run)


def test_a_run_says_what_it_learned_how_well_and_how_to_go_on(opened):
    html = shown(opened)
    text = " ".join(Text(html).text)
    for part in ("translation", "encoder decoder", "parameters", "best ", "run.translate([text])", "run.inspect(item)"):
        assert part in text
    assert f"{opened.record.plan['parameters']:,}" in text
    assert "trained" not in vars(opened), "the model was opened"
    assert len(html) < 3000 and "iframe" not in html


def test_the_best_score_is_that_of_the_best_validation(tiny_run, tmp_path):
    shutil.copy(tiny_run / "run.yaml", tmp_path)
    validations = [{"bleu": bleu, "best_bleu": best} for bleu, best in ((12.5, 12.5), (90.25, 90.25), (50.0, None))]
    events = [{"event": "validation", "update": n, "time": 1.0, **one} for n, one in enumerate(validations, 1)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    assert "90.25 on validation data" in " ".join(Text(shown(run.load(tmp_path))).text)


def test_a_run_without_weights_says_so(tiny_run, tmp_path):
    shutil.copy(tiny_run / "run.yaml", tmp_path)
    text = " ".join(Text(shown(run.load(tmp_path))).text)
    assert "not validated yet" in text and "not possible yet" in text


def test_translations_stand_below_each_other_and_are_escaped(opened):
    found = opened.translate([SENTENCE, "the <script>alert(1)</script> cat"], beam_size=2, nbest=2)
    html = shown(found)
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert html.count("<table>") == 2 and html.count("next best") == 2
    assert found[0].text in "".join(Text(html).text)
    assert shown(found[0]) in html


def test_of_many_answers_the_first_are_shown():
    many = Answers(Prediction(f"item {number}", "<b>", {}) for number in range(MOST_SHOWN + 5))
    html = shown(many)
    assert html.count("<table>") == MOST_SHOWN and "and 5 more" in html and "<b>" not in html


def test_a_drawing_is_shown_as_a_picture_whose_rules_are_its_own(opened):
    drawing = shown(opened.inspect(SENTENCE).svg(layer=1), "image/svg+xml")
    root = ElementTree.fromstring(drawing)
    rules = root.find("{http://www.w3.org/2000/svg}style").text
    names = [line.strip() for line in rules.splitlines() if "{" in line and not line.startswith("@")]
    assert names and all(name.startswith(".drawing ") for name in names)
    assert not [one for one in root.iter() if one.get("id")], "two pictures of a notebook would share it"


def test_an_inspection_is_its_page_in_a_frame(opened):
    html = shown(opened.inspect(SENTENCE))
    assert Text(html).names == ["iframe"] and "<script" not in html


def test_an_inspection_without_attention_is_a_table_of_its_answer(trained_on_labels):
    run_of_labels = trained_on_labels("model={kind: recurrent}", "training.max_updates=5")
    found = run_of_labels.inspect("the <b>cat</b> sees the dog .")
    html = shown(found)
    read = Text(html)
    assert read.names.count("table") == 1 and "iframe" not in read.names and "<b>" not in html
    text = " ".join(read.text)
    assert found.item in text and found.answer in text and f"{found.shares[1][1]:.1%}" in text
    assert f"`records` has {len(found.records)} other places" in text


def test_measures_are_tables_of_which_the_first_is_open(opened):
    measures = opened.measure()
    html = shown(measures)
    tables = list(measures.tables())
    assert Text(html).names.count("table") == len(tables) and html.count("<details>") == len(tables) - 1
    assert measures.title() in html


def test_a_comparison_is_its_table(opened, tiny_run, tmp_path):
    first, other = (shutil.copytree(tiny_run, tmp_path / name) for name in ("first", "other"))
    for folder in (first, other):
        run.load(folder).evaluate()
    found = run.compare([first, other])
    text = " ".join(Text(shown(found)).text)
    assert "BLEU" in text and "first" in text and "other" in text and "paired bootstrap" in text
