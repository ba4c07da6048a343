"""The table "Where is it" of docs/design.md names files that exist and hold the named definitions."""

import ast
import re
from pathlib import Path

import pytest

import regardant

PACKAGE = Path(regardant.__file__).parent
DESIGN = Path(__file__).parents[2] / "docs" / "design.md"


def rows():
    """Return question, files and names of each row of the table."""
    section = DESIGN.read_text(encoding="utf-8").split("## Where is it\n")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "`" in line]
    return [(question, re.findall("`(.+?)`", file), re.findall("`(.+?)`", names)) for question, file, names in cells]


def definitions(path):
    """Return the names of the functions, classes and constants that a file defines at its top level."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def test_the_table_answers_twelve_questions_or_more():
    assert len({question for question, _, _ in rows()}) == len(rows()) >= 12


@pytest.mark.parametrize(("question", "files", "names"), rows(), ids=[row[0] for row in rows()])
def test_the_file_of_an_answer_holds_what_is_asked_for(question, files, names):
    assert len(files) == 1 and names
    assert set(names) <= definitions(PACKAGE / files[0])
