"""The sources of labelled items that every task over items offers: a kind is known by being imported."""

from regardant.data import (
    digit_questions,
    digits,
    file_tables,
    folders,
    graph_families,
    labelled_graphs,
    moving_digits,
    part_tables,
)

__all__ = [
    "digit_questions",
    "digits",
    "file_tables",
    "folders",
    "graph_families",
    "labelled_graphs",
    "moving_digits",
    "part_tables",
]
