import base64
import hashlib
import json
import re
import zlib
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regardant.pictures import AttentionPicture, attention_page, in_notebook

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
        self.open, self.elements, self.texts, self.by_id = [], [], [], {}
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
        if self.open and self.open[-1] == "script":
            attributes = self.elements[-1][1]
            name = attributes.get("id", attributes["type"])
            self.by_id[name] = self.by_id.get(name, "") + data

    def text_in(self, tag):
        return "".join(text for where, text in self.texts if where == tag)

    def records(self):
        return json.loads(self.by_id["sentences"])

    def weights(self, sentence, kind):
        """[L, H, T, S], as the page decodes them."""
        record = self.records()[sentence]["kinds"][kind]
        rows, columns = record["heads"] * len(record["target"]), len(record["source"])
        shape = (record["heads"], len(record["target"]), columns)
        found = []
        for layer in range(record["layers"]):
            content = zlib.decompress(base64.b64decode(self.by_id[f"weights-{sentence}-{kind}-{layer}"]))
            largest = np.frombuffer(content, "<f4", rows).astype(float)[:, None]
            fractions = np.frombuffer(content, np.uint8, offset=4 * rows).reshape(rows, columns)
            found.append((fractions / 255 * largest).reshape(shape))
        return np.stack(found)


def softmax(num_layers, num_heads, rows, columns, seed=0):
    scores = np.exp(3 * np.random.default_rng(seed).normal(size=(num_layers, num_heads, rows, columns)))
    return scores / scores.sum(-1, keepdims=True)


def agreement(**more):
    weights = softmax(3, 4, len(TARGET), len(SOURCE))
    return AttentionPicture("Agreement", SOURCE, TARGET, weights, GOLD, **more)


def hostile(word):
    units = {"source_units": [(word, 2)], "target_units": [(word, 1)]}
    return AttentionPicture(word, [word, "a"], [word], softmax(1, 1, 1, 2), note=word, kind=word, **units)


def test_every_element_is_closed_in_order_and_the_numbers_stand_at_the_top():
    page = Page(attention_page([[agreement()]], title="Looking back", summary=[("BLEU", "41.3"), ("chrF", "63.0")]))
    assert page.open == []
    assert page.text_in("h1") == "Looking back"
    assert page.text_in("dt") == "BLEUchrF"
    assert page.text_in("dd") == "41.363.0"


def test_nothing_is_loaded_from_anywhere():
    text = attention_page([[agreement()]], title="x")
    assert set(re.findall(r"https?://[^\"']*", text)) == {"http://www.w3.org/2000/svg"}
    assert not [e for e in Page(text).elements if {"src", "href"} & e[1].keys()]
    assert not re.search(r"\bimport\b.*from|\bimport\(|\bfetch\(|url\(|@import|XMLHttpRequest", text)


def test_the_policy_allows_this_script_and_style_and_nothing_else():
    page = Page(attention_page([[agreement()]], title="x"))
    (policy,) = (a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")

    def sha256(text):
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    style, script = sha256(page.text_in("style")), sha256(page.by_id["module"])
    allowed = f"style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:"
    assert policy == f"default-src 'none'; {allowed}"


@pytest.mark.parametrize(
    "word", ["</script>", "<img src=x onerror=alert(1)>", "<!--<script>", "</title><b>", "&lt;", "$data", "\ud800"]
)
def test_a_word_that_looks_like_markup_stays_text(word):
    page = Page(attention_page([[hostile(word)]], title=word, summary=[(word, word)]))
    harmless = Page(attention_page([[hostile("word")]], title="word", summary=[("word", "word")]))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in harmless.elements]
    shown = word.replace("\ud800", "?")  # half a surrogate pair cannot be written in a file
    assert page.text_in("title") == page.text_in("dt") == page.text_in("dd") == shown
    (record,) = page.records()
    (kind,) = record["kinds"]
    assert (record["title"], record["note"]) == (word,) * 2
    assert (kind["kind"], kind["source"][0], kind["target"][0]) == (word,) * 3
    assert (kind["sourceUnits"], kind["targetUnits"]) == ([[word, 2]], [[word, 1]])


def test_no_script_writes_markup():
    script = Page(attention_page([[agreement()]], title="x")).by_id["module"]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", script)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_weights_come_back_within_half_a_step(num_layers, num_heads, rows, columns, seed):
    weights = softmax(num_layers, num_heads, rows, columns, seed)
    picture = AttentionPicture("t", ["s"] * columns, ["t"] * rows, weights)
    decoded = Page(attention_page([[agreement(), picture]], title="x")).weights(0, 1)
    assert decoded.shape == weights.shape
    half_a_step = weights.max(-1, keepdims=True) * (0.5 / 255 + 1e-6)
    assert (np.abs(decoded - weights) <= half_a_step).all()


def test_even_rows_over_hundreds_of_keys_keep_their_differences_beside_a_row_on_one_key():
    keys = [f"key {number}" for number in range(600)]
    weights = np.random.default_rng(0).dirichlet(np.full(600, 50.0), (1, 1, 3))
    weights[0, 0, 0] = np.eye(600)[7]
    page = Page(attention_page([[AttentionPicture("t", keys, ["a", "b", "c"], weights)]], title="x"))
    decoded = page.weights(0, 0)
    np.testing.assert_array_equal(decoded[0, 0, 0], weights[0, 0, 0])
    np.testing.assert_allclose(decoded[0, 0, 1:], weights[0, 0, 1:], atol=0.003 * weights[0, 0, 1:].max())


def test_a_row_without_weights_stays_without():
    weights = np.array([[[[0.0, 0.0], [0.25, 0.75]]]])
    decoded = Page(attention_page([[AttentionPicture("t", ["a", "b"], ["c", "d"], weights)]], title="x")).weights(0, 0)
    np.testing.assert_allclose(decoded, weights, atol=0.75 * 0.5 / 255 + 1e-6)
    assert not decoded[0, 0, 0].any()


def test_a_half_precision_row_a_little_over_one_does_not_wrap_to_zero():
    picture = AttentionPicture("t", ["s"], ["t"], np.full((1, 1, 1, 1), 1.004))
    assert Page(attention_page([[picture]], title="x")).weights(0, 0) == [[[[1.0]]]]


def test_gold_links_and_the_words_are_in_the_data():
    gold = [(np.int64(source), np.int64(target)) for source, target in GOLD]
    picture = AttentionPicture("t", SOURCE, TARGET, softmax(1, 1, len(TARGET), len(SOURCE)), gold)
    ((kind,),) = (record["kinds"] for record in Page(attention_page([[picture]], title="x")).records())
    assert {tuple(link) for link in kind["gold"]} == GOLD
    assert (kind["source"], kind["target"]) == (SOURCE, TARGET)


@pytest.mark.parametrize(("chosen", "shown"), [(None, [1, 2, -1]), ((0, 0), [0, 0, 0]), ((1, -1), [0, 1, -1])])
def test_what_is_chosen_is_shown_first_else_the_mean_of_the_last_kind_s_last_layer(chosen, shown):
    pictures = [agreement(chosen=chosen, kind="Encoder self-attention"), agreement()]
    (record,) = Page(attention_page([pictures], title="x")).records()
    assert record["chosen"] == shown
    assert [kind["kind"] for kind in record["kinds"]] == ["Encoder self-attention", "Cross-attention"]


def test_a_remark_of_several_kinds_stands_once():
    pictures = [agreement(note="a"), agreement(note="b"), agreement(note="a"), agreement()]
    (record,) = Page(attention_page([pictures], title="x")).records()
    assert record["note"] == "a b"


def test_two_sentences_of_three_layers_and_four_heads_stay_under_60_kilobytes():
    assert len(attention_page([[agreement()], [agreement()]], title="x").encode()) < 60_000


def test_six_layers_eight_heads_three_kinds_and_sixty_tokens_stay_under_2_megabytes():
    tokens = [f"token{i}" for i in range(60)]
    kinds = [AttentionPicture("t", tokens, tokens, softmax(6, 8, 60, 60, seed)) for seed in range(3)]
    assert len(attention_page([kinds], title="x").encode()) < 2_000_000


def test_in_a_notebook_the_page_stands_in_a_frame_of_its_own():
    page = attention_page([[hostile("</script>\"'")]], title="x")
    ((tag, attributes),) = Page(in_notebook(page)).elements
    assert tag == "iframe" and attributes["srcdoc"] == page
    assert unescape(in_notebook(page)).count("<script") == page.count("<script")


@pytest.mark.parametrize("sentences", [[], [[]], [[agreement()], []]])
def test_a_page_of_nothing_is_refused(sentences):
    with pytest.raises(ValueError, match="give each sentence at least one AttentionPicture"):
        attention_page(sentences, title="x")
