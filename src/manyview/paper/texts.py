"""The texts of the reproduction and the numbers the paper reports, from `assets/texts.toml`."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

TEXTS: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("assets", "texts.toml").read_text(encoding="utf-8")
)
#: By method, six pairs of mean and standard deviation; NaN where the paper gives none.
DIGITS: dict[str, list[list[float]]] = TEXTS["published"]["digits"]
LIHC: dict[str, list[list[float]]] = TEXTS["published"]["lihc"]
#: How the user measures the claims on LIHC.
MEASURE_LIHC: str = TEXTS["page"]["measure_lihc"]
