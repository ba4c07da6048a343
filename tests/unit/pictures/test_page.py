import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant.pictures import AttentionPicture, attention_page

SOURCE = ["The", "agreement", "on", "the", "European", "Economic", "Area", "was", "signed", "in", "August", "1992", "."]
TARGET = [
    "L'",
    "accord",
    "sur",
    "la",
    "zone",
    "économique",
    "européenne",
    "a",
    "été",
    "signé",
    "en",
    "août",
    "1992",
    ".",
]
GOLD = {(0, 0), (1, 1), (2, 2), (3, 3), (6, 4), (5, 5), (4, 6)}
VOID = {"meta", "img", "link", "br", "input"}


class Page(HTMLParser):
    """Elements with their attributes, the text in each, and whether every one was closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def text_in(self, tag):
        return "".join(text for where, text in self.texts if where == tag)

    def scripts(self):
        kinds = [attributes.get("type") for tag, attributes in self.elements if tag == "script"]
        texts = [text for where, text in self.texts if where == "script"]
        return dict(zip(kinds, texts, strict=True))

    def records(self):
        return json.loads(self.scripts()["application/json"])


def softmax(num_layers, num_heads, rows, columns, seed=0):
    scores = np.exp(3 * np.random.default_rng(seed).normal(size=(num_layers, num_heads, rows, columns)))
    return scores / scores.sum(-1, keepdims=True)


def agreement(**more):
    weights = softmax(3, 4, len(TARGET), len(SOURCE))
    return AttentionPicture("Agreement", SOURCE, TARGET, weights, GOLD, **more)


def hostile(word):
    return AttentionPicture(word, [word, "a"], [word], softmax(1, 1, 1, 2), note=word)


def test_every_element_is_closed_in_order_and_the_numbers_stand_at_the_top():
    page = Page(attention_page([agreement()], title="Looking back", summary=[("BLEU", "41.3"), ("chrF", "63.0")]))
    assert page.open == []
    assert page.text_in("h1") == "Looking back"
    assert page.text_in("dt") == "BLEUchrF"
    assert page.text_in("dd") == "41.363.0"


def test_nothing_is_loaded_from_anywhere():
    text = attention_page([agreement()], title="x")
    assert set(re.findall(r"https?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}
    assert not [e for e in Page(text).elements if {"src", "href"} & e[1].keys()]
    assert not re.search(r"\bimport\b.*from|\bimport\(|\bfetch\(|url\(|@import|XMLHttpRequest", text)


def test_the_policy_allows_this_script_and_style_and_nothing_else():
    page = Page(attention_page([agreement()], title="x"))
    (policy,) = (a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")

    def sha256(text):
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    style, script = sha256(page.text_in("style")), sha256(page.scripts()["module"])
    assert policy == f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'"


@pytest.mark.parametrize(
    "word", ["</script>", "<img src=x onerror=alert(1)>", "<!--<script>", "</title><b>", "&lt;", "$data", "\ud800"]
)
def test_a_word_that_looks_like_markup_stays_text(word):
    page = Page(attention_page([hostile(word)], title=word, summary=[(word, word)]))
    harmless = Page(attention_page([hostile("word")], title="word", summary=[("word", "word")]))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in harmless.elements]
    shown = word.replace("\ud800", "?")  # half a surrogate pair cannot be written in a file
    assert page.text_in("title") == page.text_in("dt") == page.text_in("dd") == shown
    (record,) = page.records()
    assert (record["title"], record["note"], record["source"][0], record["target"][0]) == (word,) * 4


def test_no_script_writes_markup():
    script = Page(attention_page([agreement()], title="x")).scripts()["module"]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", script)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_weights_come_back_within_half_a_step(num_layers, num_heads, rows, columns, seed):
    weights = softmax(num_layers, num_heads, rows, columns, seed)
    picture = AttentionPicture("t", ["s"] * columns, ["t"] * rows, weights)
    (record,) = Page(attention_page([picture], title="x")).records()
    shape = (record["layers"], record["heads"], len(record["target"]), len(record["source"]))
    decoded = np.frombuffer(base64.b64decode(record["weights"]), dtype=np.uint8).reshape(shape) / 255
    assert np.abs(decoded - weights).max() <= 0.5 / 255 + 1e-12


def test_a_half_precision_row_a_little_over_one_does_not_wrap_to_zero():
    picture = AttentionPicture("t", ["s"], ["t"], np.full((1, 1, 1, 1), 1.004))
    (record,) = Page(attention_page([picture], title="x")).records()
    assert base64.b64decode(record["weights"]) == b"\xff"


def test_gold_links_and_the_words_are_in_the_data():
    gold = [(np.int64(source), np.int64(target)) for source, target in GOLD]
    picture = AttentionPicture("t", SOURCE, TARGET, softmax(1, 1, len(TARGET), len(SOURCE)), gold)
    (record,) = Page(attention_page([picture], title="x")).records()
    assert {tuple(link) for link in record["gold"]} == GOLD
    assert (record["source"], record["target"]) == (SOURCE, TARGET)


@pytest.mark.parametrize(("chosen", "shown"), [(None, [2, -1]), ((0, 0), [0, 0]), ((1, -1), [1, -1])])
def test_the_chosen_head_is_shown_first_else_the_last_layers_mean(chosen, shown):
    (record,) = Page(attention_page([agreement(chosen=chosen)], title="x")).records()
    assert record["chosen"] == shown


def test_two_sentences_of_three_layers_and_four_heads_stay_under_60_kilobytes():
    assert len(attention_page([agreement(), agreement()], title="x").encode()) < 60_000


def test_a_page_of_nothing_is_refused():
    with pytest.raises(ValueError, match="give at least one AttentionPicture"):
        attention_page([], title="x")
