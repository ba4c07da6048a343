"""Tree of the errors that a user can cause or meet.

RegardantError
├── ConfigError      an invalid recipe, override or option
├── DataError        files, tables and tokenizers
│   └── ItemError    an item that cannot be answered, with its number
│       └── BlankItems   items that have no text for the tokenizer
├── RunError         a run folder that is missing, incomplete or of another kind
│   ├── Diverged     a training whose gradients are no longer finite
│   └── WriteError   a file that cannot be written, such as on a full disk
└── OutOfMemory      a model or a batch that does not fit into memory, with advice

A message says what was given, what is allowed and what to do. It has one line; a ConfigError with several problems
has one line for each. The command line prints the message and exits with 2.
"""

from collections.abc import Sequence


class RegardantError(Exception):
    """Base of all errors that the user can fix."""

    def within(self, place: str) -> "RegardantError":
        """Return an error of the same kind, with the name of a place before its message."""
        return type(self)(f"{place}: {self}")


class ConfigError(RegardantError):
    """An invalid recipe, override or option. The message may list several problems, one per line."""


class DataError(RegardantError):
    """An unusable file, table, corpus or tokenizer."""


class ItemError(DataError):
    """An item that cannot be answered.

    number: index of the item among those given, from 0.
    problem: the message without the number of the item.
    """

    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"item {number + 1} {problem}")
        self.number = number
        self.problem = problem

    def within(self, place: str) -> DataError:
        return DataError(f"{place}: {self}")


class BlankItems(ItemError):
    """Items without text: empty, of white space, or of characters that the tokenizer removes.

    numbers: indices of the blank items among those given, from 0, in their order.
    """

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(numbers[0], "is blank: give a text")
        self.numbers = numbers


class RunError(RegardantError):
    """A run folder that is missing, incomplete or of another kind."""


class Diverged(RunError):
    """A training whose gradients are no longer finite."""


class WriteError(RunError):
    """A file that cannot be written."""


class OutOfMemory(RegardantError):
    """A model or a batch that does not fit into memory."""


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line."""
    return " ".join(str(error).split())


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of an error without one."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
