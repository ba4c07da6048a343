"""The page of claims has a row for each, with what is measured beside what is true."""

import re

import pytest

from docs.build import claims
from regardant.checks.verify import CHECKS, VerificationReport, ours


@pytest.fixture(scope="module")
def few():
    return VerificationReport([check.run(ours) for check in CHECKS[:6]])


def test_every_claim_has_a_row_of_five_cells_below_its_lecture(few):
    rows = [line for line in claims.page(few).splitlines() if re.match(r"\| [A-Z]-\d\d ", line)]
    assert [row.split()[1] for row in rows] == [one.claim.id for one in few.checked]
    assert all(len(re.split(r"(?<!\\)\|", row)) == 7 for row in rows)
    assert claims.page(few).index(f"## {few.checked[0].claim.source}") < claims.page(few).index(rows[0])


def test_numbers_stand_in_their_cells_and_a_missing_one_is_a_dash(few):
    text = claims.page(few)
    assert "N-03" in text and "0.221337 0.133331 0.233402 0.575641" in text
    assert "the measured values of 6 of 6 claims agree with the true ones. " in text
    assert claims._cell(None) == "–" and claims._cell({"a": [[1, 2], [3, 4]]}) == "a: 1 2<br>3 4"


def test_a_claim_that_a_source_decides_is_not_counted_as_measured(few):
    cited = next(check.run(ours) for check in CHECKS if check.evidence)
    text = claims.page(VerificationReport([*few.checked, cited]))
    assert "of 6 of 6 claims agree with the true ones; 1 more is decided by a source. " in text
    row = next(line for line in text.splitlines() if line.startswith(f"| {cited.claim.id} "))
    assert "Source: Bahdanau et al., https://arxiv.org/abs/1409.0473" in row and "| cited |" in row
    assert "; 2 more are decided by a source. " in claims.page(VerificationReport([*few.checked, cited, cited]))
