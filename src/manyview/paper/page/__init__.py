"""The paper's claims beside our results, from the files of `manyview reproduce` alone."""

from .writing import build, markdown

__all__ = ["build", "markdown"]
