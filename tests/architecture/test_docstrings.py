"""Docstrings of classes, fields and modules name a subject first. Ruff's D401 holds those of functions to a verb."""

import ast
from collections.abc import Iterator
from pathlib import Path

import regardant

PACKAGE = Path(regardant.__file__).parent

NO_SUBJECT = frozenset(
    """
    and as at because before behind beside between but by for from here if in it like of on only or over since so that
    there they through to under until up what when where which whoever with without
    """.split()  # noqa: SIM905, a list of so many words is no easier to read
)
"""First words of docstrings that do not say what they are about."""


def docstrings(module: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of every string that stands alone, also below fields and constants."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def test_docstrings_name_a_subject():
    found = {
        f"{module.relative_to(PACKAGE)}:{line}": text.strip().splitlines()[0]
        for module in PACKAGE.rglob("*.py")
        for line, text in docstrings(module)
        if text.split() and text.split()[0].strip(".,:").lower() in NO_SUBJECT
    }
    assert found == {}
