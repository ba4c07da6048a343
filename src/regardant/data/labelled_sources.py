"""The sources of labelled items that every task over items offers: a kind is known by being imported."""

from regardant.data import (  # noqa: F401  # importing a module registers its kind
    digit_questions,
    digits,
    file_tables,
    folders,
    graph_families,
    labelled_graphs,
    moving_digits,
    part_tables,
)
