"""Views whose rows are read when they are needed: the class to derive your own from."""

from manyview.engines.numpy.sources import RowSource

__all__ = ["RowSource"]
