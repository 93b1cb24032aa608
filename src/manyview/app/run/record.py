"""What `run.json` says of a run: settings, versions, checksums of the data, results in a few numbers."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from manyview._types import Views
from manyview.app.compare.runs import versions
from manyview.app.report.page import file_stem
from manyview.criteria import Selection
from manyview.engines.numpy.presence import numbers_of
from manyview.engines.numpy.relations import kind_of
from manyview.engines.numpy.sources import is_streamed, reading
from manyview.io import checksum
from manyview.models import Estimator, number_of_clusters

FORMAT = 1


def run_json(about: Mapping[str, Any]) -> bytes:
    """The text of `run.json`."""
    text = json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def run_record(
    model: Estimator,
    views: Views,
    settings: Mapping[str, Any] | None,
    info: dict[str, Any],
    notes: list[str],
    extra: dict[str, Any],
) -> dict[str, Any]:
    """What `run.json` says."""
    fit_warnings = [str(text) for text in info.pop("warnings", [])]
    files = component_files(views.names)
    return {
        **{str(key): _plain(value) for key, value in info.items()},
        "format": FORMAT,
        "method": type(model).__name__,
        "n_samples": views.n_samples,
        "n_clusters": number_of_clusters(model),
        "views": [
            {
                "name": name,
                "features": X.shape[1],
                "kind": kind_of(X) or "features",
                "components": file,
                "sha256": values_checksum(X),
            }
            for name, X, file in zip(views.names, views.matrices, files, strict=True)
        ],
        "parameters": _plain(model.get_params(deep=False)),
        "settings": _plain(dict(settings or {})),
        "seed": _plain(model.random_state),
        "versions": {"python": platform.python_version(), **versions()},
        "objective": float(model.objective_),
        "iterations": int(model.n_iter_),
        "stop_reason": str(model.stop_reason_),
        "warnings": notes,
        "fit_warnings": fit_warnings,
        **extra,
    }


def is_of(about: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether a run was made with these settings, by the versions that are here."""
    here = {"python": platform.python_version(), **versions()}
    return about.get("settings") == _plain(dict(settings)) and about.get("versions") == here


def _plain(value: Any) -> Any:
    """What JSON can hold; everything else as text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if np.isfinite(value) else str(value)
    return str(value) if isinstance(value, Path) else repr(value)


def values_checksum(X: Any) -> str:
    """Of the values as the model saw them, whatever file they came from."""
    X = numbers_of(X)
    return checksum.of_blocks(X.shape, X.dtype, reading(X) if is_streamed(X) else (X,))


def selection_record(chosen: Selection) -> dict[str, Any]:
    """What `run.json` says of a choice of the number of clusters."""
    return {
        "n_clusters": int(chosen.n_clusters),
        "found": bool(chosen.found),
        "runner_up": None if chosen.runner_up is None else int(chosen.runner_up),
        "doubtful": bool(chosen.doubtful),
        "reasons": [str(reason) for reason in chosen.reasons],
    }


def component_files(names: Sequence[str]) -> list[str]:
    """A safe and different file name for every view, on systems that ignore case as well."""
    found: list[str] = []
    for name in names:
        stem, n = file_stem(name), 1
        while (file := f"components_{stem}{f'_{n}' if n > 1 else ''}.csv").lower() in {
            other.lower() for other in found
        }:
            n += 1
        found.append(file)
    return found
