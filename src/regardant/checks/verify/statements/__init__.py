"""Statements of the lectures that need a correction: what they say, what is true, and a check or a source.

A statement that a number of the lectures shows already points to that number's figures (`Claim.shown_by`).
"""

from regardant.checks.verify.statements import attention, layers, sources, training

STATEMENTS = sorted(
    (*attention.STATEMENTS, *layers.STATEMENTS, *sources.STATEMENTS, *training.STATEMENTS),
    key=lambda check: check.claim.id,
)
"""All of them, in the order of their ids."""
