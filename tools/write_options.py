"""Write the options of every command into docs/command_line.md: python tools/write_options.py.

Options that say how tables are read are in docs/guide/files.md. A test fails if the page is out of date.
"""

import re
from pathlib import Path
from typing import Any

import typer

from manyview.app.cli.app import app
from manyview.app.options import Reading

PAGE = Path(__file__).parent.parent / "docs" / "command_line.md"
BEGIN, END = "<!-- made by tools/write_options.py -->", "<!-- end of the options -->"


def names(parameter: Any) -> str:
    """An argument by its metavar; an option with its kind of value, and its opposite if it has one."""
    if not parameter.opts[0].startswith("-"):
        return f"`{parameter.metavar or parameter.name.upper()}`"
    name = max(parameter.opts, key=len)
    if not parameter.is_flag and parameter.metavar:
        name += f" {parameter.metavar}"
    return ", ".join(f"`{text}`" for text in (name, *parameter.secondary_opts))


def default(parameter: Any) -> str:
    if parameter.required:
        return " (required)" if parameter.opts[0].startswith("-") else ""
    value = parameter.default
    if isinstance(value, bool):
        return " (yes)" if value else ""
    return "" if value is None or value == () else f" (`{value}`)"


def rows(command: Any) -> list[str]:
    """A line for every option but those of reading tables: its name, what it does, its default."""
    lines = []
    for parameter in command.params:
        if parameter.hidden or parameter.name in {"help", *Reading.__dataclass_fields__}:
            continue
        text = re.sub(r"\s+", " ", parameter.help or "").strip()
        lines.append(f"- {names(parameter)}{default(parameter)}: {text}")
    return lines


def options() -> str:
    """A list for every command, and for every set of commands that share options."""
    commands = {
        name: rows(command)
        for name, command in sorted(typer.main.get_command(app).commands.items())
    }
    users: dict[str, list[str]] = {}
    for name, lines in commands.items():
        for line in lines:
            users.setdefault(line, []).append(name)
    lists: dict[tuple[str, ...], list[str]] = {}
    for line, who in sorted(users.items(), key=lambda item: len(item[1]) == 1):
        lists.setdefault(tuple(who), []).append(line)
    return (
        "\n\n".join(
            "\n".join([f"**{', '.join(who)}**", "", *lines]) for who, lines in lists.items()
        )
        + "\n"
    )


def with_options(page: str) -> str:
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return f"{page[:start]}\n\n{options()}\n{page[end:]}"


if __name__ == "__main__":
    PAGE.write_text(with_options(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
