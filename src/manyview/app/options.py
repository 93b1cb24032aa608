# ruff: noqa: RUF009 (`option` makes a field of its own at each call)
"""The options of every command, once: the command line, the app's choices and run.json are made from them.

Each class holds the options of one command; its docstring is the help of that command. Nothing heavy is
imported here, so that help and completion appear at once.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")
#: An option that may be repeated.
Many = tuple[str, ...]


def option(
    help: str,
    default: Any = MISSING,
    metavar: str | None = None,
    choices: Sequence[str] = (),
    **more: Any,
) -> Any:
    """A field that is an option of a command; ``more`` is ``name``, ``min`` and ``max``."""
    about = {"help": help, "metavar": metavar or "|".join(choices) or None, "choices": choices}
    return field(default=default, metadata=about | more)


def argument(metavar: str, help: str, default: Any = MISSING) -> Any:
    """A field that is an argument of a command, given without a name."""
    about = {"help": help, "metavar": metavar, "choices": (), "argument": True}
    return field(default=default, metadata=about)


NAMES = partial(
    option,
    "Name of a cluster in the report; 0= removes it; repeatable.",
    (),
    "NUMBER=NAME",
)
SEED = partial(option, "The same seed gives the same result.", 0, min=0)
FORCE = partial(option, "Replace the results of an earlier run.", False)
MAX_UNPACKED = partial(option, "Memory limit for unpacking a compressed file.", None, "GIB")
BESIDE = partial(option, "Also write into a folder with other files, which stay.", False)
MATCH = partial(
    option,
    "Ids are the same sample: as written; up to case and punctuation; by TCGA barcode.",
    choices=("exact", "loose", "tcga"),
)
METHOD = partial(option, default="robust", choices=("robust", "wmnmf"))
#: Of a patient with several tumor samples: one is used, or each is a sample.
TUMORS = ("one", "all")
DECIMALS = {"comma": ",", "point": "."}


@dataclass(frozen=True)
class Asked:
    """What is said of the reading of one view; ``None`` where nothing is."""

    view: str
    index: str | None = None
    header: bool | None = None
    decimal: str | None = None
    na: Many = ()
    drop: Many = ()
    drop_text: bool = False
    one_hot: bool = False


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read. What may be repeated is for all views, or VIEW=… for one."""

    index: Many = option(
        "Column of sample ids; VIEW=COLUMN for one view, VIEW= for none.", (), "COLUMN"
    )
    transpose: Many = option("File with samples in columns; all; none; repeatable.", (), "VIEW")
    header: Many = option("Whether the first line is a header; VIEW=yes; repeatable.", (), "yes|no")
    match: str | None = MATCH(default=None)
    keep_normals: bool = option("Also use normal tissue and controls (by TCGA barcode).", False)
    tumors: str | None = option(
        "If a TCGA patient has several tumor samples: use one, or all.", None, choices=TUMORS
    )
    decimal: Many = option("Decimal mark; VIEW=comma; repeatable.", (), "comma|point")
    na: Many = option("Text that marks an empty cell; repeatable.", (), "TEXT")
    drop: Many = option("Column to drop; VIEW=COLUMN; repeatable.", (), "COLUMN")
    drop_text: bool = option("Drop columns of text.", False)
    one_hot: bool = option("Turn each word of a text column into a column of 0 and 1.", False)
    as_view: Many = option(
        "Table to use as a view although it looks like labels; repeatable.", (), "VIEW"
    )

    def check(self) -> None:
        """Refuse words that an option does not take."""
        for name, (first, second) in (("header", ("yes", "no")), ("decimal", DECIMALS)):
            for view, word in by_view(getattr(self, name)).items():
                if word not in (first, second):
                    asked = f"{view}={word}" if view else word
                    raise ValueError(
                        f"--{name} {asked}: say {first} or {second}, or VIEW={first} or VIEW={second}"
                    )
        check_choices(self)

    def of(self, view: str) -> Asked:
        """What is said of one view; the last word counts."""
        index, header, decimal = (
            said.get(view, said.get(""))
            for said in map(by_view, (self.index, self.header, self.decimal))
        )
        return Asked(
            view,
            index,
            None if header is None else header == "yes",
            None if decimal is None else DECIMALS[decimal],
            tuple(item.removeprefix(f"{view}=") for item in self.na),
            tuple(item.removeprefix(f"{view}=") for item in self.drop),
            self.drop_text,
            self.one_hot,
        )

    def named(self) -> dict[str, set[str]]:
        """Option → the views that it names. A missing value or a column may hold "=" itself."""
        said = {name: getattr(self, name) for name in ("index", "header", "decimal")}
        named = {f"--{name}": set(by_view(items)) - {""} for name, items in said.items()}
        return named | {"--as-view": set(self.as_view)}


def cluster_names(items: Sequence[str]) -> dict[str, str]:
    """Cluster number → name; an empty name removes the one it had."""
    found = {}
    for item in items:
        number, sign, name = (part.strip() for part in item.partition("="))
        if not (number.isdecimal() and sign):
            raise ValueError(
                f"--names {item}: write the number of a cluster and its name, as 0=Basal; 0= removes it"
            )
        found[str(int(number))] = name
    return found


def by_view(items: Sequence[str]) -> dict[str, str]:
    """View → what is said of it; "" is for all views."""
    return dict(item.rpartition("=")[::2] for item in items)


@dataclass(frozen=True, kw_only=True)
class Relations:
    """Views that are links, similarities or distances of samples."""

    graph: Many = option(
        "View of links: a list (id, id, weight) or a matrix; repeatable.",
        (),
        "NAME=FILE",
    )
    kernel: Many = option("View of similarities; repeatable.", (), "NAME=FILE")
    distance: Many = option("View of distances; repeatable.", (), "NAME=FILE")


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """The files of a command, and how they are read."""

    files: Many = argument("VIEW...", "One file per view, or name=file.")
    reading: Reading = field(default_factory=Reading)
    max_unpacked: float | None = MAX_UNPACKED()


@dataclass(frozen=True, kw_only=True)
class ClinicalOptions:
    """Clinical data and known classes of the samples."""

    clinical: str | None = option(
        "Clinical table; its columns are tested by cluster.", None, "FILE"
    )
    time: str | None = option("Column with the survival time.", None, "COLUMN")
    event: str | None = option(
        "Column with the event, and the value that marks it.", None, "COLUMN[=VALUE]"
    )
    horizon: float | None = option(
        "Time up to which mean survival is compared (default: as long as 10% of each cluster are at risk).",
        None,
        "TIME",
    )
    covariates: str | None = option(
        "Clinical columns for which hazard ratios are adjusted.", None, "COLUMN,COLUMN"
    )
    labels: str | None = option(
        "Known classes (id and label); only to score the clusters.", None, "FILE[:COLUMN]"
    )

    def check_clinical(self) -> None:
        """Refuse options that need a clinical table if there is none."""
        for name in ("time", "event", "covariates", "adjust", "batch"):
            if self.clinical is None and getattr(self, name, None):
                raise ValueError(
                    f"--{name} names a column of the clinical table: give --clinical FILE"
                )


@dataclass(frozen=True, kw_only=True)
class OutcomeOptions(ClinicalOptions):
    """What clusters are compared with, and whether figures are drawn of that."""

    gene_sets: str | None = option("Gene sets (pathways) to test by cluster.", None, "FILE.gmt")
    figures: bool = option("Also write figures as SVG, PNG and PDF.", False)


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How much a command prints."""

    quiet: bool = option("Print errors only.", False)
    json: bool = option("Print the summary as JSON.", False)


@dataclass(frozen=True, kw_only=True)
class FitRequest(FileOptions, OutcomeOptions, OutputOptions):
    """Cluster the samples of your files; write labels, weights, parts, the model and a report.

    One file is one view of the samples (.csv .tsv .txt, also .gz .bz2 .zst; .xlsx .xls .ods, also
    book.xlsx:Sheet; .parquet .feather .rds .rda .npy .npz .mat .mtx .h5ad .h5mu, and .h5 .zarr).
    Files .npy .parquet .h5ad .h5 .zarr of more than 256 MiB together are read from disk by rows. Rows
    are samples, matched by the ids in the first column. A table whose column names are the ids of other
    files is transposed.

    \b
    Examples:
      manyview fit rna.csv meth.tsv protein.parquet --clusters 4 --out run/
      manyview fit rna=expression.csv atac=peaks.mtx --clusters auto --out run/
      manyview fit words.csv --graph cites=links.csv --clusters 6 --out run/
      manyview fit cells.h5mu --clusters communities --resolution 1 --out run/
      manyview fit a.csv b.csv --clusters 3 --missing drop --labels truth.csv --out run/
      manyview fit rna.csv mutations.csv --clusters 4 --zero-rows mutations=observed --out run/
      manyview fit genes.csv proteins.csv --transpose genes --index patient --clusters 5 --out run/
      manyview fit rna.csv meth.csv --clusters auto --out run/ --clinical clinical.csv \\
        --time os_months --event dead --labels clinical.csv:subtype --batch plate

    \b
    Exit status: 0 done, 1 failure, 2 bad input, 130 interrupted.
    """

    clusters: str = option(
        "A number; auto: chosen from the data; communities: Leiden communities of the fused graph.",
        metavar="K|auto|communities",
    )
    out: Path = option("New or empty folder for the results.")
    method: str = METHOD("robust is recommended; wmnmf is the paper's.")
    scale: str | None = option(
        "robust: auto, log, quantile, sqrt, embedding, none; wmnmf: sum, total, minmax, standard, tfidf, "
        "sqrt, none; also by view (rna=log,protein=quantile).",
        None,
    )
    view_weights: str | None = option(
        "robust: learned, equal, or numbers by view (rna=2,protein=1); 0: not used for labels.",
        None,
    )
    zero_rows: str | None = option(
        "robust: what a row of zeros means: missing, observed or auto; also by view (mutations=observed).",
        None,
    )
    missing: str = option(
        "allow: all samples; drop: only those complete in all files.",
        "allow",
        choices=("allow", "drop"),
    )
    adjust: Many = option(
        "Clinical column to regress out of every view (age, sex); repeatable.",
        (),
        "COLUMN",
    )
    batch: Many = option(
        "Clinical column (plate, site) whose batches are aligned; repeatable.",
        (),
        "COLUMN",
    )
    names: Many = NAMES()
    relations: Relations = field(default_factory=Relations)
    seed: int = SEED()
    force: bool = FORCE()
    report: bool = option("Write report.html, with stability from refits.", True)
    on_disk: bool = option("Read files by rows even if they fit in memory.", False)
    checkpoint: Path | None = option(
        "File from which the same command continues after an interruption.", None
    )
    engine: str = option(
        "torch: GPUs; dask: several processes or machines.",
        "numpy",
        choices=("numpy", "torch", "dask"),
    )
    device: str = option("For torch: auto, cpu, cuda or cuda:1.", "auto")
    resolution: float | None = option(
        "For communities: higher gives more clusters (default: 1).", None
    )


@dataclass(frozen=True, kw_only=True)
class OutcomesRequest(OutcomeOptions, OutputOptions):
    """Compare the clusters of a finished fit with survival, clinical columns, gene sets and known classes.

    Writes the tables into the folder of the run and updates its report. Samples are matched by id;
    columns of time and event are recognized by name unless you name them.

    \b
    Examples:
      manyview outcomes run/ --clinical clinical.csv
      manyview outcomes run/ --clinical clinical.csv --time os_months --event dead
      manyview outcomes run/ --labels clinical.csv:subtype
    """

    out: Path = argument("RUN", "Folder of a finished fit.")
    match: str = MATCH(default="exact")


@dataclass(frozen=True, kw_only=True)
class PredictRequest(FileOptions, OutcomeOptions, OutputOptions):
    """Put new samples into the clusters of a saved model.

    Files are matched to the views of the fit by name. With the robust method a view may be absent, or
    lack samples or features. The new samples are compared with those of the fit; --report writes
    tables and a report on them.

    \b
    Examples:
      manyview predict run/model.npz rna=new_rna.csv meth=new_meth.tsv --out labels.csv
      manyview predict run/ rna=new_rna.csv --out labels.csv
      manyview predict run/ rna=new_rna.csv --rescale --out labels.csv --report cohort2/ \\
        --clinical clinical2.csv --covariates age,stage
    """

    model: Path = argument("MODEL", "Folder or model.npz of a run.")
    out: Path = option("File for id, cluster and confidence (CSV).")
    rescale: bool = option(
        "Estimate the range of each feature anew, for another platform.",
        False,
    )
    report: Path | None = option("Folder for tables and a report on the new samples.", None)
    relations: Relations = field(default_factory=Relations)
    new_batch: str | None = option("Batch of these samples, known or new.", None, name="--batch")
    fitted_on: Many = option(
        "File of the fit on disk; VIEW=FILE if it moved; repeatable.",
        (),
        "FILE",
    )
    force: bool = FORCE()


@dataclass(frozen=True, kw_only=True)
class SelectRequest(FileOptions, OutputOptions):
    """Recommend a number of clusters, with reasons.

    \b
    Example:
      manyview select-k rna.csv meth.tsv protein.parquet --to 10 --out choice/
    """

    out: Path = option("Folder for the results.")
    smallest: int = option("Smallest number of clusters.", 2, min=2, name="--from")
    largest: int | None = option(
        "Largest number of clusters (14, or more with ten samples each, up to 100).",
        None,
        min=2,
        name="--to",
    )
    method: str = METHOD("wmnmf: choose the rank by its own fits.")
    seed: int = SEED()
    force: bool = FORCE()


@dataclass(frozen=True, kw_only=True)
class CompareRequest(FileOptions, ClinicalOptions, OutputOptions):
    """Run every method on your files and write tables, a picture and a page to compare them.

    The same command continues after an interruption. agreement.csv and consensus.csv have the agreement
    of the methods and a consensus clustering; with --clinical, clinical.csv has survival and clinical
    columns for every method.
    """

    clusters: int = option("Number of clusters.", min=1)
    out: Path = option("Folder for the results.")
    methods: str = option("all, paper, honest, omics, or names separated by commas.", "all")
    scale: str | None = option("Scale every feature for every method: standard or minmax.", None)
    missing: str = option(
        "error: refuse empty cells; drop: only samples complete in all files.",
        "error",
        choices=("error", "drop"),
    )
    runs: int = option("Runs of each method.", 10, min=1)
    seed: int = option("Seed of all runs.", 0, min=0)
    jobs: int = option("Parallel runs.", 1, min=1)
    max_seconds: float = option("Time limit of a run.", 300.0)
    max_memory: float = option("Memory limit of a run, in GiB.", 4.0)
    force: bool = BESIDE()

    @property
    def resume(self) -> str:
        return f"Interrupted. Finished runs are in {self.out}/runs; run it again to go on."


@dataclass(frozen=True, kw_only=True)
class DemoRequest:
    """Fit the sample cohort from its tables and write its report; then cluster the shipped handwritten
    digits, next to the paper's numbers and a simple baseline.
    """

    out: Path = option("Folder for the results.", Path("demo-results"))
    seed: int = option("Seed of the first fit of the digits.", 0)
    runs: int = option("Fits of the digits.", 3, min=1)
    force: bool = FORCE()


@dataclass(frozen=True, kw_only=True)
class DatasetsRequest(OutputOptions):
    """List the data sets that come with manyview, or write them as tables."""

    out: Path | None = option("Folder for CSV files.", None)
    seed: int = option("Seed of the synthetic data.", 0, min=0)
    force: bool = FORCE()


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest:
    """Run the paper's experiments; write their tables and a page.

    The same command continues after an interruption.
    """

    experiments: Many = argument(
        "[EXPERIMENT]...",
        "all, or digits printed mlrssc honest synthetic lihc nutrimouse p beta k seeds runtime "
        "operations convergence noise degeneracy.",
        (),
    )
    out: Path = option("Folder for the results.", Path("reproduction"))
    replications: int = option("Seeds per method.", 20, min=1)
    seed: int = option("Seed of all runs.", 0, min=0)
    jobs: int = option("Parallel processes.", 2, min=1)
    data: Path | None = option("Folder of your LIHC files.", None)
    again: bool = option("Rerun stored cells made by other code.", False)
    force: bool = BESIDE()

    @property
    def resume(self) -> str:
        return f"Interrupted. Finished cells are in {self.out}/runs; run it again to go on."


@dataclass(frozen=True, kw_only=True)
class ReportRequest(OutputOptions):
    """Write the page of a finished run, or write it again.

    After a fit with --no-report it reads the files of the fit again (if their checksums are the same)
    and writes the full report. After a fit with a report it updates the page from the tables. For a
    comparison it prints where the page is. For a reproduction it builds page, figures and tables
    from the result files.

    \b
    Examples:
      manyview report run/
      manyview report run/ --stability 20
      manyview report run/ --names 0=Basal-like --names 1=Luminal
      manyview report reproduction/ --markdown
    """

    out: Path = argument("RUN", "Folder of fit, compare or reproduce.")
    stability: int | None = option("Fit: number of refits for stability.", None, "N")
    names: Many = NAMES()
    markdown: bool = option("Reproduction: print the numbers as Markdown.", False)
    force: bool = option("Fit: measure everything again.", False)
    max_unpacked: float | None = MAX_UNPACKED()


@dataclass(frozen=True, kw_only=True)
class AppRequest:
    """Cluster tables in your browser, on a page that only this machine can reach.

    Each run is a folder as fit writes it; the page shows the command that repeats the run.
    From another machine, forward the port: ssh -L 8123:127.0.0.1:8123 with --port 8123.
    """

    folder: Path = option("Folder for runs and copies of their tables.", Path("manyview-runs"))
    port: int = option("Port; 0: any free one.", 0, min=0, max=65535)
    browser: bool = option("Open your browser.", True)
    max_upload: float = option("Size limit of a table.", 1.0, "GIB")
    max_hours: float = option("Time limit of a run.", 6.0)
    max_memory: float | None = option("Memory limit of a run (default: free memory).", None, "GIB")

    resume = "The page is closed; finished runs are kept."


def options_in(request: type) -> Iterator[tuple[Field, Any]]:
    """The options of a class with their types: arguments first, then its own, then those it
    inherits or holds."""
    hints, order = get_type_hints(request), request.__mro__
    owner = {n: i for i, cls in enumerate(order) for n in vars(cls).get("__annotations__", ())}
    for item in sorted(
        fields(request), key=lambda item: ("argument" not in item.metadata, owner[item.name])
    ):
        if is_dataclass(hints[item.name]):
            yield from options_in(hints[item.name])
        else:
            yield item, hints[item.name]


def values_of(request: Any) -> dict[str, Any]:
    """Option → value, as `run.json` has it."""
    found: dict[str, Any] = {}
    for name, value in vars(request).items():
        found |= values_of(value) if is_dataclass(value) else {name: value}
    return found


def check_choices(request: Any) -> None:
    """Refuse words that an option does not take."""
    said = values_of(request)
    for item, _ in options_in(type(request)):
        value, choices = said[item.name], item.metadata["choices"]
        if choices and value is not None and value not in choices:
            raise ValueError(f"--{item.name} must be one of {', '.join(choices)}, got {value!r}")


def request_of(request: type[T], values: Mapping[str, Any]) -> T:
    """An object of a class of options from values by name, of which others are left out."""
    hints = get_type_hints(request)
    given: dict[str, Any] = {}
    for name in request.__dataclass_fields__:  # type: ignore[attr-defined]
        if is_dataclass(hints[name]):
            given[name] = request_of(hints[name], values)
        elif name in values:
            value = values[name]
            given[name] = tuple(value or ()) if hints[name] == Many else value
    return request(**given)


def command_words(request: Any) -> list[str]:
    """What to type for these options; those that are as by default, and --force, are left out."""
    words, said = list[str](), values_of(request)
    for item, _ in options_in(type(request)):
        value = said[item.name]
        name = item.metadata.get("name", f"--{item.name.replace('_', '-')}")
        if value is None or value == item.default or item.name in ("force", "quiet", "json"):
            continue
        if isinstance(value, bool):
            words.append(name if value else f"--no-{name[2:]}")
            continue
        for text in value if isinstance(value, tuple) else (value,):
            shown = f"{text:g}" if isinstance(text, float) else str(text)
            if "argument" in item.metadata:
                words.append(shown)
            else:  # what begins with a hyphen would be another option
                words += [f"{name}={shown}"] if shown.startswith("-") else [name, shown]
    return words


def command_line(command: str, request: Any) -> str:
    """The same as text for a terminal."""
    return shlex.join(["manyview", command, *command_words(request)])
