import math
import time

import pytest
from fastapi.testclient import TestClient

from regardant.errors import DataError
from regardant.studio.app import make_app
from regardant.studio.lab import timing
from regardant.studio.lab.database import STUDENTS, select
from regardant.studio.lab.search import letters, similarities, words


@pytest.fixture(scope="module")
def client():
    return TestClient(make_app([]), base_url="http://127.0.0.1")


def test_the_claims_are_those_of_verify(client):
    told = {claim["id"]: claim for claim in client.get("/api/lab/claims").json()}
    assert {f"N-{number:02}" for number in range(1, 22)} <= set(told)
    assert told["N-02"]["true"]["their sum"] == "7.096185"
    assert told["N-02"]["lecture"]["their sum"] == "7.10"
    assert told["N-01"]["true"] == {"": "0.30 0.96 0.10 0.00 0.30 0.20"}
    assert told["N-17"]["lecture"] == {}
    assert told["N-07"]["verdict"] == "wrong"


def test_a_line_is_as_like_itself_as_can_be_and_unlike_what_shares_nothing():
    lines = ["the cat sat on the mat", "stock markets fell", ""]
    for by in ("words", "letters"):
        found = similarities(lines[0], lines, by)
        assert found[0] == pytest.approx(1.0)
        assert found[2] == 0.0
    assert similarities(lines[0], lines, "words")[1] == 0.0


def test_similarity_is_the_cosine_of_counts_weighed_by_rarity():
    """Two lines; "cat" is in one, "the" in both."""
    rare, common = 1 + math.log(3 / 2), 1 + math.log(3 / 3)
    of_line = [2 * common, rare]  # the the cat
    expected = rare * rare / (rare * math.hypot(*of_line))
    assert similarities("cat", ["the the cat", "the"], "words")[0] == pytest.approx(expected)


def test_a_rare_word_counts_more_than_a_common_one():
    lines = ["a cat", "a dog", "a bird", "a zebra"]
    found = similarities("a zebra", lines, "words")
    assert found[3] > 3 * found[0] > 0


def test_letters_forgive_a_slip_that_words_do_not():
    lines = ["attention mixes values", "the river bank"]
    assert similarities("atention", lines, "words") == [0.0, 0.0]
    found = similarities("atention", lines, "letters")
    assert found[0] > 0.3 > 2 * found[1]


def test_words_are_counted_in_small_letters_and_stretches_with_their_ends():
    assert words("The cat, the CAT!") == {"the": 2, "cat": 2}
    assert sum(letters("at").values()) == 3 + 2 + 1  # ^a at t$, ^at at$, ^at$
    assert (letters("at") & letters("cats")).total() == 1  # at, and neither of its ends


def test_sql_selects_what_the_lecture_says(client):
    asked = {"sql": "SELECT name FROM students WHERE field = 'CS' AND gpa > 3.5"}
    assert client.post("/api/lab/sql", json=asked).json() == {"columns": ["name"], "rows": [["Alice"], ["Dave"]]}
    assert [one["name"] for one in client.get("/api/lab/students").json()["students"]] == [s.name for s in STUDENTS]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE students",
        "INSERT INTO students VALUES ('Eve', 'CS', 4.0, '', '')",
        "ATTACH DATABASE '/tmp/x.db' AS x",
        "PRAGMA table_info(students)",
        "SELECT 1; SELECT 2",
        "SELECT nothing FROM students",
        "SELECT load_extension('x')",
        "not SQL at all",
        "",
        "-- a comment",
        "SELECT '\x00'",
    ],
)
def test_other_sql_is_refused_in_one_line(sql, client):
    answer = client.post("/api/lab/sql", json={"sql": sql})
    assert answer.status_code == 422
    assert "SELECT" in answer.json()["detail"] and "\n" not in answer.json()["detail"]


def test_a_question_without_end_or_bounds_is_cut_off():
    start = time.process_time()
    with pytest.raises(DataError, match="interrupted"):
        select("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n")
    with pytest.raises(DataError, match="too big"):
        select("SELECT zeroblob(1000000000)")
    rows = select("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")["rows"]
    assert len(rows) == 100
    assert time.process_time() - start < 5


def test_what_json_cannot_say_is_said_in_words():
    assert select("SELECT x'ff00', 9e999, -9e999, NULL, 0.5")["rows"] == [["ff00", "inf", "-inf", None, 0.5]]


def test_too_many_lines_are_refused(client):
    answer = client.post("/api/lab/search", json={"lines": [""] * 5001, "query": "x"})
    assert answer.status_code == 422
    assert "5000" in answer.json()["detail"]


def test_every_kind_of_layer_is_timed_by_length(client, monkeypatch):
    monkeypatch.setattr(timing, "LENGTHS", (8, 16))
    monkeypatch.setattr(timing, "PATIENCE", math.inf)
    found = client.post("/api/lab/measure").json()
    assert [(one["kind"], one["n"]) for one in found] == [(kind, n) for kind in timing.KINDS for n in (8, 16)]
    assert all(one["seconds"] > 0 for one in found)


def test_what_takes_too_long_is_not_asked_for_more(monkeypatch):
    monkeypatch.setattr(timing, "LENGTHS", (8, 16, 32))
    monkeypatch.setattr(timing, "PATIENCE", 0.0)
    assert [one["n"] for one in timing.points()] == [8] * len(timing.KINDS)
