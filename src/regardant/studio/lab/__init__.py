"""Server side of the lab page: the lectures' claims, similarities of lines of text, SQL, and timings on this machine.

The page computes everything else itself (`static/lab/`).
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field, field_validator

from regardant.checks.verify import CHECKS
from regardant.checks.verify.check import Claim, named
from regardant.studio.lab.database import SCHEMA, STUDENTS, select
from regardant.studio.lab.search import MOST_LETTERS, MOST_LETTERS_OF_ALL, MOST_LINES, similarities
from regardant.studio.lab.timing import points

router = APIRouter(prefix="/api/lab")


class LineSearch(BaseModel):
    """Lines, and a query to compare with each of them."""

    lines: list[Annotated[str, Field(max_length=MOST_LETTERS)]] = Field(max_length=MOST_LINES)
    """Texts that are both keys and values."""

    query: str = Field(max_length=MOST_LETTERS)
    """Text to look for."""

    @field_validator("lines")
    @classmethod
    def lines_are_few_enough(cls, lines: list[str]) -> list[str]:
        if sum(map(len, lines)) > MOST_LETTERS_OF_ALL:
            raise ValueError(f"the lines have more than {MOST_LETTERS_OF_ALL:,} characters together: remove some")
        return lines

    by: Literal["words", "letters"] = "words"
    """Unit that is counted: words, or character n-grams, which tolerate spelling mistakes."""


class Query(BaseModel):
    """A query of the database of students."""

    sql: str = Field(max_length=MOST_LETTERS)
    """One SELECT."""


@router.get("/claims")
def claims() -> list[dict[str, Any]]:
    """Return the printed and the true values of the lectures' claims, as in `regardant verify`."""
    return [_claim_fields(check.claim) for check in CHECKS]


@router.post("/search")
def search(asked: LineSearch) -> dict[str, list[float]]:
    """Return the similarity of the query with each line, from 0 to 1."""
    return {"similarities": similarities(asked.query, asked.lines, asked.by)}


@router.get("/students")
def students() -> dict[str, Any]:
    """Return the whole database of the lecture, with its schema."""
    return {"schema": SCHEMA, "students": [student._asdict() for student in STUDENTS]}


@router.post("/sql")
def sql(asked: Query) -> dict[str, Any]:
    """Return the columns and rows that the SELECT finds."""
    return select(asked.sql)


@router.post("/measure")
def measure() -> list[dict[str, Any]]:
    """Return the seconds of each kind of layer by length on this machine. Takes some seconds."""
    return points()


def _claim_fields(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "title": claim.title,
        "source": claim.source,
        "lecture": {} if claim.lecture is None else dict(named(claim.lecture)),
        "true": dict(named(claim.true)),
        "verdict": claim.verdict,
        "note": claim.note,
    }
