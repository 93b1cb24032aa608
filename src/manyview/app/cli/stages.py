"""How far a long command is: a bar with its stages and their share, or a line for each."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

#: Stages of a fit with its report by their first words, and the share of the time that each usually takes
#: (benchmarks/report.py). A stage without an entry has none of its own.
SHARES = {
    "reading": 5,
    "clustering": 38,
    "comparing with a plain": 6,
    "refitting": 18,
    "testing": 17,
    "drawing the consensus": 8,
    "asking": 4,
    "drawing the figures": 2,
    "writing": 4,
}
#: Seconds after which a command says what it does where there is no terminal, and what took its time.
PATIENCE = 10.0
#: "refitting parts of the data, 2 of 5": how far a stage itself is.
_WITHIN = re.compile(r"\b(\d+) of (\d+)$")


class Stages:
    """Told of every stage as it begins; ``done`` is the share that lies behind."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.done = 0.0
        self.began = time.monotonic()
        self._now, self._since = "", self.began

    def begin(self, words: str) -> float:
        """A stage begins, or goes on; the share of the whole that is done."""
        stage = next((known for known in SHARES if words.startswith(known)), words)
        self._end()
        self._now = stage
        before = sum(share for known, share in SHARES.items() if _before(known, stage))
        within = _WITHIN.search(words)
        part = (int(within[1]) - 1) / int(within[2]) if within else 0.0
        reached = (before + part * SHARES.get(stage, 0)) / sum(SHARES.values())
        self.done = max(self.done, reached)  # commands that leave stages out never go back
        return self.done

    def _end(self) -> None:
        now = time.monotonic()
        if self._now:
            self.seconds[self._now] = self.seconds.get(self._now, 0.0) + now - self._since
        self._since = now

    def summary(self) -> str:
        """Seconds and share of the stages that took time."""
        self._end()
        self._now = ""
        total = sum(self.seconds.values())
        told = [
            f"{stage} {seconds:.1f} s ({seconds / total:.0%})"
            for stage, seconds in self.seconds.items()
            if seconds >= max(0.02 * total, 0.05)
        ]
        return f"{total:.1f} s: {', '.join(told)}" if told else f"{total:.1f} s"


def _before(known: str, stage: str) -> bool:
    order = list(SHARES)
    return stage in order and order.index(known) < order.index(stage)


@contextmanager
def shown(console: Console, words: str) -> Iterator[Stages]:
    """Show stages as they begin, on a terminal as a bar, else as lines; at the end what took the time."""
    stages = Seen(console)
    with stages:
        stages.begin(words)
        yield stages
    if time.monotonic() - stages.began > PATIENCE:
        console.print(escape(stages.summary()), soft_wrap=True)


class Seen(Stages):
    """Stages that people see."""

    def __init__(self, console: Console):
        super().__init__()
        self.console = console
        self.bar: Progress | None = None
        self.task = TaskID(0)

    def __enter__(self) -> Seen:
        if self.console.is_terminal and not self.console.quiet:
            self.bar = Progress(
                SpinnerColumn(),
                BarColumn(bar_width=24),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.description}"),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self.bar.start()
            self.task = self.bar.add_task("", total=1.0)
        return self

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def begin(self, words: str) -> float:
        done = super().begin(words)
        if self.bar is not None:
            self.bar.update(self.task, completed=done, description=escape(words))
        elif time.monotonic() - self.began > PATIENCE:
            self.console.print(f"{done:.0%} {escape(words)}", soft_wrap=True)
        return done
