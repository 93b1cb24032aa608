"""What commands share: where they may write, what they say and to whom, how they end."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from manyview._warn import COMMAND_LINE

from .stages import shown

#: The input or the request is at fault; anything else that fails is a failure (1).
BAD_INPUT = (ValueError, ImportError, FileNotFoundError, FileExistsError, PermissionError,
             NotADirectoryError, IsADirectoryError)  # fmt: skip

#: Variable of the environment: a file to which the stages of a command are added, a line for each.
STAGES = "MANYVIEW_STAGES"


@contextmanager
def reported(
    command: str, out: Path | None = None, resume: str = "", checkpoint: Path | None = None
) -> Iterator[None]:
    """Exceptions → one sentence and an exit status: 2 bad input, 1 failure, 130 interrupted.

    A look at ``out`` tells whether anything was written, and one at ``checkpoint`` whether the same
    command can go on from there; ``resume`` says how to go on after an interruption instead.
    """
    before = _held(out)

    def written() -> str:
        state = f"some of the results may be in {out}"
        if _held(out) == before:
            state = "nothing was written"
        if checkpoint is not None and checkpoint.exists():
            state += f"; run the same command again to go on from {checkpoint}"
        return state

    here = COMMAND_LINE.set(True)
    try:
        yield
    except BrokenPipeError:  # whoever reads the output has seen enough
        silence(sys.stdout)
        raise typer.Exit(0) from None
    except BAD_INPUT as error:
        typer.echo(f"manyview {command}: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(resume or f"Interrupted; {written()}.", err=True)
        raise typer.Exit(130) from None
    except (typer.Exit, typer.Abort):
        raise
    except Exception as error:
        if os.environ.get("MANYVIEW_DEBUG"):
            raise
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        typer.echo(
            f"manyview {command} failed ({why}); {written()}. MANYVIEW_DEBUG=1 shows where",
            err=True,
        )
        raise typer.Exit(1) from None
    finally:
        COMMAND_LINE.reset(here)


def _held(out: Path | None) -> dict[Path, tuple[int, int]]:
    """The files at ``out``, with what changes when they are written."""
    if out is None or not out.exists():
        return {}
    files = (path for path in out.rglob("*") if path.is_file()) if out.is_dir() else [out]
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


def silence(stream: Any) -> None:
    """Nobody reads it any more: what is still to be said, at the exit too, goes nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # not a real file
        pass


class PatientConsole(Console):
    """Goes on in silence when its reader has left (`| head`): the files are still to be written."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        silence(self.file)


class Voice:
    """Says things to people on standard error and gives the result on standard output."""

    def __init__(self, quiet: bool, as_json: bool):
        self.as_json = as_json
        #: Whether anybody wants to see how far things are.
        self.speaks = not (quiet or as_json)
        self._people = PatientConsole(stderr=True, quiet=quiet, highlight=False)
        self._result = PatientConsole(quiet=quiet or as_json, highlight=False)

    def note(self, text: str) -> None:
        self._people.print(escape(text), soft_wrap=True)

    def warn(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._people.print(f"[yellow]warning:[/yellow] {escape(text)}", soft_wrap=True)

    def show(self, *things: Any) -> None:
        for thing in things:
            self._result.print(thing, soft_wrap=isinstance(thing, str))

    def result(self, record: dict[str, Any]) -> None:
        if self.as_json:
            plain = codecs.lookup(sys.stdout.encoding or "ascii").name != "utf-8"
            json.dump(record, sys.stdout, indent=1, ensure_ascii=plain)
            sys.stdout.write("\n")
            sys.stdout.flush()  # here, where a reader who left is no failure

    @contextmanager
    def busy(self, text: str) -> Iterator[Callable[[str], None]]:
        """A bar with the stage, which can be changed; in a file or pipe a line for each stage."""
        _note_stage(text)
        with shown(self._people, text) as stages:

            def change(words: str) -> None:
                _note_stage(words)
                stages.begin(words)

            yield change


def _note_stage(words: str) -> None:
    """Programs that run a command and want to know how far it is name a file for it."""
    path = os.environ.get(STAGES)
    if path:
        with contextlib.suppress(OSError), open(path, "a", encoding="utf-8") as file:
            file.write(words + "\n")


@contextmanager
def caught_warnings() -> Iterator[list[str]]:
    """Warnings given inside, each once, as sentences."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", UserWarning)
        yield texts
    for item in seen:
        if issubclass(item.category, UserWarning) and str(item.message) not in texts:
            texts.append(str(item.message))
