"""Tree of the errors that a user can cause or meet.

RegardantError
├── ConfigError      an invalid recipe, override or option
├── DataError        files, tables and tokenizers
│   └── BlankItems   items that have no text for the tokenizer
├── RunError         a run folder that is missing, incomplete or of another kind
│   └── Diverged     a training whose gradients are no longer finite
└── OutOfMemory      a model or a batch that does not fit into memory, with advice

A message says what was given, what is allowed and what to do. It has one line; a ConfigError with several problems
has one line for each. The command line prints the message and exits with 2.
"""

from collections.abc import Sequence


class RegardantError(Exception):
    """Base of all errors that the user can fix."""


class ConfigError(RegardantError):
    """An invalid recipe, override or option. The message may list several problems, one per line."""


class DataError(RegardantError):
    """An unusable file, table, corpus or tokenizer."""


class BlankItems(DataError):
    """Items without text: empty, of white space, or of characters that the tokenizer removes.

    numbers: indices of the blank items among those given, from 0. Empty: unknown.
    """

    def __init__(self, message: str, numbers: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.numbers = numbers


class RunError(RegardantError):
    """A run folder that is missing, incomplete or of another kind."""


class Diverged(RunError):
    """A training whose gradients are no longer finite."""


class OutOfMemory(RegardantError):
    """A model or a batch that does not fit into memory."""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of an error without one."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
