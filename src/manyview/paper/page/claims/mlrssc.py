"""MLRSSC as its authors tuned it for the digits, beside its defaults: an observation of ours."""

from __future__ import annotations

from manyview.paper.page.read import (
    Results,
    Row,
    grouped,
    spread,
)

from .judging import (
    ABOVE,
    NOT_THEIRS,
    Verdict,
    listed,
    of_one,
    paired,
)

#: The values of the column "tuning", in the words of the page.
TUNINGS = {"default": "default", "digits": "tuned"}


def pairs(results: Results) -> dict[tuple[str, str], dict[str, list[Row]]]:
    """By method and dataset the runs of both settings, where there are both."""
    found: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in results.rows("mlrssc"):
        mine = found.setdefault((row["method"], row["dataset"]), {})
        mine.setdefault(row["tuning"], []).append(row)
    return {key: mine for key, mine in found.items() if set(TUNINGS) <= set(mine)}


def verdicts(results: Results) -> list[Verdict]:
    found = []
    for (method, dataset), mine in pairs(results).items():
        gap = paired(mine["digits"], mine["default"], "acc")
        ours = " against ".join(
            str(spread(mine[tuning], "acc")) for tuning in ("digits", "default")
        )
        whole = "all digits" if dataset == "digits" else f"{10 * int(dataset.split('-')[1])} digits"
        claim = f"Tuned for the digits, {method} is above its defaults ({whole})"
        said = ("Its ACC is clearly above.", "Its ACC is clearly not above.")
        found.append(
            of_one("mlrssc", claim, NOT_THEIRS, ours, gap, ABOVE, said, _ended(mine["digits"]))
        )
    return found


def _ended(rows: list[Row]) -> str:
    """How the ADMM ended, which all runs share."""
    told = [remark for remark in grouped(rows, "remark") if remark]
    return f" Tuned, its ADMM did {listed(told)}." if told else ""
