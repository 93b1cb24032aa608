"""What the files of a run say, for the page that is built from them."""

from __future__ import annotations

from typing import Any, NamedTuple

Rows = list[dict[str, Any]]


class Run(NamedTuple):
    """What the files say: `run.json`, and every table by its name without ``.csv``."""

    about: dict[str, Any]
    tables: dict[str, Rows]

    @property
    def views(self) -> list[str]:
        return [view["name"] for view in self.about["views"]]

    @property
    def views_in_words(self) -> str:
        """The views with what they are: "rna (200 features), cites (graph)"."""
        told = []
        for view in self.about["views"]:
            kind = view.get(
                "kind", "features"
            )  # runs written before relations were told apart lack it
            what = f"{view['features']} features" if kind == "features" else kind
            told.append(f"{view['name']} ({what})")
        return ", ".join(told)

    @property
    def clusters(self) -> Rows:
        return self.tables["clusters"]
