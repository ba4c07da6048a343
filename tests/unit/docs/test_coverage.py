import pytest

from docs.build import coverage


def test_every_row_names_a_command_and_a_test_that_exist():
    assert coverage.faults() == []


def test_a_text_that_is_cut_at_a_comma_is_a_fault(monkeypatch):
    row = {"what": "queries", "keys and values": None, "show": "make demo"}
    row["test"] = "tests/unit/docs/test_coverage.py::test_ranges_are_a_row_for_each_id"
    monkeypatch.setattr(coverage, "sections", lambda: {"Attention": {"A-01": row}})
    assert coverage.faults()[0] == "A-01: keys and values: no field of a row; quote a text with a comma"


def test_the_page_is_that_of_the_list():
    assert coverage.PAGE.read_text(encoding="utf-8") == coverage.page()


def test_ranges_are_a_row_for_each_id():
    rows = coverage.sections()
    assert list(rows["Numbers"]) == [f"N-{number:02}" for number in range(1, 65)]
    assert list(rows["Statements"]) == [f"E-{number:02}" for number in range(1, 60)]
    assert rows["Statements"]["E-52"]["what"] == "What a GRU merges"


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("regardant fly RUN", "regardant fly RUN: no verb fly"),
        ("regardant inspect RUN --wings", "regardant inspect RUN --wings: no option --wings"),
        ("regardant train flight", "no recipe flight"),
        ("regardant train reverse --set model.wings=2", "model.wings"),
        ("make flight", "no target flight in the Makefile"),
        ("make experiments EXPERIMENT=flight", "no experiment flight"),
        ("regardant studio # Lab: wings", "no bench wings in the lab"),
        ("regardant studio # Wings", "no page Wings in the studio"),
        ("fly", "fly: neither regardant nor make nor an import"),
        ("from regardant.inspection import wings", "no wings in regardant.inspection"),
    ],
)
def test_a_command_that_cannot_be_given_is_a_fault(command, fault):
    assert fault in coverage.command_fault(command)


def test_a_test_that_does_not_exist_is_a_fault():
    assert coverage.test_fault("tests/unit/docs/no.py::test_a") == "no file tests/unit/docs/no.py"
    here = "tests/unit/docs/test_coverage.py"
    assert coverage.test_fault(f"{here}::test_ranges") == f"no test {here}::test_ranges"
    assert coverage.test_fault(f"{here}::test_ranges_are_a_row_for_each_id") is None


def test_a_claim_in_no_row_is_a_fault(monkeypatch):
    monkeypatch.setattr(coverage, "sections", dict)
    assert "E-01: a claim of verify that is in no row" in coverage.faults()
