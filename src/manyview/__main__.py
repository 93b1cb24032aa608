"""Run the `manyview` command; an error names the extra if its packages are missing."""

from __future__ import annotations

import io
import sys

try:
    from manyview.app.cli.app import app
except ModuleNotFoundError as error:
    if (error.name or "manyview").split(".")[0] == "manyview":
        raise
    sys.exit(f"The manyview command needs {error.name}: pip install 'manyview[app]'")


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a sign it cannot show is no failure of the command
            stream.reconfigure(errors="backslashreplace")
    app()


if __name__ == "__main__":
    main()
