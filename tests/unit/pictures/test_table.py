from xml.etree import ElementTree

import pytest

from regardant.pictures import Table

TABLE = Table("Two runs", ["run", "BLEU", "BLEU from\nthe first"], [["a", "9.10", "–"], ["longer", "12.34", "+3.24"]])


def test_lines_stand_in_columns_with_broken_heads_above_each_other():
    assert TABLE.lines() == [
        "Two runs",
        "               BLEU from",
        "run      BLEU  the first",
        "a        9.10          –",
        "longer  12.34      +3.24",
    ]


def test_a_screen_reader_finds_caption_heads_and_the_names_of_rows():
    root = ElementTree.fromstring(TABLE.html())
    table = root.find("table")
    assert (root.get("role"), root.get("tabindex"), root.get("aria-label")) == ("region", "0", "Two runs")
    assert table.findtext("caption") == "Two runs"
    assert [head.get("scope") for head in table.find("thead").iter("th")] == ["col"] * 3
    rows = list(table.find("tbody").iter("tr"))
    assert [[cell.tag for cell in row] for row in rows] == [["th", "td", "td"]] * 2
    assert [row.find("th").get("scope") for row in rows] == ["row"] * 2
    assert [[cell.text for cell in row] for row in rows] == [["a", "9.10", "–"], ["longer", "12.34", "+3.24"]]


def test_cells_are_text():
    root = ElementTree.fromstring(Table("<b>", ["<i>"], [["<script>&\"'"]]).html())
    assert not {element.tag for element in root.iter()} & {"b", "i", "script"}
    assert root.find(".//tbody/tr/th").text == "<script>&\"'"


def test_a_row_of_other_length_is_refused():
    with pytest.raises(ValueError, match=r"row \['b'\] has 1 cells under 2 heads; give one for each"):
        Table("", ["run", "BLEU"], [["a", "1"], ["b"]])
