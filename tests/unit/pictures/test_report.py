import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from regardant.pictures import Bars, Chapter, Curve, Table, bar_chart, line_chart, report_page

VOID = {"meta"}


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

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def text_in(self, tag):
        return "".join(text for where, text in self.texts if where == tag)


def page(word="run"):
    table = Table(word, ["run", "BLEU"], [[word, "12.3"]])
    charts = [
        line_chart([Curve(word, [(1, 2), (3, 4)])], title=word, x_label="minutes", y_label=word),
        bar_chart([Bars(word, [(word, 12.3)])], title=word),
    ]
    chapter = Chapter(
        word,
        [word, ""],
        [table, *charts],
        folded=Table("folded", ["run"], [[word]]),
        marks=[("good", False), (word, True)],
    )
    return report_page([chapter], title=word, summary=[(word, word)])


def test_every_element_is_closed_in_order_and_parts_come_in_theirs():
    read = Page(page())
    assert read.open == []
    tags = [tag for tag, _ in read.elements if tag in {"h1", "h2", "table", "svg", "details"}]
    assert tags == ["h1", "h2", "table", "svg", "svg", "details", "table"]


def test_a_mark_that_warns_looks_otherwise_and_an_empty_note_takes_no_room():
    text = page()
    assert '<span class="mark">good</span><span class="mark is-bad">run</span>' in text
    assert text.count('<p class="note">') == 1


def test_a_table_of_words_wraps_them():
    assert '<table class="prose">' in Table("t", ["a"], [["b"]], prose=True).html()
    assert '<table class="prose">' not in page()


def test_nothing_is_loaded_and_nothing_can_run():
    text = page()
    assert not re.search(r"https?:|url\(|@import|<script|javascript:|\bon\w+=|\bstyle=", text)
    assert not [element for element in Page(text).elements if {"src", "href"} & element[1].keys()]


def test_the_policy_allows_the_page_s_rules_and_nothing_else():
    read = Page(page())
    (policy,) = (a["content"] for _, a in read.elements if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(read.text_in("style").encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'"


def test_colours_follow_light_and_dark():
    rules = Page(page()).text_in("style")
    assert "color-scheme: light dark" in rules
    series = re.findall(r"--series: ([^;]+);", rules)
    assert series and all(colour.startswith("light-dark(") for colour in series)


def luminance(colour):
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_hue_stands_out_from_paper_and_from_night():
    """WCAG 2.1, 1.4.11: three to one for what a picture is read by."""
    rules = Page(page()).text_in("style")
    (paper,) = re.findall(r"--paper: light-dark\((#\w+), (#\w+)\)", rules)
    for series in re.findall(r"--series: light-dark\((#\w+), (#\w+)\)", rules):
        for colour, ground in zip(series, paper, strict=True):
            dark, light = sorted((luminance(colour), luminance(ground)))
            assert (light + 0.05) / (dark + 0.05) >= 3, colour


@pytest.mark.parametrize(
    "word", ["</script>", "<img src=x onerror=alert(1)>", "</style><b>", "&lt;", "$note", "\ud800"]
)
def test_a_word_that_looks_like_markup_stays_text(word):
    read, harmless = Page(page(word)), Page(page())
    assert [tag for tag, _ in read.elements] == [tag for tag, _ in harmless.elements]
    shown = word.replace("\ud800", "?")  # half a surrogate pair cannot be written
    assert read.text_in("title").startswith(shown) and read.text_in("h1") == read.text_in("h2") == shown
    assert page(word).encode()
