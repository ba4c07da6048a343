"""Errors that a user can cause or meet, as a tree.

RegardantError
├── ConfigError      a recipe or an override that cannot be right
├── DataError        files, tables and tokenizers
├── RunError         a run folder that is missing, half written or of another kind
│   └── Diverged     a training whose gradients are no longer finite
└── OutOfMemory      found by the dry run, with what to change

Every message is one line: what was given, what is allowed, what to do. The command line prints it and
exits with 2.
"""


class RegardantError(Exception):
    """Something the user can mend."""


class ConfigError(RegardantError):
    """A recipe or an override that cannot be right. May hold several problems, one a line."""


class DataError(RegardantError):
    """A file, a table or a corpus that cannot be used."""


class RunError(RegardantError):
    """A run folder that is missing, half written or made for something else."""


class Diverged(RunError):
    """A training whose gradients are no longer finite."""


class OutOfMemory(RegardantError):
    """The largest batch does not fit this machine."""
