"""Questions, each with the text that may answer it: from tables, and from files in the format of SQuAD.

SQuAD 2.0: Rajpurkar et al. 2018, "Know what you don't know: unanswerable questions for SQuAD",
https://arxiv.org/abs/1806.03822; version 1.1 has the same format without unanswerable questions.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from regardant.config import Variants
from regardant.data.splits import FilesConfig
from regardant.data.tables import read_columns
from regardant.data.text_files import Fault, place, require_file, require_whole_characters, text_lines, unreadable_cell
from regardant.errors import DataError

SHOWN = 40
"""Number of characters of a text shown in a message."""


@dataclass(frozen=True)
class ContextQuestion:
    """A question with its context, the text that may answer it."""

    question: str
    context: str
    answers: tuple[str, ...] = ()
    """The right answers. The first one is trained on. Empty: the context has no answer."""
    start: int = 0
    """Offset of the first answer in the context, in characters."""

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> "ContextQuestion":
        """Return the question that `to_json` wrote."""
        fields = json.loads(line)
        return cls(**{**fields, "answers": tuple(fields["answers"])})


class QuestionsConfig(Variants):
    """Configuration of a source of questions with contexts. A subclass with a `kind` adds one."""

    default_kind: ClassVar[str] = "files"

    def read(self, seed: int) -> dict[str, list[ContextQuestion]]:
        """Return the questions of all splits. Raises DataError."""
        raise NotImplementedError


class QuestionFilesConfig(FilesConfig, QuestionsConfig):
    """Questions from tables (.jsonl, .csv, .tsv, .parquet), or from .json files in the format of SQuAD 1.1 and 2.0.
    Text files may end in .gz or .zst. A blank answer means that the context has none."""

    kind: Literal["files"] = "files"

    question: str = "question"
    """The column of questions in tables; its number, from 1, in a table without names."""

    context: str = "context"
    """The column of contexts."""

    answer: str = "answer"
    """The column of answers, which are copied from the context letter by letter."""

    start: str | None = None
    """The column of offsets of the answers in their contexts, in characters from 0. Empty: an answer is the first
    occurrence of its text in the context."""

    validation_share: float = Field(0.1, gt=0, lt=1)
    """Share of the training contexts whose questions are validated on, where no validation file is given."""

    def read(self, seed: int) -> dict[str, list[ContextQuestion]]:
        return self.sets(self.items, lambda one: one.context, self.validation_share, seed)

    def items(self, file: str) -> Iterator[ContextQuestion]:
        """Yield the questions of a file. Raises DataError."""
        path = place(self.root, file)
        document = _squad_document(path) if ".json" in path.suffixes else None
        return self._of_table(path) if document is None else _of_squad(path, document)

    def _of_table(self, path: Path) -> Iterator[ContextQuestion]:
        columns = [self.question, self.context, self.answer, *([self.start] if self.start else [])]
        for line, (question, context, answer, *start) in read_columns(path, columns, columns[3:]):
            if isinstance(question, Fault) or isinstance(context, Fault) or answer in (Fault.BAD_ENCODING, Fault.NUL):
                raise unreadable_cell(path, line, question, context, answer)
            given = "" if isinstance(answer, Fault) else answer
            begins = None if not start or isinstance(start[0], Fault) or not start[0].strip() else start[0]
            yield located(f"{path} line {line:,}", question, context, [given], begins)


def located(
    where: str, question: str, context: str, answers: Iterable[str], start: str | int | None
) -> ContextQuestion:
    """Return a question with the offset of its first answer: `start`, or the first occurrence in the context.

    Raises DataError, which names `where`, for a question or context that is blank, for a text with half of a surrogate
    pair, and for an answer that the context does not have there.
    """
    for name, text in (("question", question), ("context", context)):
        if not text.strip():
            raise DataError(f"{where} has a blank {name}: write one or leave the line out")
        require_whole_characters(f"{where}: the {name}", text)
    right = tuple(one for one in answers if one.strip())
    for one in right:
        require_whole_characters(f"{where}: an answer", one)
    if not right:
        return ContextQuestion(question, context)
    try:
        begins = context.find(right[0]) if start is None else int(start)
    except ValueError:
        raise DataError(f"{where}: the answer starts at {start!r}: give the number of a character, from 0") from None
    if begins < 0 or not context.startswith(right[0], begins):
        there = "" if start is None else f" at character {begins}, where it has {context[max(begins, 0) :][:SHOWN]!r}"
        raise DataError(f"{where}: the context has no {right[0][:SHOWN]!r}{there}: correct the answer")
    return ContextQuestion(question, context, right, begins)


def _squad_document(path: Path) -> list[Any] | None:
    """Return the articles of a file in SQuAD's format. None for a file with one JSON object per line."""
    require_file(path)
    try:
        document = json.loads(b"\n".join(text_lines(path)))
    except (ValueError, RecursionError):
        return None
    articles = document.get("data") if isinstance(document, dict) else None
    return articles if isinstance(articles, list) else None


def _of_squad(path: Path, articles: list[Any]) -> Iterator[ContextQuestion]:
    for number, article in enumerate(articles, 1):
        try:
            for paragraph in article["paragraphs"]:
                for asked in paragraph["qas"]:
                    where = f"{path} question {asked.get('id', '')!s}"
                    answers = [] if asked.get("is_impossible") else asked["answers"]
                    texts, start = [one["text"] for one in answers], answers[0]["answer_start"] if answers else None
                    yield located(where, asked["question"], paragraph["context"], texts, start)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(
                f"{path}: article {number:,} of `data` is not in SQuAD's format ({error!r}): give it paragraphs with "
                "a context and qas, each with a question and answers, which have text and answer_start"
            ) from error
