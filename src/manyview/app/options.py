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
    return field(default=default, metadata={"help": help, "metavar": metavar, "argument": True})


FILES = partial(argument, "VIEW...", "One file per view, or name=file.")
LABELS = partial(
    option, "Known classes (id and label), to score the clusters only.", None, "FILE[:COLUMN]"
)
CLINICAL = partial(
    option, "Table of what else is known of the samples, tested by cluster.", None, "FILE"
)
TIME = partial(option, "Its column with the time of survival.", None, "COLUMN")
EVENT = partial(
    option,
    "Its column that says who had the event, and by which value if that is unclear.",
    None,
    "COLUMN[=VALUE]",
)
HORIZON = partial(
    option,
    "Time up to which mean survival is compared; by default the last with 10% of every cluster, and 5 "
    "samples, still at risk.",
    None,
    "TIME",
)
COVARIATES = partial(
    option,
    "Columns of the clinical table for which hazard ratios are adjusted (Cox regression).",
    None,
    "COLUMN,COLUMN",
)
GENE_SETS = partial(
    option, "Gene sets (pathways), tested by cluster in the views of genes.", None, "FILE.gmt"
)
FIGURES = partial(option, "Draw the figures as SVG, PNG and PDF, too.", False)
NAMES = partial(
    option, "Name of a cluster in the report (0=Basal-like); may be repeated.", (), "NUMBER=NAME"
)
SEED = partial(option, "The same seed gives the same result.", 0, min=0)
FORCE = partial(option, "Replace the results of an earlier run.", False)
MAX_UNPACKED = partial(
    option, "Most that a packed file may take in memory, if you know it.", None, "GIB"
)
BESIDE = partial(option, "Write beside what is in the folder; nothing there is lost.", False)
MATCH = partial(
    option,
    "When two ids are one sample: as written; case and marks do not count; barcodes.",
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

    index: Many = option("Column of sample ids, VIEW=COLUMN, or VIEW= for none.", (), "COLUMN")
    transpose: Many = option(
        "This file has samples in columns; all, or none; may be repeated.", (), "VIEW"
    )
    header: Many = option(
        "Whether the first line is headings, or VIEW=yes; may be repeated.", (), "yes|no"
    )
    match: str | None = MATCH(default=None)
    keep_normals: bool = option(
        "Use normal tissue and controls, too, which TCGA barcodes name.", False
    )
    tumors: str | None = option(
        "Several tumor samples of a TCGA patient: use one, or all.", None, choices=TUMORS
    )
    decimal: Many = option("Decimal mark, or VIEW=comma, if it is in doubt.", (), "comma|point")
    na: Many = option("This text stands for an empty cell; may be repeated.", (), "TEXT")
    drop: Many = option("Leave this column out, or VIEW=COLUMN.", (), "COLUMN")
    drop_text: bool = option("Leave columns of text out.", False)
    one_hot: bool = option("Make every word of a column a column of 0 and 1.", False)
    as_view: Many = option("This table is a view, though it looks like labels.", (), "VIEW")

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
    """Cluster number → name."""
    found = {}
    for item in items:
        number, _, name = (part.strip() for part in item.partition("="))
        if not (number.isdecimal() and name):
            raise ValueError(
                f"--names {item}: write the number of a cluster and its name, as 0=Basal"
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
        "Links between the samples as a view: a list (id, id, weight), or a matrix; may be repeated.",
        (),
        "NAME=FILE",
    )
    kernel: Many = option("Similarities between the samples; may be repeated.", (), "NAME=FILE")
    distance: Many = option("Distances between the samples; may be repeated.", (), "NAME=FILE")


@dataclass(frozen=True, kw_only=True)
class Output:
    """How much a command prints."""

    quiet: bool = option("Say nothing but errors.", False)
    json: bool = option("Print the summary as JSON.", False)


class KnownOptions:
    """What is known of the samples beside the views: options that two commands share."""

    clinical: str | None
    labels: str | None
    time: str | None
    event: str | None
    horizon: float | None
    covariates: str | None
    adjust: Many = ()
    batch: Any = ()  #: columns; of `predict` the name of one batch

    def check_clinical(self) -> None:
        """Refuse options that need a clinical table if there is none."""
        for name in ("time", "event", "covariates", "adjust", "batch"):
            if self.clinical is None and getattr(self, name):
                raise ValueError(
                    f"--{name} names a column of the clinical table: give --clinical FILE"
                )


@dataclass(frozen=True, kw_only=True)
class FitRequest(KnownOptions):
    """Cluster the samples of your files; write labels, weights, parts, the model and a report.

    One file is one view of the samples (.csv .tsv .txt, also .gz .bz2 .zst; .xlsx .xls .ods, also
    book.xlsx:Sheet; .parquet .feather .rds .rda .npy .npz .mat .mtx .h5ad .h5mu, and .h5 .zarr).
    Files .npy .parquet .h5ad .h5 .zarr of over 256 MiB in all stay on disk.
    Samples are matched by the ids in the first column; rows are samples, but a table whose
    headings are the other files' ids is turned.

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

    files: Many = FILES()
    clusters: str = option(
        "How many clusters; auto chooses, communities takes those of the fused graph.",
        metavar="K|auto|communities",
    )
    out: Path = option("Folder for the results, new or empty.")
    method: str = METHOD("robust is recommended; wmnmf is the paper's.")
    scale: str | None = option(
        "robust: auto, log, quantile, sqrt, embedding or none, or by view (rna=log,protein=quantile); "
        "wmnmf: sum, total, minmax, standard, tfidf, sqrt or none, also by view.",
        None,
    )
    view_weights: str | None = option(
        "robust: learned, equal, or numbers by view (rna=2,protein=1); 0 leaves a view out of the labels.",
        None,
    )
    zero_rows: str | None = option(
        "robust: whether a row of zeros is missing or observed, or by view "
        "(mutations=observed); auto: observed in tables of 0 and 1, of one column, or with "
        "numbers below 0.",
        None,
    )
    missing: str = option(
        "allow: samples of any file; drop: those complete in every file.",
        "allow",
        choices=("allow", "drop"),
    )
    labels: str | None = LABELS()
    clinical: str | None = CLINICAL()
    time: str | None = TIME()
    event: str | None = EVENT()
    horizon: float | None = HORIZON()
    covariates: str | None = COVARIATES()
    gene_sets: str | None = GENE_SETS()
    adjust: Many = option(
        "Covariate of the clinical table (age, sex) to regress out of every view; may be repeated.",
        (),
        "COLUMN",
    )
    batch: Many = option(
        "Column of the clinical table (plate, site) whose batches are aligned; may be repeated.",
        (),
        "COLUMN",
    )
    figures: bool = FIGURES()
    names: Many = NAMES()
    reading: Reading = field(default_factory=Reading)
    relations: Relations = field(default_factory=Relations)
    seed: int = SEED()
    force: bool = FORCE()
    report: bool = option("Write report.html; without it no refits judge the stability.", True)
    on_disk: bool = option("Read files by rows even if they fit in memory.", False)
    checkpoint: Path | None = option(
        "File for the state of the fit; the same command goes on from it.", None
    )
    engine: str = option(
        "torch is for GPUs, dask for several processes or machines.",
        "numpy",
        choices=("numpy", "torch", "dask"),
    )
    device: str = option("With --engine torch: auto, cpu, cuda or cuda:1.", "auto")
    resolution: float | None = option(
        "With --clusters communities: more gives more clusters; 1 unless said.", None
    )
    max_unpacked: float | None = MAX_UNPACKED()
    output: Output = field(default_factory=Output)


@dataclass(frozen=True, kw_only=True)
class OutcomesRequest(KnownOptions):
    """Ask what the clusters of a finished fit mean: survival, clinical columns, known classes.

    Writes the tables into the folder of the run and makes its report anew. Samples are matched by
    their ids; columns of time and event are recognised by their names if they are not given.

    \b
    Examples:
      manyview outcomes run/ --clinical clinical.csv
      manyview outcomes run/ --clinical clinical.csv --time os_months --event dead
      manyview outcomes run/ --labels clinical.csv:subtype
    """

    out: Path = argument("RUN", "Folder of a finished fit.")
    clinical: str | None = CLINICAL()
    time: str | None = TIME()
    event: str | None = EVENT()
    horizon: float | None = HORIZON()
    covariates: str | None = COVARIATES()
    gene_sets: str | None = GENE_SETS()
    labels: str | None = LABELS()
    match: str = MATCH(default="exact")
    figures: bool = FIGURES()
    output: Output = field(default_factory=Output)


@dataclass(frozen=True, kw_only=True)
class PredictRequest(KnownOptions):
    """Put new samples into the clusters of a saved model.

    Files are told apart by the names of the views at the fit. With the robust method a view may be
    left out, or lack some samples or features; the new samples are compared with those of the fit, and
    --report writes tables and a report on them as a fit does.

    \b
    Examples:
      manyview predict run/model.npz rna=new_rna.csv meth=new_meth.tsv --out labels.csv
      manyview predict run/ rna=new_rna.csv --out labels.csv
      manyview predict run/ rna=new_rna.csv --rescale --out labels.csv --report cohort2/ \\
        --clinical clinical2.csv --covariates age,stage
    """

    model: Path = argument("MODEL", "model.npz of a run, or the folder of the run.")
    files: Many = FILES()
    out: Path = option("File for id, cluster and confidence (CSV).")
    rescale: bool = option(
        "Estimate the range of each feature in the new samples: for another platform, same mix of samples.",
        False,
    )
    report: Path | None = option("Folder for tables and a report on the new samples.", None)
    clinical: str | None = CLINICAL()
    time: str | None = TIME()
    event: str | None = EVENT()
    horizon: float | None = HORIZON()
    covariates: str | None = COVARIATES()
    gene_sets: str | None = GENE_SETS()
    labels: str | None = LABELS()
    figures: bool = FIGURES()
    reading: Reading = field(default_factory=Reading)
    relations: Relations = field(default_factory=Relations)
    batch: str | None = option(
        "Batch of these samples, after a fit with --batch: one of the fit or a new name.", None
    )
    fitted_on: Many = option(
        "A file of the fit that stayed on disk, or VIEW=FILE if it moved; may be repeated.",
        (),
        "FILE",
    )
    max_unpacked: float | None = MAX_UNPACKED()
    force: bool = FORCE()
    output: Output = field(default_factory=Output)


@dataclass(frozen=True, kw_only=True)
class SelectRequest:
    """Recommend a number of clusters, with reasons.

    \b
    Example:
      manyview select-k rna.csv meth.tsv protein.parquet --to 10 --out choice/
    """

    files: Many = FILES()
    out: Path = option("Folder for the table, the picture and the reasons.")
    smallest: int = option("Fewest clusters tried.", 2, min=2, name="--from")
    largest: int | None = option(
        "Most clusters tried; up to 100, with ten samples for each.", None, min=2, name="--to"
    )
    method: str = METHOD("For wmnmf the rank of its own fits is chosen.")
    criterion: str | None = option(
        "With --method wmnmf: how the rank is chosen. [default: bicv]",
        None,
        choices=("bicv", "imputation"),
    )
    reading: Reading = field(default_factory=Reading)
    seed: int = SEED()
    max_unpacked: float | None = MAX_UNPACKED()
    force: bool = FORCE()
    output: Output = field(default_factory=Output)


@dataclass(frozen=True, kw_only=True)
class CompareRequest(KnownOptions):
    """Run every method on your files and write tables, a picture and a page to compare them.

    Finished runs are kept in the output folder: the same command goes on where it was interrupted.
    Agreement of the methods and a consensus clustering are in agreement.csv and consensus.csv; with
    --clinical, clinical.csv has survival and clinical columns of every method.
    """

    files: Many = argument("VIEW_FILE...", "One file per view, or name=file; kinds as for fit.")
    labels: str | None = option("Known classes: id and label, or one column in file order.", None)
    clinical: str | None = CLINICAL()
    time: str | None = TIME()
    event: str | None = EVENT()
    horizon: float | None = HORIZON()
    covariates: str | None = COVARIATES()
    clusters: int = option("How many clusters to look for.", min=1)
    out: Path = option("Folder for the result files.")
    methods: str = option("all, paper, honest, omics, or names with commas between them.", "all")
    scale: str | None = option("standard or minmax: every feature, for every method.", None)
    missing: str = option(
        "error: no empty cells; drop: only samples complete in every file.",
        "error",
        choices=("error", "drop"),
    )
    runs: int = option("Runs of each method.", 10, min=1)
    seed: int = option("The runs' seeds are derived from it.", 0, min=0)
    jobs: int = option("Runs at the same time.", 1, min=1)
    max_seconds: float = option("Longest time of one run.", 300.0)
    max_memory: float = option("Most memory of one run, in GiB.", 4.0)
    reading: Reading = field(default_factory=Reading)
    max_unpacked: float | None = MAX_UNPACKED()
    force: bool = BESIDE()
    output: Output = field(default_factory=Output)

    @property
    def resume(self) -> str:
        return f"Interrupted. Finished runs are in {self.out}/runs; run it again to go on."


@dataclass(frozen=True, kw_only=True)
class DemoRequest:
    """Fit the sample cohort from its tables and write its report; then cluster the shipped handwritten
    digits, next to the paper's numbers and a simple baseline.
    """

    out: Path = option("Folder for the result files.", Path("demo-results"))
    seed: int = option("Seed of the first fit of the digits.", 0)
    runs: int = option("Fits of the digits with different seeds.", 3, min=1)
    force: bool = FORCE()


@dataclass(frozen=True, kw_only=True)
class DatasetsRequest:
    """List the data that comes with manyview, or write it as tables to try things on."""

    out: Path | None = option("Write the data there, a folder of CSV files for each.", None)
    seed: int = option("Seed of the synthetic data.", 0, min=0)
    force: bool = FORCE()
    output: Output = field(default_factory=Output)


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest:
    """Run the paper's experiments and write their tables and the page that holds them together.

    Finished cells are kept in the output folder: the same command goes on where it was interrupted.
    """

    experiments: Many = argument(
        "[EXPERIMENT]...",
        "all, or digits printed mlrssc honest synthetic lihc nutrimouse p beta k seeds runtime "
        "operations convergence noise degeneracy.",
        (),
    )
    out: Path = option("Folder for the result files.", Path("reproduction"))
    replications: int = option("Seeds of every method.", 20, min=1)
    seed: int = option("The seeds are derived from it.", 0, min=0)
    jobs: int = option("Processes at the same time.", 2, min=1)
    data: Path | None = option("Folder of your LIHC files.", None)
    linear_mlrssc: str = option(
        "Tuned linear MLRSSC. full: all digits, hours; small: 50 per class; skip; auto.", "auto"
    )
    again: bool = option("Rerun stored cells that other code has made.", False)
    force: bool = BESIDE()

    @property
    def resume(self) -> str:
        return f"Interrupted. Finished cells are in {self.out}/runs; run it again to go on."


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """Make the page of a finished run, or make it anew.

    Of a fit with --no-report it reads the files of the fit once more (only if their checksums are
    those of then), refits parts of them, and writes the page that the fit would have written. Of a
    fit that has a page it writes the page anew from the tables. Of a comparison it says where the
    page is. Of a reproduction it builds page, figures and tables from the result files.

    \b
    Examples:
      manyview report run/
      manyview report run/ --stability 20
      manyview report run/ --names 0=Basal-like --names 1=Luminal
      manyview report reproduction/ --markdown
    """

    out: Path = argument("RUN", "What fit, compare or reproduce has written.")
    stability: int | None = option(
        "Of a fit: so many refits, to see which clusters come back; 0 makes none.", None, "N"
    )
    names: Many = NAMES()
    markdown: bool = option("Of reproduce: print the numbers as Markdown instead.", False)
    force: bool = option(
        "Of a fit: measure everything anew, though the run has a page already.", False
    )
    max_unpacked: float | None = MAX_UNPACKED()
    output: Output = field(default_factory=Output)


@dataclass(frozen=True, kw_only=True)
class AppRequest:
    """Open a page in the browser on which to drop tables; only this machine can reach it.

    Each run is a folder as fit makes it, and the page shows the command that makes it again.
    From another machine, forward the port: ssh -L 8123:127.0.0.1:8123 with --port 8123.
    """

    folder: Path = option(
        "Where runs are kept, with copies of their tables.", Path("manyview-runs")
    )
    port: int = option("0 takes a free one.", 0, min=0, max=65535)
    browser: bool = option("Open the page in your browser.", True)
    max_upload: float = option("Largest table taken.", 1.0, "GIB")
    max_hours: float = option("Longest time of one run.", 6.0)
    max_memory: float | None = option("Most memory of one run; what is free.", None, "GIB")

    resume = "The page is closed; finished runs are kept."


def options_in(request: type) -> Iterator[tuple[Field, Any]]:
    """The options of a class with their types; those of the classes it holds are in their place."""
    hints = get_type_hints(request)
    for item in fields(request):
        if is_dataclass(hints[item.name]):
            yield from options_in(hints[item.name])
        else:
            yield item, hints[item.name]


def check_choices(request: Any) -> None:
    """Refuse words that an option does not take."""
    for item in fields(request):
        value, choices = getattr(request, item.name), item.metadata.get("choices")
        if is_dataclass(value):
            check_choices(value)
        elif choices and value is not None and value not in choices:
            raise ValueError(f"--{item.name} must be one of {', '.join(choices)}, got {value!r}")


def request_of(request: type[T], values: Mapping[str, Any], *, nested: bool = False) -> T:
    """An object of a class of options from values by name, of which others are left out.

    ``nested`` is how run.json has the classes that it holds: each under its own name.
    """
    hints = get_type_hints(request)
    given: dict[str, Any] = {}
    for name in request.__dataclass_fields__:  # type: ignore[attr-defined]
        if is_dataclass(hints[name]):
            inside = (values.get(name) or {}) if nested else values
            given[name] = request_of(hints[name], inside, nested=nested)
        elif name in values:
            value = values[name]
            given[name] = tuple(value or ()) if hints[name] == Many else value
    return request(**given)


def command_words(request: Any) -> list[str]:
    """What to type for these options; those that are as by default, and --force, are left out."""
    words: list[str] = []
    for item in fields(request):
        value = getattr(request, item.name)
        name = item.metadata.get("name", f"--{item.name.replace('_', '-')}")
        if is_dataclass(value):
            words += command_words(value)
        elif value is None or value == item.default or item.name in ("force", "quiet", "json"):
            continue
        elif isinstance(value, bool):
            words.append(name if value else f"--no-{name[2:]}")
        else:
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
