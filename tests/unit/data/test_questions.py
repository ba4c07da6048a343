import csv
import gzip
import json
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regardant.data.questions import ContextQuestion, QuestionFilesConfig
from regardant.errors import DataError

ROWS = [
    {"question": "Who sees?", "context": "The cat sees the cat.", "answer": "cat", "at": 17},
    {"question": "Where, then?", "context": "The dog sleeps.", "answer": "", "at": None},
]
CAT = ContextQuestion("Who sees?", "The cat sees the cat.", ("cat",), 4)
SECOND = ContextQuestion("Who sees?", "The cat sees the cat.", ("cat",), 17)
NOTHING = ContextQuestion("Where, then?", "The dog sleeps.")


def written(folder, name, rows=ROWS):
    """Write rows as the file's name says; return the path."""
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ".jsonl" in name:
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if name.endswith(".tsv") else ",", lineterminator="\n")
            writer.writerow(rows[0])
            writer.writerows([["" if cell is None else cell for cell in row.values()] for row in rows])
    return path


def squad(folder, *qas, context="The cat sees the cat.", name="a.json"):
    document = {"version": "v2.0", "data": [{"title": "T", "paragraphs": [{"context": context, "qas": list(qas)}]}]}
    (folder / name).write_text(json.dumps(document, indent=1), encoding="utf-8")
    return folder / name


def items(path, **fields):
    return list(QuestionFilesConfig(source="", **fields).items(str(path)))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv", "a.tsv", "a.parquet"])
def test_questions_are_read_from_tables_of_all_kinds(tmp_path, name):
    path = written(tmp_path, name)
    assert items(path) == [CAT, NOTHING]
    assert items(path, start="at") == [SECOND, NOTHING]


def test_columns_may_be_numbers_and_nested(tmp_path):
    (tmp_path / "a.tsv").write_text("The dog sleeps.\tWho?\tdog\n", encoding="utf-8")
    (found,) = items(tmp_path / "a.tsv", question="2", context="1", answer="3")
    assert found == ContextQuestion("Who?", "The dog sleeps.", ("dog",), 4)
    (tmp_path / "a.json").write_text('{"q": {"text": "Who?"}, "c": "A dog.", "a": null}\n', encoding="utf-8")
    assert items(tmp_path / "a.json", question="q.text", context="c", answer="a") == [ContextQuestion("Who?", "A dog.")]


def test_the_format_of_squad_is_read(tmp_path):
    cats = [{"text": "cat", "answer_start": 17}]
    path = squad(
        tmp_path,
        {"id": "1", "question": "Who?", "answers": [{"text": "cat", "answer_start": 17}, {"text": "The cat"}]},
        {"id": "2", "question": "Where?", "is_impossible": True, "answers": [], "plausible_answers": cats},
        {"id": "3", "question": "When?", "is_impossible": False, "answers": []},
    )
    first, second, third = items(path)
    assert first == ContextQuestion("Who?", "The cat sees the cat.", ("cat", "The cat"), 17)
    assert (second.answers, third.answers) == ((), ())


def test_questions_of_one_context_are_in_one_split(tmp_path):
    random, texts = Random(1), [f"The cat sees dog {number}." for number in range(20)]
    rows = [{"question": f"Who {n}?", "context": text, "answer": "cat"} for n in range(3) for text in texts]
    random.shuffle(rows)
    path = written(tmp_path, "a.jsonl", rows)
    sets = QuestionFilesConfig(source=str(path), validation_share=0.25).read(1)
    contexts = {name: {one.context for one in found} for name, found in sets.items()}
    assert len(contexts["validation"]) == 5 and not contexts["train"] & contexts["validation"]
    assert {name: len(found) for name, found in sets.items()} == {"train": 45, "validation": 15}
    assert QuestionFilesConfig(source=str(path), validation_share=0.25).read(2) != sets


def test_lines_are_read_as_they_were_kept():
    for one in (SECOND, NOTHING, ContextQuestion("q\n", "é\u2028 c", ("é", "c"), 0)):
        line = one.to_json()
        assert "\n" not in line and ContextQuestion.from_json(line) == one


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            {"answer": "dog"},
            "line 2: the context has no 'dog' at character 17, where it has 'cat.': correct the answer",
        ),
        ({"answer": "dog", "at": None}, "line 2: the context has no 'dog': correct the answer"),
        ({"at": 3}, "line 2: the context has no 'cat' at character 3, where it has ' cat sees the cat.': correct"),
        ({"at": -3}, "line 2: the context has no 'cat' at character -3, where it has 'The cat"),
        ({"at": "x"}, "line 2: the answer starts at 'x': give the number of a character, from 0"),
        ({"question": " "}, "line 2 has a blank question: write one or leave the line out"),
        ({"context": ""}, "line 2 has a blank context: write one or leave the line out"),
        ({"context": None}, "line 2: a cell is missing: complete the line or leave it out"),
    ],
)
def test_a_row_that_cannot_be_right_is_named_by_its_line(tmp_path, row, told):
    path = written(tmp_path, "a.jsonl", [ROWS[1], {**ROWS[0], **row}])
    with pytest.raises(DataError) as refusal:
        items(path, start="at")
    assert told in str(refusal.value) and str(refusal.value).startswith(str(path))


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"id": "x7", "question": "Who?", "answers": [{"text": "dog", "answer_start": 4}]}, "question x7: the context"),
        ({"id": "x7", "answers": []}, "article 1 of `data` is not in SQuAD's format"),
        ({"id": "x7", "question": "Who?", "answers": [{"text": 3, "answer_start": 4}]}, "article 1 of `data` is not"),
        ("x7", "article 1 of `data` is not in SQuAD's format"),
    ],
)
def test_a_damaged_file_of_squad_s_format_is_named(tmp_path, question, told):
    with pytest.raises(DataError, match="(?s)a.json.*" + told):
        items(squad(tmp_path, question))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"question": "Who \ud83d?"}, r"question x7: the question has half of a surrogate pair, \\ud83d: write the"),
        ({"answers": [{"text": "cat\udd8a", "answer_start": 4}]}, r"question x7: an answer has half of a surrogate"),
        ({"context": "The \ud83d"}, r"question x7: the context has half of a surrogate pair"),
    ],
)
def test_half_a_character_is_one_line(tmp_path, fields, told):
    context = fields.get("context", "The cat sees the cat.")
    with pytest.raises(DataError, match=told):
        items(squad(tmp_path, {"id": "x7", "question": "Who?", "answers": [], **fields}, context=context))


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("Who?\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.txt is not a table: give a file that ends in \.tsv, \.csv, \.jsonl"):
        items(tmp_path / "a.txt")
    with pytest.raises(DataError, match=r"a\.jsonl has no column reply; it has question, context, answer, at"):
        items(written(tmp_path, "a.jsonl"), answer="reply")
