"""How far a command is: the bar never goes back, quick commands are silent, long ones tell."""

import io

import pytest
from rich.console import Console

from manyview.app.cli import terminal
from manyview.app.cli.terminal import SHARES, Stages

WORDS = ["reading the files", "clustering 9 samples, 2 views", "comparing with a plain clustering",
         "refitting parts of the data, to see", "refitting parts of the data, 1 of 2",
         "refitting parts of the data, 2 of 2", "testing features", "measuring how much",
         "drawing the consensus in two dimensions", "asking what", "writing the report"]  # fmt: skip


def test_the_share_rises_with_every_stage_and_ends_below_the_whole():
    told = Stages()
    done = [told.begin(words) for words in WORDS]
    assert done == sorted(done) and done[0] == 0 and done[-1] < 1
    half = (sum(list(SHARES.values())[:3]) + SHARES["refitting"] / 2) / sum(SHARES.values())
    assert done[5] == pytest.approx(half)
    assert set(told.seconds) <= {*SHARES, "measuring how much"}
    assert told.summary().endswith(("s", ")"))


def said(patience, monkeypatch, **settings):
    monkeypatch.setattr(terminal, "PATIENCE", patience)
    out = io.StringIO()
    console = Console(file=out, width=200, **settings)
    with Stages(console) as told:
        for words in WORDS:
            told.begin(words)
    return out.getvalue()


def test_lines_are_for_commands_that_take_long_and_for_nobody_who_asked_for_silence(monkeypatch):
    assert said(3600.0, monkeypatch) == ""
    assert said(-1.0, monkeypatch, quiet=True) == ""
    lines = said(-1.0, monkeypatch).splitlines()
    assert lines[:2] == ["0% reading the files", "5% clustering 9 samples, 2 views"]
    assert len(lines) == len(WORDS) + 1 and " s" in lines[-1]


def test_a_terminal_gets_a_bar(monkeypatch):
    seen = said(3600.0, monkeypatch, force_terminal=True)
    assert "writing the report" in seen and "━" in seen
