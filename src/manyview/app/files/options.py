"""What somebody says about the files to be read, for all of them or for one view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DECIMALS = {"comma": ",", "point": "."}
#: When two ids are one sample.
MATCHES = ("exact", "loose", "tcga")
#: Of a patient with several tumor samples: one is used, or each is a sample.
TUMORS = ("one", "all")
#: --transpose all: every file has its samples in columns; none: no file has.
ALL, NONE = "all", "none"


@dataclass(frozen=True)
class Asked:
    """The same for one view; ``None`` where nobody said anything."""

    view: str
    index: str | None = None
    header: bool | None = None
    decimal: str | None = None
    na: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    drop_text: bool = False
    one_hot: bool = False


@dataclass(frozen=True)
class Reading:
    """How to read files, as `read_views` takes it; each item is for all views, or VIEW=item."""

    index: Sequence[str] = ()
    transpose: Sequence[str] = ()
    header: Sequence[str] = ()
    decimal: Sequence[str] = ()
    na: Sequence[str] = ()
    drop: Sequence[str] = ()
    drop_text: bool = False
    one_hot: bool = False
    as_view: Sequence[str] = ()
    match: str | None = None
    keep_normals: bool = False
    tumors: str | None = None

    def check(self) -> None:
        """Refuse words that an option does not take."""
        _check_words("header", _by_view(self.header), ("yes", "no"))
        _check_words("decimal", _by_view(self.decimal), DECIMALS)
        for option, word, words in (
            ("match", self.match, MATCHES),
            ("tumors", self.tumors, TUMORS),
        ):
            if word is not None and word not in words:
                raise ValueError(f"--{option} must be one of {', '.join(words)}, got {word!r}")

    def of(self, view: str) -> Asked:
        """What is said about one view."""
        header, decimal = (
            _one(_by_view(items), view) for items in (self.header, self.decimal)
        )  # the last word counts
        return Asked(
            view,
            _one(_by_view(self.index), view),
            None if header is None else header == "yes",
            None if decimal is None else DECIMALS[decimal],
            tuple(item.removeprefix(f"{view}=") for item in self.na),
            tuple(item.removeprefix(f"{view}=") for item in self.drop),
            self.drop_text,
            self.one_hot,
        )

    def named(self) -> dict[str, set[str]]:
        """Option → the views that it names. A missing value or a column may hold "=" itself."""
        given = {"--index": self.index, "--header": self.header, "--decimal": self.decimal}
        named = {option: set(_by_view(items)) - {""} for option, items in given.items()}
        return named | {"--as-view": set(self.as_view)}

    def words(self) -> list[str]:
        """The options to type to read files so again."""
        found = []
        for name in ("index", "transpose", "header", "decimal", "na", "drop", "as_view"):
            for item in vars(self)[name]:
                found += [f"--{name.replace('_', '-')}", item]
        for name in ("drop_text", "one_hot", "keep_normals"):
            found += [f"--{name.replace('_', '-')}"] * getattr(self, name)
        for name in ("match", "tumors"):
            found += [f"--{name}", getattr(self, name)] if getattr(self, name) else []
        return found


def _by_view(items: Sequence[str]) -> dict[str, str]:
    """view → what is said of it; "" is for all views."""
    return dict(item.rpartition("=")[::2] for item in items)


def _one(said: Mapping[str, str], view: str) -> str | None:
    return said.get(view, said.get(""))


def _check_words(option: str, said: Mapping[str, str], words: Iterable[Any]) -> None:
    first, second = words
    for view, word in said.items():
        if word not in (first, second):
            asked = f"{view}={word}" if view else word
            raise ValueError(
                f"--{option} {asked}: say {first} or {second}, or VIEW={first} or VIEW={second}"
            )
