"""`manyview datasets`: what comes with manyview, listed or written as tables."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape

from manyview.datasets import load_handwritten, load_nutrimouse, make_cohort, make_synthetic
from manyview.datasets._files import tables_of
from manyview.io.writing import claimed

from .common import Voice


def run_datasets(out: Path | None, seed: int, force: bool, voice: Voice) -> None:
    """List the data, or write a folder of CSV files for each."""
    made = (
        load_handwritten(),
        load_nutrimouse(),
        make_synthetic(200, random_state=seed),
        make_cohort(random_state=seed),
    )
    if out is None:
        for data in made:
            voice.show(f"[bold]{escape(data.name)}[/bold]: {escape(data.description)}")
        voice.show("Write them as tables by manyview datasets --out FOLDER")
        voice.result({data.name: data.description for data in made})
        return
    with claimed(out, "datasets", force=force) as place:
        contents: dict[str, bytes] = {}
        for data in made:
            contents |= {f"{data.name}/{name}": text for name, text in tables_of(data).items()}
        place.put(contents)
    first = made[0]
    files = " ".join(str(out / first.name / f"{view}.csv") for view in list(first.views)[:2])
    voice.show(
        f"{len(contents)} files in [bold]{escape(str(out))}/[/bold]. Try: manyview fit "
        f"{escape(files)} --clusters 10 --labels {escape(str(out / first.name / 'labels.csv'))} "
        "--out run"
    )
    voice.result({"out": str(out), "files": sorted(contents)})
