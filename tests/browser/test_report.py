"""Pages of tables and charts in Chromium: what a comparison of runs looks like at three widths."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from regardant.pictures import Chapter, Curve, Estimate, Estimates, Table, interval_chart, line_chart, report_page

from .layout import faults

WIDTHS = (1400, 800, 390)
NAMES = ("baseline", "relative-position-bias-of-a-long-name")
SCORES = ((98.7, (98.4, 99.0)), (99.1, (98.9, 99.3)))


def comparison():
    scores = [Estimate(name, *one, number) for number, (name, one) in enumerate(zip(NAMES, SCORES, strict=True))]
    groups = [Estimates(f"BLEU of {part} sentences", scores) for part in ("all", "short", "long")]
    table = Table("BLEU", ["run", *"abcdefghijk"], [[name, *["98.7"] * 11] for name in NAMES])
    charts = [
        interval_chart(
            [Estimates(f"Difference from {NAMES[1]}", [Estimate(NAMES[0], -0.4, (-0.7, 0.05), 1)])],
            title="differences",
            axis_label="difference in BLEU",
            differences=True,
        ),
        interval_chart(groups, title="scores", axis_label="BLEU", highest=100),
        line_chart([Curve(name, [(1, 10), (9, 98)]) for name in NAMES], title="t", x_label="minutes", y_label="BLEU"),
    ]
    note = "BLEU nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    marks = [("significant", False), ("1 warning", True)]
    chapter = Chapter("Test set", [note], [table, *charts], folded=table, marks=marks)
    return report_page([chapter], title="2 runs compared")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_comparison_is_sound(open_page, width, scheme):
    opened = open_page(comparison(), color_scheme=scheme)
    opened.page.set_viewport_size({"width": width, "height": 900})
    assert faults(opened.page) == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(opened.page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
    opened.screenshot(f"report-{width}-{scheme}")


@pytest.mark.parametrize("width", WIDTHS)
def test_scores_that_differ_by_less_than_a_point_are_seen_to_differ(open_page, width):
    page = open_page(comparison()).page
    page.set_viewport_size({"width": width, "height": 900})
    chart = page.get_by_role("img", name="scores")
    boxes = [one.bounding_box() for one in chart.locator(".interval").all()[:2]]
    centres = [box["x"] + box["width"] / 2 for box in boxes]
    assert centres[1] - centres[0] > 0.2 * chart.bounding_box()["width"]
    ends = chart.get_by_text("the axis runs from 98 to 99.5")
    expect(ends).to_be_visible()
    within = chart.bounding_box()
    for box in (text.bounding_box() for text in chart.locator("text").all() if text.is_visible()):
        margin = 5  # the outline of letters counts
        assert within["x"] - margin <= box["x"]
        assert box["x"] + box["width"] <= within["x"] + within["width"] + margin


@pytest.mark.parametrize("width", WIDTHS)
def test_a_long_name_is_cut_on_a_phone_alone(open_page, width):
    page = open_page(comparison()).page
    page.set_viewport_size({"width": width, "height": 900})
    row = page.get_by_role("img", name="scores").locator("g").nth(1)
    (name,) = [text for text in row.locator("text").all() if text.is_visible() and "bias" in text.text_content()]
    shown = name.evaluate("(one) => one.lastChild.data")
    assert (shown == NAMES[1]) == (width > 600)
    assert shown == NAMES[1] or shown.endswith("…")


def test_marks_of_two_runs_differ_without_colour(open_page):
    page = open_page(comparison()).page
    rows = page.get_by_role("img", name="scores").locator("g").all()[:2]
    marks = [row.locator("path").first.get_attribute("d") for row in rows]
    assert marks[0] != marks[1]
