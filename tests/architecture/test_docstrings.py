"""Docstrings of classes, fields and modules name a subject first, those of functions a verb. Ruff's D401 finds a verb
in another form, and no noun."""

import ast
from collections.abc import Iterator
from pathlib import Path

import regardant

PACKAGE = Path(regardant.__file__).parent

NO_SUBJECT = frozenset(
    """
    and as at because before behind beside between but by for from here if in it like of on only or over since so that
    there they through to under until up what when where which whoever with without
    """.split()  # noqa: SIM905, a list literal is no easier to read
)
"""First words of docstrings that do not say what they are about."""

NO_VERB = frozenset(
    "a all an any both each every how no one rows seconds some the two what whether".split()  # noqa: SIM905, as above
)
"""First words of function docstrings that name the result without a verb."""


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


def of_functions(module: Path) -> Iterator[tuple[int, str]]:
    """Yield line and docstring of every function that is called, without properties and names with an underscore."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            decorators = {ast.unparse(one).rpartition(".")[2] for one in node.decorator_list}
            text = ast.get_docstring(node)
            if text and not decorators & {"property", "cached_property"}:
                yield node.lineno, text


def test_docstrings_of_functions_begin_with_a_verb():
    found = {
        f"{module.relative_to(PACKAGE)}:{line}": text.splitlines()[0]
        for module in PACKAGE.rglob("*.py")
        for line, text in of_functions(module)
        if text[0] == "`" or text.split()[0].strip(".,:").lower() in NO_VERB
    }
    assert found == {}
