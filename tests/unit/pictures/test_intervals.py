import re
from importlib.resources import files
from xml.etree import ElementTree

import pytest

from regardant.pictures import Estimate, Estimates, interval_chart
from regardant.pictures.intervals import MARKS


def chart(*rows, **more):
    given = {"title": "A title", "axis_label": "BLEU"} | more
    return ElementTree.fromstring(interval_chart([Estimates("all", rows)], **given))


def share(place):
    """Percentages of the width."""
    assert place.endswith("%")
    return float(place[:-1])


def lines(root, name):
    return [[share(line.get(end)) for end in ("x1", "x2")] for line in root.iter("line") if line.get("class") == name]


def dots(root):
    """Places of the dots in the chart, without the marks beside the names."""
    return [share(one.get("x")) for one in root.iter("svg") if "%" in one.get("x", "")]


def said(root):
    return ["".join(element.itertext()) for element in root.iter("text")]


NEAR = (Estimate("a", 99.1, (98.9, 99.3), 0), Estimate("b", 98.7, (98.5, 98.8), 1))


def test_scores_that_differ_a_little_stand_apart_on_an_axis_that_spans_their_intervals():
    root = chart(*NEAR)
    (a_low, a_high), (b_low, b_high) = lines(root, "interval")
    a, b = dots(root)
    assert b_low < b < b_high < a_low < a < a_high
    assert a - b > 20
    assert (a - b) / (a_high - b_low) == pytest.approx(0.4 / 0.8, abs=0.01)


def test_the_range_of_the_axis_is_written_and_holds_every_interval():
    root = chart(*NEAR)
    (ends,) = (text for text in said(root) if "axis" in text)
    low, high = map(float, re.findall(r"[\d.]+", ends))
    assert ends.startswith("BLEU; the axis runs from ") and 98 < low <= 98.5 and 99.3 <= high < 100
    places = [share(text.get("x")) for text in root.iter("text") if text.get("class") == "faint"][:-1]
    assert all(places[0] <= end <= places[-1] for line in lines(root, "interval") for end in line)


def test_numbers_stand_on_the_ticks_that_name_them():
    root = chart(Estimate("a", 98.0, (96.0, 100.0), 0), highest=100)
    ticks = {text.text: share(text.get("x")) for text in root.iter("text") if text.get("class") == "faint"}
    assert [dots(root), *lines(root, "interval")] == [[ticks["98"]], [ticks["96"], ticks["100"]]]


@pytest.mark.parametrize("value", [100.0, 100.00000000000004])
def test_no_axis_of_bleu_goes_beyond_100(value):
    for low in (97.0, value):
        root = chart(Estimate("a", value, (low, value), 0), highest=100)
        assert any(text.endswith(" to 100") for text in said(root))
        assert dots(root) == [pytest.approx(94, abs=0.01)]  # where the axis ends


def test_rows_differ_in_mark_and_colour_and_each_has_its_name_and_its_number():
    rows = [Estimate(f"run {number}", 10.0 + number, (9.0, 30.0), number) for number in range(12)]
    root = chart(*rows)
    groups = list(root.iter("g"))
    marks = [[path.get("d") for path in group.iter("path")] for group in groups]
    assert all(len(drawn) == 2 and drawn[0] == drawn[1] for drawn in marks)
    assert len({(group.get("class"), drawn[0]) for group, drawn in zip(groups, marks, strict=True)}) == 12
    assert len({drawn[0] for drawn in marks[: len(MARKS)]}) == len(MARKS)
    for row, group in zip(rows, groups, strict=True):
        assert said(group) == [row.name, "95 % interval 9.00 to 30.00", f"{row.value:.2f}"]
        assert group.findtext("title") == f"{row.name}: {row.value:.2f}, 95 % interval 9.00 to 30.00"


@pytest.mark.parametrize(
    ("length", "forms"), [(30, {}), (31, {"narrow": 30, "wide": 31}), (57, {"narrow": 30, "wide": 56})]
)
def test_a_long_name_has_a_cut_form_for_phones(length, forms):
    (row,) = chart(Estimate("n" * length, 1.0, (0.5, 1.5), 0)).iter("g")
    names = {text.get("class"): (text.findtext("title"), text) for text in row.iter("text") if text.get("x") == "18"}
    lengths = {form: len("".join(text.itertext())) - len(title or "") for form, (title, text) in names.items()}
    assert lengths == (forms or {None: length})


def test_a_run_keeps_its_look_where_the_first_is_missing():
    (alone,), (_, second) = chart(NEAR[1]).iter("g"), chart(*NEAR).iter("g")
    assert alone.get("class") == second.get("class") == "hue-1"


def test_differences_have_a_sign_and_an_axis_with_a_line_at_zero():
    root = chart(Estimate("b", 0.4, (0.1, 0.75), 1), axis_label="difference", differences=True)
    ((zero, end),) = lines(root, "zero")
    ((low, _),) = lines(root, "interval")
    assert zero == end < low
    assert {"95 % interval +0.10 to +0.75", "+0.40"} <= set(said(root))
    assert not lines(chart(*NEAR), "zero")


def test_rows_and_ticks_do_not_meet():
    root = chart(*NEAR)
    heights = [float(line.get("y1")) for line in root.iter("line") if line.get("class") == "interval"]
    bottom = max(float(line.get("y2")) for line in root.iter("line") if line.get("class") == "grid")
    ticks = [float(text.get("y")) for text in root.iter("text") if text.get("class") == "faint"]
    assert heights[1] - heights[0] >= 30 and heights[1] < bottom < min(ticks)
    assert max(ticks) < float(root.get("height"))


def test_the_rules_of_the_page_draw_intervals_and_the_line_at_zero():
    rules = (files("regardant.pictures") / "assets" / "chart.css").read_text(encoding="utf-8")
    for name in (".interval", ".zero", ".fluid", ".bounds"):
        assert f"{name} {{" in rules


@pytest.mark.parametrize("word", ["</svg>", "<img onerror=x>", "&\"'", "\x00\x1b", "\ud800", "猫"])
def test_any_name_leaves_an_element_that_parses_and_can_be_written(word):
    drawn = interval_chart(
        [Estimates(word, [Estimate(word, 1.0, (0.5, 1.5), 0)])], title=word, axis_label=word, decimals=1
    )
    root = ElementTree.fromstring(drawn.encode())
    shown = re.sub("[\x00\x1b\ud800]", "\ufffd", word)
    assert root.get("aria-label") == shown and shown in said(root)


def test_a_chart_of_no_estimates_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        interval_chart([Estimates("a", [])], title="", axis_label="")
