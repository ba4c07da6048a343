"""Statements of the lectures that need a correction: the statement, the truth, and a check or a source.

A statement that is decided by the check of a number refers to that check's figures (`Claim.shown_by`).
"""

from regardant.checks.verify.statements import attention, layers, sources, training

STATEMENTS = sorted(
    (*attention.STATEMENTS, *layers.STATEMENTS, *sources.STATEMENTS, *training.STATEMENTS),
    key=lambda check: check.claim.id,
)
"""Statements of the lectures, in the order of their ids."""
