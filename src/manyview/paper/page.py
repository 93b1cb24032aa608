"""The page of a reproduction and its appendix, from the files of `manyview reproduce` alone.

One template gives both as Markdown; the HTML is rendered from that. Nothing is computed anew.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markdown_it import MarkdownIt

from manyview.app.report import page as pg
from manyview.io.safe_csv import csv_bytes
from manyview.io.writing import claimed, restored

from .claims import ALIKE, FAILED, HOLDS, SAME, VERDICTS, Claim, by_method, claims
from .figures import INK, drawn, figures
from .results import DIGITS, SCORES, TEXTS, Reproduction, grouped, in_print, spread, two, where

PAGE, APPENDIX = "reproduction.html", "appendix.html"
#: The figures on the page; the others are in the appendix.
ON_PAGE = ("methods", "tuning", "convergence")
#: Iterations and rounds that tables show; the files and figures have all.
SHOWN = {"iteration": (0, 1, 10, 25, 50, 75, 100), "round": (1, 2, 3, 4, 5, 10, 15, 20)}


def build(folder: Path) -> list[Path]:
    """Write page, appendix, figures/ and tables/ into the folder of results; all are made first."""
    restored(folder)
    results = Reproduction(folder)
    seen = _seen(results)
    pictures = {figure.name: drawn(figure) for figure in seen["figures"].values()}
    contents = {
        PAGE: _html("The paper, reproduced", _markdown(seen, "page"), pictures),
        APPENDIX: _html("The paper, reproduced: appendix", _markdown(seen, "appendix"), pictures),
        "reproduction.md": _markdown(seen, "page"),
        "appendix.md": _markdown(seen, "appendix"),
    }
    files = {name: text.encode() for name, text in contents.items()}
    files["figures/method.svg"] = diagram()
    for picture in pictures.values():
        files |= {f"figures/{name}": data for name, data in picture.items()}
    for name, frame in seen["frames"].items():
        files[f"tables/{name}.csv"] = csv_bytes(
            list(frame), frame.astype(object).to_numpy().tolist()
        )
        latex = frame.astype(str).to_latex(
            index=False, escape=True, column_format="l" * len(frame.columns)
        )
        files[f"tables/{name}.tex"] = latex.encode()
    with claimed(folder, "report", mixed=True) as place:
        place.put(files)
    return [folder / name for name in files]


def markdown(folder: Path, part: str = "page") -> str:
    """The page (or the "appendix") as a document."""
    return _markdown(_seen(Reproduction(folder)), part)


def _markdown(seen: Mapping[str, Any], part: str) -> str:
    settings: dict[str, Any] = {
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "lstrip_blocks": True,
    }
    environment = Environment(autoescape=False, **settings)
    text = environment.from_string(_asset("reproduction.md.jinja")).render(seen, part=part)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _html(title: str, text: str, pictures: Mapping[str, Mapping[str, bytes]]) -> str:
    """The Markdown as a page: a section per heading, the pictures inside, their ink that of the page."""
    renderer = MarkdownIt("commonmark", {"html": False}).enable("table")

    def image(self: Any, tokens: Any, i: int, options: Any, env: Any) -> str:
        name = tokens[i].attrs["src"].removeprefix("figures/")
        svg = pg.inline(pictures[name.removesuffix(".svg")][name], INK)
        svg = svg.replace("fill: #ffffff", "fill: none")
        svg = re.sub(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1">', svg, count=1)
        # No name twice on a page of several pictures.
        return re.sub(r'( id="|href="#|url\(#)(\w+)', rf"\1{name.split('.')[0]}-\2", svg)

    renderer.add_render_rule("image", image)
    first, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    head = first.split("\n", 1)[1]
    sections = []
    for part in parts:
        heading, body = part.split("\n", 1)
        made = renderer.render(body).replace("<table>", "<div class=scroll><table>")
        made = made.replace("</table>", "</table></div>")
        sections.append(pg.Section(pg.file_stem(heading), heading, pg.trusted(made)))
    lead = pg.trusted(renderer.render(head))
    return pg.page(title, sections, lead=lead, css=_asset("reproduction.css"))


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def diagram() -> bytes:
    """The drawing of the method as a file, which has to name its language and its font."""
    text = _asset("diagram.svg").replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return text.replace('font-family="inherit"', 'font-family="sans-serif"').encode()


def as_markdown(frame: pd.DataFrame) -> str:
    def line(values: Sequence[Any]) -> str:
        cells = ["" if v is None or v != v else " ".join(str(v).split()) for v in values]
        return f"| {' | '.join(cell.replace('|', '/').replace('<', '&lt;') for cell in cells)} |"

    rows = frame.astype(object).to_numpy().tolist()
    return "\n".join([line(list(frame)), "|" + "---|" * len(frame.columns), *map(line, rows)])


# --- what the template sees ---


def _seen(results: Reproduction) -> dict[str, Any]:
    found = claims(results)
    drawings = {figure.name: figure for figure in figures(results)}
    tables = {name: tables_of(results, name) for name in results.experiments}
    frames = {"claims": claim_table(found)}
    frames["digits-table"], frames["as-printed"] = digits_table(results), printed_table(results)
    frames["comparisons"] = pd.DataFrame(
        [{"claim": c.claim, **part} for c in found for part in c.parts],
        columns=["claim", "part", "mean", "low", "high", "outcome"],
    )
    frames["provenance"] = provenance(results)
    frames |= {name: frame for each in tables.values() for name, (_, frame) in each.items()}
    versions = next(iter(results.experiments.values()))["versions"].items()
    made_with = ", ".join(f"{name} {version}" for name, version in versions)
    return {
        "experiments": results.experiments,
        "manifest": results.manifest,
        "claims": found,
        "tally": lambda topic: tally([c for c in found if c.topic == topic]),
        "acc": lambda e, **w: spread(results.rows(e, **w).acc) if len(results.rows(e, **w)) else "",
        "best_rival": best_rival(results),
        "weights": weights_of(results),
        "shares": shares(results),
        "made_with": made_with,
        "frames": {name: frame for name, frame in frames.items() if len(frame)},
        "tables": tables,
        "figures": drawings,
        "on_page": ON_PAGE,
        "markdown": as_markdown,
        "two": two,
        "same": SAME,
        "alike": ALIKE,
        "holds": HOLDS,
        "runs": {name: _runs(e) for name, e in results.experiments.items()},
    }


def tally(found: Sequence[Claim]) -> str:
    """How many claims got which verdict."""
    counts = {verdict: sum(c.verdict == verdict for c in found) for verdict in VERDICTS}
    said = ", ".join(f"{verdict} {n}" for verdict, n in counts.items() if n)
    return f"Claims: {len(found)} ({said})." if found else ""


def claim_table(found: Sequence[Claim]) -> pd.DataFrame:
    rows = [(c.claim, c.paper, c.ours, c.verdict) for c in found]
    return pd.DataFrame(rows, columns=["Claim", "Paper", "Measured", "Verdict"])


def digits_table(results: Reproduction) -> pd.DataFrame:
    """ACC and NMI of every method, the paper's and ours, and how many scores lie in the paper's spread."""
    rows = []
    every = pd.concat([results.rows("digits"), results.rows("honest")])
    if len(every):
        every = where(every, dataset="digits").drop_duplicates(["method", "run"])
    for method, runs in by_method(every).items():
        row: dict[str, Any] = {"Method": method}
        for i, score in enumerate(("acc", "nmi")):
            row[f"{SCORES[score]}, paper"] = (
                in_print(*DIGITS[method][i]) if method in DIGITS else ""
            )
            row[f"{SCORES[score]}, ours"] = spread(runs[score])
        if method in DIGITS:
            cells = zip(SCORES, DIGITS[method], strict=True)
            n = sum(is_inside(runs[score].mean(), *theirs) for score, theirs in cells)
            row["Within the paper's spread"] = f"{n} of {len(SCORES)}"
        rows.append(row | {"Runs": len(runs)})
    frame = pd.DataFrame(rows)
    return frame.fillna("") if len(frame) else frame


def is_inside(ours: float, theirs: float, sd: float) -> bool:
    """Ours, rounded as the paper's numbers are, within its deviation; equal where it gives none."""
    allowed = 0 if math.isnan(sd) else round(100 * sd)
    return abs(round(100 * round(ours, 2)) - round(100 * theirs)) <= allowed


def printed_table(results: Reproduction) -> pd.DataFrame:
    names: dict[str, str] = TEXTS["variants"]
    found = grouped(results.rows("printed"), "variant")
    rows = [
        {"Setting": names[v], "ACC": spread(found[v].acc), "NMI": spread(found[v].nmi),
         f"Below {two(FAILED)}": int((found[v].acc < FAILED).sum()), "Runs": len(found[v]),
         "One run": found[v].remark.mode().iloc[0].replace("1 rounds", "1 round")}
        for v in names if v in found
    ]  # fmt: skip
    return pd.DataFrame(rows)


def best_rival(results: Reproduction) -> tuple[str, str]:
    """The method of others with the highest mean ACC in the digits table."""
    found = by_method(where(results.rows("digits"), dataset="digits"))
    rivals = {m: rows.acc for m, rows in found.items() if "NMF" not in m or m.startswith("Multi")}
    best = max(rivals, key=lambda m: rivals[m].mean(), default="")
    return best, spread(rivals[best]) if best else ""


def weights_of(results: Reproduction) -> dict[str, str]:
    """By weight: the median over views and kinds of noise of its ratio with noise to without."""
    rows = results.rows("noise", method="WM-NMF")
    if rows.empty:
        return {}
    noisy = rows[rows.of_view.astype(str).isin(set(rows.of_view) - {""})].dropna(subset=["alpha"])
    by = noisy.groupby(["dataset", "scenario", "of_view"])
    pairs = {"w": ("w_noisy", "w_before"), "alpha": ("alpha", "alpha_before")}
    return {w: f"{(by[a].mean() / by[b].mean()).median():.2f}" for w, (a, b) in pairs.items()}


def shares(results: Reproduction) -> str:
    """The share of the objective that the consensus term has, for the recipe's p and larger ones."""
    rows = results.rows("p", dataset="digits")
    if "consensus_share" not in rows:
        return ""
    found = rows[rows.value >= 5].groupby("value").consensus_share.mean()
    return ", ".join(f"{share:.2g} at p = {p:g}" for p, share in found.items())


def tables_of(results: Reproduction, experiment: str) -> dict[str, tuple[str, pd.DataFrame]]:
    """The tables of an experiment by name, with their captions: means over the runs of equal keys."""
    found = {}
    for name, table in TEXTS["tables"].items():
        if experiment not in table["of"]:
            continue
        rows = results.rows(experiment, table.get("file", ""))
        for column, kept in SHOWN.items():
            if column in table["keys"] and column in rows:
                rows = rows[rows[column].isin(kept)]
        keys = {k: v for k, v in table["keys"].items() if k in rows}
        values = {k: v for k, v in table["values"].items() if k in rows}
        if rows.empty or not keys:
            continue
        lines = []
        for key, mine in rows.groupby(list(keys), sort=False, dropna=False):
            cells = [spread(mine[v]) if v in SCORES else _four(mine[v]) for v in values]
            lines.append([*key, *cells, len(mine)])
        frame = pd.DataFrame(lines, columns=[*keys.values(), *values.values(), "Runs"])
        title = f"{experiment}-{name}" if len(table["of"]) > 1 or name != experiment else name
        found[title] = (table["caption"], frame.drop(columns="Runs") if table.get("one") else frame)
    return found


def _four(values: pd.Series) -> float | str:
    mean = values.mean()
    return (
        "" if math.isnan(mean) else int(mean) if float(mean).is_integer() else float(f"{mean:.4g}")
    )


def _runs(experiment: Mapping[str, Any]) -> str:
    """The fewest and the most runs of anything in an experiment."""
    least, most = (experiment["runs"][key] for key in ("least", "most"))
    return str(most) if least == most else f"{least} to {most}"


def provenance(results: Reproduction) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Experiment": name,
            "Runs": _runs(e),
            "Cells": e["cells"],
            "Processor minutes": round(e["cpu_seconds"] / 60, 1),
            "Finished": f"{e['finished'][:10]} {e['finished'][11:16]} UTC",
            "Machine": "{processor}, {cores} cores, {system}".format(**e["machine"]),
            "Versions": ", ".join(f"{name} {version}" for name, version in e["versions"].items()),
            "Code": e["code"],
        }
        for name, e in results.experiments.items()
    )
