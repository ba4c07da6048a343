"""Help texts: verbs in groups, arguments by their names alone, examples as lines to copy."""

import inspect
from typing import Any

from typer.core import TyperCommand, TyperGroup

EXAMPLES = "Examples:"
"""Line of a verb's docstring, above its commands, one a line."""

GROUPS = {
    "Start": ("demo", "recipes"),
    "Train": ("train", "plan", "tune", "scale", "advise", "lecture"),
    "Score": ("evaluate", "compare"),
    "Use": ("predict", "translate", "generate", "encode", "score", "serve"),
    "Look inside": ("inspect", "measure", "trace", "tokens", "studio"),
    "Check": ("check", "doctor", "verify"),
    "Exchange": ("import", "export"),
    "Add a part": ("new", "try"),
}
"""Verbs by group, in the order in which a new user needs them."""

VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)


class Program(TyperGroup):
    """The program, whose help lists verbs by group."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a list of verbs for each group."""
        width = max(map(len, VERBS))
        for group, verbs in GROUPS.items():
            with formatter.section(group):
                limit = formatter.width - width - 6
                rows = [(verb.ljust(width), self.commands[verb].get_short_help_str(limit)) for verb in verbs]
                formatter.write_dl(rows)
        formatter.write_paragraph()
        formatter.write_text("regardant VERB --help prints options and examples.")


class Verb(TyperCommand):
    """A verb, whose help names arguments as its usage does and ends with examples."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments, optional ones in brackets."""
        return ["[OPTIONS]", *(_usage(one) for one in self.get_params(ctx) if one.param_type_name == "argument")]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the verb does; examples follow options."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(inspect.cleandoc(self.help or "").partition(EXAMPLES)[0].strip())

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options and examples."""
        records: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        param: Any
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                name, text = record
                if param.param_type_name == "argument":
                    name, text = str(param.display_name_raw), text.removesuffix("  [required]")
                records[param.param_type_name].append((name, text))
        for kind, rows in records.items():
            if rows:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(rows)
        with formatter.section(EXAMPLES.removesuffix(":")):
            for line in examples(self.help or ""):
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def examples(text: str) -> list[str]:
    """Return the commands in a verb's help."""
    return [line.strip() for line in text.partition(EXAMPLES)[2].splitlines() if line.strip()]


def _usage(argument: Any) -> str:
    name = str(argument.display_name_raw)
    if argument.required:
        return name
    return f"[{name.removesuffix('...')}{'...' if argument.nargs != 1 else ''}]"
