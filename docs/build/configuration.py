"""Pages with every configuration class, by the section of a recipe that it belongs to."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from inspect import cleandoc
from typing import Any

from regardant.config import Config, FieldHelp, describe
from regardant.config.base import KIND
from regardant.config.schema import alternatives, inside, is_config, variants
from regardant.tasks import MODULES, task_named

OWN_PAGES = ["data", "tokenizer", "input", "model", "head", "training"]
"""Sections with a page of their own. A class is on the page of the first that uses it. Others share page `other`."""

OTHER = "other"


@dataclass
class Page:
    """One page of the reference."""

    name: str
    sections: dict[str, list[type[Config]]] = field(default_factory=dict)
    """Configurations by the dotted path of the section where they were met first."""


def pages() -> dict[str, str]:
    """Return the text of each page by its name."""
    # A task's module may add kinds to sections of others, so the sections of each are read before the next is imported.
    tasks = {name: (schema := task_named(name).config, inner_sections(schema)) for name in MODULES}
    found = collect([schema for schema, _ in tasks.values()])
    homes = {
        schema: f"{page.name}.md#{anchor(schema)}"
        for page in found
        for schemas in page.sections.values()
        for schema in schemas
    }
    texts = {page.name: "\n\n".join(_page(page, homes)) + "\n" for page in found}
    return {"recipe": "\n\n".join(_recipe(tasks, homes)) + "\n", **texts}


def collect(tasks: list[type[Config]]) -> list[Page]:
    """Return the pages of all sections of these tasks. Each configuration is on one page."""
    keys = list(dict.fromkeys(key for task in tasks for key in task.model_fields))
    order = [*OWN_PAGES, *(key for key in keys if key not in OWN_PAGES)]
    found = {name: Page(name) for name in [*OWN_PAGES, OTHER]}
    met: set[type[Config]] = set()
    for key in order:
        page = found[key if key in OWN_PAGES else OTHER]
        for task in tasks:
            if key in task.model_fields:
                _add(page, key, task.model_fields[key].annotation, met)
    return list(found.values())


def anchor(schema: type[Config]) -> str:
    """Return the identifier of a configuration on its page."""
    return f"{schema.__module__}.{schema.__qualname__}"


def sections(annotation: Any) -> list[type[Config]]:
    """Return the configurations that a value may be or hold."""
    choices = alternatives(annotation)
    held = [item for choice in choices if not is_config(choice) for item in inside(choice, 0)]
    return [choice for choice in [*choices, *held] if is_config(choice)]


def inner_sections(schema: type[Config]) -> dict[str, list[type[Config]]]:
    """Return the configurations that each field of a configuration may be or hold."""
    return {name: sections(given.annotation) for name, given in schema.model_fields.items()}


def own_fields(schema: type[Config]) -> list[FieldHelp]:
    """Return the help of the fields of a configuration, without those of its sections."""
    return [row for row in describe(schema) if row.path in schema.model_fields]


def _add(page: Page, path: str, annotation: Any, met: set[type[Config]]) -> None:
    new = [schema for schema in dict.fromkeys(sections(annotation)) if schema not in met]
    met.update(new)
    if new:
        page.sections.setdefault(path, []).extend(new)
    for schema in new:
        for name, inner in schema.model_fields.items():
            _add(page, f"{path}.{name}", inner.annotation, met)


def _recipe(
    tasks: dict[str, tuple[type[Config], dict[str, list[type[Config]]]]], homes: dict[type[Config], str]
) -> Iterator[str]:
    yield "# Tasks and sections"
    yield (
        "A recipe is a YAML file that names its task and sets fields of the task's sections. `--set a.b=c` sets one on "
        "the command line. A section with several kinds names one by `kind`. Fields that are left out have their "
        "defaults. This reference is generated from the configuration classes of the package."
    )
    for name, (schema, inner) in tasks.items():
        yield f"## {name}"
        yield _docstring(schema)
        yield _table(schema, inner, homes)


def _page(page: Page, homes: dict[type[Config], str]) -> Iterator[str]:
    yield f"# {'Other sections' if page.name == OTHER else f'Section `{page.name}`'}"
    for path, schemas in page.sections.items():
        yield f"## `{path}`"
        for schema in schemas:
            kinds = list(variants([schema]))
            if kinds:
                yield f"### {' or '.join(f'`{kind}`' for kind in kinds)} {{ #{anchor(schema)} }}"
            else:
                yield f'<a id="{anchor(schema)}"></a>'
            yield _docstring(schema)
            yield f"Class `{anchor(schema)}`."
            if own_fields(schema):
                yield _table(schema, inner_sections(schema), homes)


def _table(schema: type[Config], inner: dict[str, list[type[Config]]], homes: dict[type[Config], str]) -> str:
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for row in own_fields(schema):
        types = _links(inner[row.path], homes) if inner[row.path] else f"`{row.type}`"
        default = row.default if row.default == "required" or not row.default else f"`{row.default}`"
        rows.append(
            f"| `{schema.model_fields[row.path].alias or row.path}` | {types} | {default} | {_cell(row.help)} |"
        )
    return "\n".join(rows)


def _links(schemas: list[type[Config]], homes: dict[type[Config], str]) -> str:
    by_home = dict.fromkeys((_name(schema), homes[schema]) for schema in schemas)
    return ", ".join(f"[{name}]({home})" for name, home in by_home)


def _name(schema: type[Config]) -> str:
    kinds = list(variants([schema])) if KIND in schema.model_fields else []
    return " or ".join(f"`{kind}`" for kind in kinds) or "section"


def _docstring(schema: type[Config]) -> str:
    return cleandoc(schema.__doc__ or "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
