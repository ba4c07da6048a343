"""The lecture's database of students, in memory and read-only, created anew for every query."""

import math
import sqlite3
from contextlib import closing
from typing import Any, NamedTuple

from regardant.errors import DataError

SCHEMA = "students (name TEXT, field TEXT, gpa REAL, research TEXT, skills TEXT)"


class Student(NamedTuple):
    """A row: name, field and gpa are the key, research and skills the value."""

    name: str
    field: str
    gpa: float
    research: str
    skills: str


STUDENTS = (
    Student("Alice", "CS", 3.9, "NLP", "PyTorch"),
    Student("Bob", "Math", 3.8, "Topology", "Proofs"),
    Student("Carol", "CS", 3.2, "Graphics", "OpenGL"),
    Student("Dave", "CS", 3.7, "ML", "TensorFlow"),
)

MOST_ROWS = 100
MOST_STEPS = 2_000_000
"""Most steps of SQLite's virtual machine, about a tenth of a second: a recursive query may never end."""
MOST_BYTES = 100_000
"""Most bytes of a value."""

ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


def select(sql: str) -> dict[str, Any]:
    """Return the columns and rows of one SELECT. Raises DataError with SQLite's message for any other text."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE {SCHEMA}")
        database.executemany("INSERT INTO students VALUES (?, ?, ?, ?, ?)", STUDENTS)
        database.commit()
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
        database.set_authorizer(_allow)
        database.set_progress_handler(lambda: True, MOST_STEPS)
        try:
            found = database.execute(sql)
            if found.description is None:
                raise DataError(f"{sql.strip()!r} is not a query: write one SELECT over {SCHEMA}")
            rows = [[_plain(value) for value in row] for row in found.fetchmany(MOST_ROWS)]
            return {"columns": [column[0] for column in found.description], "rows": rows}
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise DataError(f"SQLite: {error}. Write one SELECT over {SCHEMA}") from error


def _plain(value: Any) -> str | int | float | None:
    """Return a value as JSON can hold it: bytes as hexadecimal digits, infinity as a word."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _allow(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY
