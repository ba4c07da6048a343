import re
from importlib.resources import files
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regardant.pictures import Bars, Curve, alone, bar_chart, line_chart
from regardant.pictures.charts import DASHES, HUES, LINE, WIDTH, kept_apart, round_ticks

NUMBERS = st.integers(-(10**6), 10**6).map(lambda thousandths: thousandths / 1000)


def chart(*curves):
    return ElementTree.fromstring(line_chart(curves, title="A title", x_label="minutes", y_label="BLEU"))


def by_class(root, name):
    return [element for element in root.iter() if name in (element.get("class") or "").split()]


def numbers(element, *names):
    return [float(element.get(name)) for name in names]


def texts(root, name=None):
    found = [element for element in root.iter("text") if name is None or element.get("class") == name]
    return {"".join(element.itertext()): element for element in found}


def test_a_band_spans_the_least_and_the_largest_of_each_point():
    bare = [Curve("a", [(0, 1.0), (10, 2.0)])]
    banded = chart(Curve("a", [(0, 1.0), (10, 2.0)], [(0.0, 1.5), (1.0, 4.0)]))
    (path,) = by_class(banded, "band")
    corners = [tuple(map(float, one.split())) for one in path.get("d").strip("MZ").split(" L")]
    centres = [numbers(point, "cx", "cy") for point in by_class(banded, "point")]
    assert [x for x, _ in corners] == [centres[0][0], centres[1][0], centres[1][0], centres[0][0]]
    unit = centres[0][1] - centres[1][1]  # pixels for a difference of 1
    for (_, y), number in zip(corners, (0.0, 1.0, 4.0, 1.5), strict=True):
        assert y == pytest.approx(centres[0][1] + unit * (1.0 - number), abs=0.2)
    assert not by_class(chart(*bare), "band")


def test_a_range_lies_over_the_end_of_its_bar():
    drawn = bar_chart([Bars("h", [("a", 2.0), ("b", 1.0)], [(1.0, 4.0), (1.0, 1.0)])], title="t")
    root = ElementTree.fromstring(drawn)
    (a, b), (spread,) = by_class(root, "bar"), by_class(root, "spread")  # b has none
    low, high = (float(one) for one in re.match(r"M([\d.]+) [\d.]+H([\d.]+)$", spread.get("d")).groups())
    start, unit = float(a.get("x")), float(b.get("width"))
    assert (low - start, high - start) == pytest.approx((unit, 4 * unit), abs=0.2)


@given(NUMBERS, NUMBERS)
def test_ticks_are_few_even_and_hold_both_ends(one, other):
    low, high = sorted((one, other))
    ticks = round_ticks(low, high)
    steps = [after - before for before, after in pairwise(ticks)]
    slack = 1e-9 * max(1, abs(low), abs(high))
    assert 2 <= len(ticks) <= 10
    assert ticks[0] <= low + slack and high - slack <= ticks[-1]
    assert min(steps) > 0
    assert max(steps) - min(steps) <= slack


@given(NUMBERS, NUMBERS)
def test_fewer_ticks_can_be_asked_for(one, other):
    low, high = sorted((one, other))
    ticks = round_ticks(low, high, 4)
    slack = 1e-9 * max(1, abs(low), abs(high))
    assert 2 <= len(ticks) <= 7 and ticks[0] <= low + slack and high - slack <= ticks[-1]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 10, [0, 2, 4, 6, 8, 10]), (0, 37.8, [0, 10, 20, 30, 40]), (1.67, 5.1, [1, 2, 3, 4, 5, 6]), (0, 0, [0, 0.2])],
)
def test_ticks_are_round(low, high, expected):
    assert round_ticks(low, high) == pytest.approx(expected)


@given(st.lists(st.floats(0, 300), min_size=1, max_size=14))
def test_names_stand_a_line_apart_in_the_order_of_their_curves(wanted):
    placed = kept_apart(wanted, 0, 300)
    order = sorted(range(len(wanted)), key=wanted.__getitem__)
    in_order = [placed[index] for index in order]
    assert all(after - before >= LINE - 1e-6 for before, after in pairwise(in_order))
    assert min(placed) >= -1e-6 and max(placed) <= 300 + 1e-6


def test_names_with_room_stay_where_their_curves_end():
    assert kept_apart([10, 200, 100], 0, 300) == [10, 200, 100]


def test_a_point_stands_at_the_height_of_its_number_and_further_right_the_later_it_is():
    root = chart(Curve("a", [(0, 1), (4, 20), (8, 40)]), Curve("b", [(4, 10)]))
    points = [numbers(point, "cx", "cy") for point in by_class(root, "point")]
    ticks = {text: numbers(element, "x", "y") for text, element in texts(root, "faint").items()}
    assert points[1] == [ticks["4"][0], ticks["20"][1]]
    assert points[2][1] == ticks["40"][1] < points[3][1] == ticks["10"][1] < points[0][1]
    assert points[3][0] == points[1][0]
    assert points[2][0] - points[1][0] == pytest.approx(points[1][0] - points[0][0], abs=0.2)
    assert by_class(root, "point")[1].findtext("title") == "a: 20 at 4"


def test_an_axis_that_does_not_begin_at_zero_begins_near_the_smallest_x():
    points = [(15.05, 0.5), (15.95, 0.4)]
    drawn = line_chart([Curve("a", points)], title="t", x_label="x", y_label="y", from_zero=False)
    root = ElementTree.fromstring(drawn)
    assert {"15", "16"} <= texts(root, "faint").keys() and "0" not in texts(root, "faint")
    (first, _), (last, _) = (numbers(point, "cx", "cy") for point in by_class(root, "point"))
    assert last - first > WIDTH / 2
    below = line_chart([Curve("a", [(-2.0, 1), (1.0, 2)])], title="t", x_label="x", y_label="y", from_zero=False)
    assert numbers(by_class(ElementTree.fromstring(below), "point")[0], "cx")[0] > 0


def test_eighteen_curves_differ_in_hue_or_dashes_and_each_has_its_name_at_its_end():
    curves = [Curve(f"run {number}", [(1, number), (2, 3)]) for number in range(HUES * DASHES)]
    root = chart(*curves)
    groups = [group for group in root.iter("g")]
    assert len({group.get("class") for group in groups}) == len(curves)
    assert ["".join(group.find("text").itertext()) for group in groups] == [curve.name for curve in curves]
    heights = sorted(float(group.find("text").get("y")) for group in groups)
    assert all(after - before >= LINE - 0.2 for before, after in pairwise(heights))
    assert heights[-1] < float(root.get("height"))


def test_the_page_s_rules_know_every_hue_and_every_dash():
    rules = (files("regardant.pictures") / "assets" / "chart.css").read_text(encoding="utf-8")
    assert {int(number) for number in re.findall(r"\.hue-(\d+)", rules)} == set(range(HUES))
    assert {int(number) for number in re.findall(r"\.dash-(\d+)", rules)} == set(range(1, DASHES))


def test_everything_lies_in_the_picture():
    root = chart(Curve("a name of many letters and then some more", [(0.5, 1.2), (30, 7.9)]), Curve("b", [(1, 5)]))
    height = float(root.get("height"))
    for element in root.iter():
        for name, end in (("x", WIDTH), ("cx", WIDTH), ("x2", WIDTH), ("y", height), ("cy", height), ("y2", height)):
            assert 0 <= float(element.get(name, 0)) <= end
    assert any(text.endswith("…") for text in texts(root))


def test_bars_are_as_long_as_their_numbers_and_say_them():
    groups = [Bars("1-4 words", [("a", 10.0), ("b", 20.1)]), Bars("5-9 words", [("a", 0.0), ("b", 0.1234)])]
    root = ElementTree.fromstring(bar_chart(groups, title="BLEU"))
    widths = [float(bar.get("width")) for bar in by_class(root, "bar")]
    assert widths[1] > 100
    assert [width / widths[1] for width in widths] == pytest.approx([10 / 20.1, 1, 0, 0.1234 / 20.1], abs=1e-3)
    tops = [float(bar.get("y")) for bar in by_class(root, "bar")]
    assert tops == sorted(tops)
    said = ["".join(element.itertext()) for element in root.iter("text")]
    assert said == ["1-4 words", "a", "10", "b", "20.1", "5-9 words", "a", "0", "b", "0.123"]
    assert all(
        float(bar.get("y")) + float(bar.get("height")) < float(root.get("height")) for bar in by_class(root, "bar")
    )


@pytest.mark.parametrize("word", ["</svg>", "<img onerror=x>", "&\"'", "\x00\x1b", "\ud800", "猫"])
def test_any_name_leaves_an_element_that_parses_and_can_be_written(word):
    for drawn in (
        line_chart([Curve(word, [(1, 1)])], title=word, x_label=word, y_label=word),
        bar_chart([Bars(word, [(word, 1)])], title=word),
    ):
        root = ElementTree.fromstring(drawn.encode())
        assert root.get("role") == "img"
        shown = re.sub("[\x00\x1b\ud800]", "\ufffd", word)
        assert root.get("aria-label") == shown
        assert shown in texts(root)


@pytest.mark.parametrize("curves", [[], [Curve("a", [(1, 1)]), Curve("b", [])]])
def test_a_chart_of_no_points_is_refused(curves):
    with pytest.raises(ValueError, match="at least one curve, and each curve at least one point"):
        line_chart(curves, title="", x_label="", y_label="")


def test_a_chart_of_no_bars_is_refused():
    with pytest.raises(ValueError, match="give at least one"):
        bar_chart([Bars("a", [])], title="")


def test_a_chart_of_its_own_is_an_svg_file_with_its_rules():
    drawn = line_chart([Curve("one", [(0, 1), (1, 2)])], title="A <title>", x_label="x", y_label="y")
    root = ElementTree.fromstring(alone(drawn))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    (style,) = root.iter("{http://www.w3.org/2000/svg}style")
    assert ".curve" in style.text and "--" in style.text
