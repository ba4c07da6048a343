"""Sources of labelled items for every task over items. Importing this module registers their kinds."""

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
