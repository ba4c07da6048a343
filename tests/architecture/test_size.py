"""Files and functions stay small enough to read in one sitting, and nothing is left half done."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import regardant

ROOT = Path(__file__).parents[2]
PACKAGE = Path(regardant.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
ASSETS = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in {".js", ".css", ".html", ".yaml"}]
MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
MOST_PARAMETERS = 8
LEFT_UNDONE = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
NAMES_THAT_SAY_NOTHING = {"utils", "helpers", "common", "core", "misc"}

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


def functions(module: Path) -> Iterator[FUNCTION]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, FUNCTION):
            yield node


def place(module: Path, node: FUNCTION) -> str:
    return f"{module.relative_to(ROOT)}:{node.lineno} {node.name}"


def test_there_is_something_to_measure():
    assert len(MODULES) > 50 and len(ASSETS) > 5


def test_no_file_is_longer_than_a_sitting():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES + ASSETS}
    assert {str(path): length for path, length in lengths.items() if length > MOST_LINES} == {}


def test_no_function_is_longer_than_a_screen():
    lengths = {
        place(module, node): node.end_lineno - node.lineno + 1  # type: ignore[operator]
        for module in MODULES
        for node in functions(module)
    }
    assert {name: length for name, length in lengths.items() if length > MOST_LINES_OF_A_FUNCTION} == {}


def test_no_function_takes_more_parameters_than_one_remembers():
    counts = {
        place(module, node): len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
        for module in MODULES
        for node in functions(module)
        if module.parent.name != "cli"  # there every option of a command is a parameter
        and not any("triton.jit" in ast.unparse(one) for one in node.decorator_list)  # strides of tensors are, too
    }
    assert {name: count for name, count in counts.items() if count > MOST_PARAMETERS} == {}


def test_nothing_is_left_undone():
    found = {str(path): LEFT_UNDONE.findall(path.read_text(encoding="utf-8")) for path in MODULES + ASSETS}
    assert {path: marks for path, marks in found.items() if marks} == {}


def test_only_interfaces_leave_methods_to_others():
    classes = [
        node
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    interfaces = {base.id for node in classes for base in node.bases if isinstance(base, ast.Name)}
    unwritten = {node.name for node in classes if "NotImplementedError" in ast.unparse(node)}
    assert unwritten and unwritten <= interfaces
    assert sum(module.read_text(encoding="utf-8").count("NotImplementedError") for module in MODULES) == sum(
        ast.unparse(node).count("NotImplementedError") for node in classes
    )


def test_modules_are_named_by_what_they_hold():
    names = {part for path in MODULES for part in path.relative_to(PACKAGE).with_suffix("").parts}
    assert names & NAMES_THAT_SAY_NOTHING == set()


def test_every_module_says_what_it_is():
    silent = [
        str(module)
        for module in MODULES
        if module.read_text(encoding="utf-8").strip() and not ast.get_docstring(ast.parse(module.read_text("utf-8")))
    ]
    assert silent == []
