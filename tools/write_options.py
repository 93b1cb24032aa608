"""The options of every command, from the program itself, into docs/command_line.md.

    python tools/write_options.py

writes the part between the two marks anew; a test says when that is due.
"""

import re
from pathlib import Path
from typing import Any

import typer

from manyview.app.cli.app import app

PAGE = Path(__file__).parent.parent / "docs" / "command_line.md"
BEGIN, END = "<!-- made by tools/write_options.py -->", "<!-- end of the options -->"


def names(parameter: Any) -> str:
    """An argument by its metavar; an option with its value, and its opposite if it has one."""
    if not parameter.opts[0].startswith("-"):
        return f"`{parameter.metavar or parameter.name.upper()}`"
    told = max(parameter.opts, key=len)
    if not parameter.is_flag:
        told += f" {parameter.metavar or parameter.name.upper()}"
    return ", ".join(f"`{text}`" for text in (told, *parameter.secondary_opts))


def default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None or value == () else f"`{value}`"


def rows(command: Any) -> list[str]:
    """A row for every option: its name, what it does, its default."""
    lines = []
    for parameter in command.params:
        if parameter.hidden or parameter.name in ("help", "install_completion", "show_completion"):
            continue
        words = re.sub(r"\s+", " ", parameter.help or "").strip().replace("|", "\\|")
        cells = (names(parameter).replace("|", "\\|"), words, default(parameter))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def options() -> str:
    """A table for every command, and one for the options that several commands share."""
    commands = {
        name: rows(command)
        for name, command in sorted(typer.main.get_command(app).commands.items())
    }
    users: dict[str, list[str]] = {}
    for name, lines in commands.items():
        for line in lines:
            users.setdefault(line, []).append(name)
    parts = [
        "### Options of several commands",
        "",
        "| | | default | commands |",
        "|---|---|---|---|",
    ]
    parts += [f"{line} {', '.join(who)} |" for line, who in users.items() if len(who) > 1]
    for name, lines in commands.items():
        own = [line for line in lines if len(users[line]) == 1]
        parts += ["", f"### `manyview {name}`", "", "| | | default |", "|---|---|---|", *own]
    return "\n".join([*parts, ""])


def with_options(page: str) -> str:
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return f"{page[:start]}\n\n{options()}\n{page[end:]}"


if __name__ == "__main__":
    PAGE.write_text(with_options(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
