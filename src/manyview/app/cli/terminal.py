"""How commands talk and end: progress, notes, results, warnings, exit status."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from manyview._warn import WORDING

#: The input or the request is at fault; anything else that fails is a failure (1).
BAD_INPUT = (ValueError, ImportError, FileNotFoundError, FileExistsError, PermissionError,
             NotADirectoryError, IsADirectoryError)  # fmt: skip

#: Variable of the environment: a file to which the stages of a command are added, a line for each.
STAGES = "MANYVIEW_STAGES"
#: Stages of a fit with its report by their first words, and the usual share of the time of each
#: (benchmarks/report.py). Stages without an entry do not move the bar.
SHARES = {
    "reading": 5,
    "clustering": 38,
    "comparing with a simple": 6,
    "refitting": 18,
    "testing": 17,
    "drawing the consensus": 8,
    "describing": 4,
    "drawing the figures": 2,
    "writing": 4,
}
#: Seconds after which a command prints its stages where there is no terminal, and what took its time.
PATIENCE = 10.0
#: Results to name first.
FIRST = ("report.html", "labels.csv", "clusters.csv", "survival.csv", "markers.csv", "model.npz")
#: "refitting parts of the data, 2 of 5": how far a stage itself is.
_WITHIN = re.compile(r"\b(\d+) of (\d+)$")


@contextmanager
def reported(
    command: str,
    out: Path | None = None,
    resume: str | None = None,
    checkpoint: Path | None = None,
) -> Iterator[None]:
    """Exceptions → one sentence and an exit status: 2 bad input, 1 failure, 130 interrupted.

    ``out`` shows whether anything was written, and ``checkpoint`` whether the same
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

    here = WORDING.set(in_options)
    try:
        yield
    except BrokenPipeError:  # whoever reads the output has seen enough
        silence(sys.stdout)
        raise typer.Exit(0) from None
    except BAD_INPUT as error:
        said = in_options(" ".join(str(error).split()))
        typer.echo(f"manyview {command}: {said}", err=True)
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
        WORDING.reset(here)


#: Parameters of Python by the names of their options.
PARAMETERS = {"n_clusters": "clusters", "zero_rows": "zero-rows", "view_weights": "view-weights"}
_SETTING = re.compile(
    r"\b(scale|missing|engine|device|checkpoint|resolution|horizon|event|"
    + "|".join(PARAMETERS)
    + ")"
    r"=(\{[^}]*\}|'[^']*'|\"[^\"]*\"|[\w-]+(?:\.\d+)?|)"
)


def in_options(text: str) -> str:
    """A sentence of the library with options: ``scale={'rna': 'log'}`` is --scale rna=log here."""

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        said = re.sub(r"[{}'\"]", "", value).replace(": ", "=").replace(", ", ",")
        word = shlex.quote("none" if said == "None" else said) if said else ""
        return f"--{PARAMETERS.get(name, name)} {word}".rstrip()

    text = _SETTING.sub(option, text)
    # Not in the names of files: view_weights.csv is none of ours to reword.
    bare = rf"(?<![\w./\\-])({'|'.join(PARAMETERS)})(?!\.\w|[\w/\\])"
    return re.sub(bare, lambda m: f"--{PARAMETERS[m[0]]}", text)


def _held(out: Path | None) -> dict[Path, tuple[int, int]]:
    """The files at ``out``, with what changes when they are written."""
    if out is None or not out.exists():
        return {}
    files = (path for path in out.rglob("*") if path.is_file()) if out.is_dir() else [out]
    return {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in files}


def silence(stream: Any) -> None:
    """The reader has closed the pipe: discard further output, at the exit too."""
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
        #: Whether progress is shown.
        self.speaks = not (quiet or as_json)
        self.people = PatientConsole(stderr=True, quiet=quiet, highlight=False)
        self.console = PatientConsole(quiet=quiet or as_json, highlight=False)

    def note(self, *texts: str) -> None:
        for text in texts:
            self.people.print(escape(text), soft_wrap=True)

    def warn(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.people.print(f"[yellow]warning:[/yellow] {escape(text)}", soft_wrap=True)

    def show(self, *things: Any) -> None:
        for thing in things:
            self.console.print(thing, soft_wrap=isinstance(thing, str))

    def finish(self, record: dict[str, Any]) -> None:
        """Print where the results are; ``record`` has "out" and "files", and is the result."""
        files = sorted(record["files"], key=lambda file: (*FIRST, file).index(file))
        more = f" and {len(files) - 6} more files" if len(files) > 6 else ""
        shown = escape(", ".join(files[:6]))
        self.show(f"Results in [bold]{escape(record['out'])}/[/bold]: {shown}{more}")
        self.result(record)

    def result(self, record: dict[str, Any]) -> None:
        if self.as_json:
            plain = codecs.lookup(sys.stdout.encoding or "ascii").name != "utf-8"
            json.dump(record, sys.stdout, indent=1, ensure_ascii=plain)
            sys.stdout.write("\n")
            sys.stdout.flush()  # here, where a reader who left is no failure

    @contextmanager
    def busy(self, text: str) -> Iterator[Callable[[str], None]]:
        """A bar with the stage, which can be changed; in a file or pipe a line for each stage."""
        with Stages(self.people) as stages:

            def change(words: str) -> None:
                path = os.environ.get(STAGES)
                if path:  # a program that runs this command wants to know how far it is
                    with contextlib.suppress(OSError), open(path, "a", encoding="utf-8") as file:
                        file.write(words + "\n")
                stages.begin(words)

            change(text)
            yield change


class Stages:
    """How far a long command is: a bar on a terminal, else a line for each stage."""

    def __init__(self, console: Console | None = None):
        self.seconds: dict[str, float] = {}
        #: The share of the whole that is done.
        self.done = 0.0
        self.began = time.monotonic()
        self._now, self._since = "", self.began
        self._console = console or Console(quiet=True)
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Stages:
        if self._console.is_terminal and not self._console.quiet:
            from rich import progress  # help does without

            columns = (
                progress.SpinnerColumn(),
                progress.BarColumn(bar_width=24),
                progress.TextColumn("{task.percentage:>3.0f}%"),
                progress.TextColumn("{task.description}"),
                progress.TimeElapsedColumn(),
            )
            self._bar = progress.Progress(*columns, console=self._console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=1.0)
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if error[0] is None and time.monotonic() - self.began > PATIENCE:
            self._console.print(escape(self.summary()), soft_wrap=True)

    def begin(self, words: str) -> float:
        """A stage begins, or goes on; returns the share of the whole that is done."""
        order = list(SHARES)
        stage = next((known for known in order if words.startswith(known)), words)
        self._end(stage)
        if stage in SHARES:
            before = sum(SHARES[known] for known in order[: order.index(stage)])
            within = _WITHIN.search(words)
            part = (int(within[1]) - 1) / int(within[2]) if within else 0.0
            reached = (before + part * SHARES[stage]) / sum(SHARES.values())
            self.done = max(self.done, reached)  # commands that leave stages out never go back
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, description=escape(words))
        elif time.monotonic() - self.began > PATIENCE:
            self._console.print(f"{self.done:.0%} {escape(words)}", soft_wrap=True)
        return self.done

    def _end(self, after: str) -> None:
        now = time.monotonic()
        if self._now:
            self.seconds[self._now] = self.seconds.get(self._now, 0.0) + now - self._since
        self._now, self._since = after, now

    def summary(self) -> str:
        """Seconds and share of the stages that took time."""
        self._end("")
        total = sum(self.seconds.values())
        told = [
            f"{stage} {seconds:.1f} s ({seconds / total:.0%})"
            for stage, seconds in self.seconds.items()
            if seconds >= max(0.02 * total, 0.05)
        ]
        return f"{total:.1f} s" + (f": {', '.join(told)}" if told else "")


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
