"""Answers to items of which some are blank."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from regardant.errors import BlankItems, ItemError

Answer = TypeVar("Answer")


def answer_where_text(
    items: Sequence[str | None], answer: Callable[[list[str]], Sequence[Answer]]
) -> list[Answer | None]:
    """Return the answer to each item, None to one without text.

    A text of zero-width spaces, or of other characters that Python does not strip and the tokenizer removes, is refused
    before the model reads any. Only items with such texts are tokenised twice. Raises ItemError with the index of the
    item that `answer` refuses.
    """
    places = [place for place, item in enumerate(items) if item and item.strip()]
    answers: list[Answer | None] = [None] * len(items)
    if not places:
        return answers
    try:
        found = answer([items[place] or "" for place in places])
    except BlankItems as error:
        blank = {places[number] for number in error.numbers}
        return answer_where_text([None if place in blank else item for place, item in enumerate(items)], answer)
    except ItemError as error:
        raise ItemError(places[error.number], error.problem) from error
    for place, one in zip(places, found, strict=True):
        answers[place] = one
    return answers
