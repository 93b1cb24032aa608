"""A fitted model and its data → a folder of tables, the model, and a page to read."""

from .folder import write_run

__all__ = ["write_run"]
