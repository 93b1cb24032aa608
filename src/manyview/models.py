"""Load fitted models; the two estimators as one type."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from manyview.robust import RobustWMNMF
from manyview.storage.store import read_model
from manyview.wmnmf import WMNMF


def load(path: str | Path, *, fitted_on: Any = (), max_unpacked: float | None = None) -> Estimator:
    """Read a model written by ``model.save``.

    Files that are damaged, changed, of another format version or of another program are refused. No code
    from the file is run, and no file that it names is opened.

    Parameters
    ----------
    path : path
    fitted_on : path, list of path, or dict of view → path
        The files of a fit on disk, in which `predict` searches for neighbors. With a dict they may have
        moved since the fit.
    max_unpacked : float, optional
        GiB that the model may take in memory. By default 250 times its file, at least 256 MiB, and no
        more than there is.

    Returns
    -------
    RobustWMNMF or WMNMF
        The fitted model.

    Examples
    --------
    >>> import manyview as mv, numpy as np, os, tempfile
    >>> views = [np.eye(6) + 1, np.ones((6, 2))]
    >>> file = os.path.join(tempfile.mkdtemp(), "m.npz")
    >>> labels = mv.RobustWMNMF(2, random_state=0).fit(views).save(file)
    >>> mv.load(file).labels_.shape
    (6,)
    """
    return read_model(Path(path), fitted_on, max_unpacked)


Estimator: TypeAlias = RobustWMNMF | WMNMF


def number_of_clusters(model: Estimator) -> int:
    """How many clusters a fitted estimator has."""
    return int(model.n_clusters_ if isinstance(model, RobustWMNMF) else model.n_clusters)
