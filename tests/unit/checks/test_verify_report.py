import base64
import hashlib
import json
import re
from dataclasses import replace

import pytest

from regardant.checks.verify import CHECKS, VerificationReport, verify
from regardant.checks.verify.check import Claim
from regardant.checks.verify.mechanisms import ours
from regardant.checks.verify.report import page, summary

KEYS = ["id", "title", "lecture", "true", "measured", "evidence", "note", "verdict", "ok"]
HOSTILE = "</h2><script>alert('x')</script>&$title"


@pytest.fixture(scope="module")
def report():
    return verify()


def one(true, measured, **more):
    claim = Claim(
        **{"id": "N-00", "title": "A title", "source": "s", "lecture": None, "verdict": "right", **more, "true": true}
    )
    return claim.measured(lambda: measured).run(ours)


def same_shape(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same_shape(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same_shape, a, b))
    return isinstance(b, int | float | str)


# --json


def test_json_is_one_object_and_nothing_else(regardant):
    said = regardant("verify", "--json")
    assert (said.code, len(said.lines), said.err) == (0, 1, "")
    content = json.loads(said.out, parse_constant=pytest.fail)
    assert content.keys() == {"checks"}
    assert len(content["checks"]) == 123
    assert all(list(check) == KEYS for check in content["checks"])
    assert all(check["ok"] is True for check in content["checks"])
    assert all(same_shape(check["true"], check["measured"]) for check in content["checks"])


def test_numbers_are_numbers_in_json(report):
    by_id = {check["id"]: check for check in report.as_dict()["checks"]}
    assert by_id["N-01"]["lecture"] == by_id["N-01"]["true"] == [0.3, 0.96, 0.1, 0.0, 0.3, 0.2]
    assert by_id["N-01"]["measured"] == pytest.approx(by_id["N-01"]["true"])
    assert by_id["N-03"]["lecture"]["output"] == [0.223, 0.135, 0.237, 0.574]
    assert by_id["N-03"]["measured"]["output"] == pytest.approx([0.221337, 0.133331, 0.233402, 0.575641], abs=1e-6)
    assert by_id["N-30"]["true"]["all embeddings tied"] == by_id["N-30"]["measured"]["all embeddings tied"] == 63082496
    assert by_id["N-42"]["true"] == [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert by_id["N-17"]["lecture"] is None
    assert by_id["N-22"]["true"]["largest difference"] == "<1e-5"


# the table


def test_the_table_has_a_line_a_claim_that_fits_120_columns(regardant):
    said = regardant("verify")
    assert said.code == 0
    assert said.lines[0].split() == ["id", "claim", "lecture", "true", "measured", "verdict", "ok"]
    rows = [line for line in said.lines if re.match(r"[NE]-\d\d  ", line)]
    assert [row[:4] for row in rows] == [check.claim.id for check in CHECKS]
    assert all(row.endswith("  ok") for row in rows)
    assert max(map(len, said.lines)) <= 120
    assert said.lines[-2] == "the values measured for 116 of 116 claims agree with the true ones"
    assert said.lines[-1] == "7 are decided by a source, which --page names"
    output = next(row for row in rows if row.startswith("N-03"))
    assert re.search(r"0\.223 0\.135.*…  0\.221337.*…  0\.221337.*…  wrong +ok$", output)


def test_what_does_not_agree_is_told_with_both_values_and_how_far_they_are_apart():
    failed = one({"good": "1", "bad": "1.00 2.00"}, {"good": 1, "bad": [1.0, 2.5]})
    lines = "\n".join(summary(VerificationReport([failed, one("1", 1)]))).splitlines()
    assert lines[2].endswith("  right       NO")
    assert lines[-5:] == [
        "the values measured for 1 of 2 claims agree with the true ones",
        "N-00  A title",
        "      bad: off by 0.5",
        "        true      1.00 2.00",
        "        measured  1.00 2.50",
    ]


def test_a_claim_that_does_not_agree_is_exit_code_1(regardant, monkeypatch):
    monkeypatch.setattr("regardant.checks.verify.CHECKS", [replace_check()])
    assert regardant("verify").code == 1
    said = regardant("verify", "--json")
    assert said.code == 1
    assert json.loads(said.out)["checks"][0]["ok"] is False


def replace_check():
    return Claim("N-00", "A title", "s", None, "1", "right").measured(lambda: 2)


# the page


def test_the_page_has_every_claim_with_all_its_figures_and_the_reason(report):
    text = page(report)
    assert text.count("<section>") == 123
    assert "Source: Bahdanau et al., https://arxiv.org/abs/1409.0473" in text
    assert "N-06 What “mostly animal” would need" in text
    assert "<td>0.2877 0.1151 0.2154 0.6005\n0.4458" in text
    assert "Computed from weights already rounded to two decimals" in text
    assert '<span class="mark is-bad">wrong</span>' in text
    assert "05 Attention and Transformers" in text


def test_the_page_asks_the_network_for_nothing(report):
    text = page(report)
    assert not re.search(r"\bsrc=|\bhref=|url\(|@import|<script|<link|<iframe|\bon\w+=", text)
    style = re.search(r"<style>(.*?)</style>", text, flags=re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"content=\"default-src 'none'; style-src 'sha256-{digest}'\"" in text


def test_text_on_the_page_is_never_markup():
    more = {"title": HOSTILE, "source": HOSTILE, "note": HOSTILE, "lecture": {HOSTILE: HOSTILE, "b": "1"}}
    checked = one({"a": "1", HOSTILE: HOSTILE.replace(" ", "")}, {"a": 1, HOSTILE: HOSTILE}, **more)
    text = page(replace(VerificationReport([checked]), mine=HOSTILE))
    assert "<script" not in text and "</h2><" not in text.replace("</h2><span", "").replace("</h2></div", "")
    assert text.count("&lt;/h2&gt;&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;$title") >= 8


def test_the_page_marks_what_does_not_agree():
    assert '<span class="mark is-bad">does not agree</span>' in page(VerificationReport([one("1", 2)]))


def test_the_page_is_written_beside_the_table_or_the_json(regardant, tmp_path, monkeypatch):
    monkeypatch.setattr("regardant.checks.verify.CHECKS", CHECKS[:3])
    for options, first in ((["--json"], '{"checks"'), ([], "id ")):
        said = regardant("verify", "--page", tmp_path / "a.html", *options)
        assert said.out.startswith(first)
        assert (tmp_path / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
        (tmp_path / "a.html").unlink()
