"""The command line: each command is a class of options and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import MISSING, Field
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from manyview._version import __version__
from manyview.app import options
from manyview.io.limits import unpacking_up_to

from .terminal import Voice, reported

#: Command → its options, and the function that is called with them and a voice, loaded when it runs:
#: help and completion are there at once.
COMMANDS: dict[str, tuple[type, str, str]] = {
    "demo": (options.DemoRequest, "manyview.app.cli.demo", "run_demo"),
    "compare": (options.CompareRequest, "manyview.app.cli.compare", "run_compare"),
    "datasets": (options.DatasetsRequest, "manyview.app.cli.demo", "run_datasets"),
    "fit": (options.FitRequest, "manyview.app.cli.fit", "run_fit"),
    "outcomes": (options.OutcomesRequest, "manyview.app.cli.outcomes", "run_outcomes"),
    "predict": (options.PredictRequest, "manyview.app.cli.predict", "run_predict"),
    "select-k": (options.SelectRequest, "manyview.app.cli.select_k", "run_select_k"),
    "reproduce": (options.ReproduceRequest, "manyview.app.cli.report", "run_reproduce"),
    "report": (options.ReportRequest, "manyview.app.cli.report", "run_report"),
    "app": (options.AppRequest, "manyview.app.web.server", "run_app"),
}

app = typer.Typer(
    help="Cluster samples measured in several ways, and learn how much weight each view deserves.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"manyview {__version__}")
        raise typer.Exit()


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Keeps sub-commands named even while there is only one."""


def _command(name: str, request: type, module: str, function: str) -> Callable[..., None]:
    """What typer calls: a function with the options of ``request`` as its parameters."""

    def run(**values: Any) -> None:
        ask: Any = options.request_of(request, values)
        ends = {key: getattr(ask, key, None) for key in ("out", "checkpoint", "resume")}
        allowed = values.get("max_unpacked")
        with (
            reported(name, **ends),
            unpacking_up_to(allowed) if "max_unpacked" in values else nullcontext(),
        ):
            options.check_choices(ask)
            _refuse_absent(values.get("files", ()))
            voice = Voice(values.get("quiet", False), values.get("json", False))
            getattr(_loaded(module), function)(ask, voice)

    found = [_parameter(item, kind) for item, kind in options.options_in(request)]
    run.__name__, run.__doc__ = name, request.__doc__
    run.__signature__ = Signature(found)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in found}
    return run


def _parameter(item: Field, kind: Any) -> Parameter:
    """An option as a parameter for typer."""
    about = {name: value for name, value in item.metadata.items() if name != "choices"}
    make = typer.Argument if about.pop("argument", False) else typer.Option
    named = [about.pop("name")] if "name" in about else []
    if kind is bool and not item.default:  # not also --no-force
        named = [f"--{item.name.replace('_', '-')}"]
    return Parameter(
        item.name,
        Parameter.KEYWORD_ONLY,
        default=Parameter.empty if item.default is MISSING else item.default,
        annotation=Annotated[list[str] if kind == options.Many else kind, make(*named, **about)],
    )


def _loaded(module: str) -> Any:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "manyview").split(".")[0] == "manyview":
            raise
        raise ImportError(
            f"The manyview command needs {error.name}: pip install 'manyview[app]'"
        ) from None


def _refuse_absent(items: list[str]) -> None:
    """A mistyped name is the commonest mistake: it is reported before anything heavy is loaded."""
    for item in items:
        if item.startswith("="):
            return  # no name=path: the reader has a sentence of its own
        named = item.partition("=")[2] or item
        if not any(is_there(text) for text in (item, named)):
            raise ValueError(f"{named} does not exist; name a file")


def is_there(text: str) -> bool:
    """Whether it is a file, or one with the name of a sheet or an array behind it."""
    while text:
        try:
            if Path(text).exists():
                return True
        except (OSError, ValueError):  # a name no file system takes: the reader says so
            return True
        text = text.rpartition(":")[0]
    return False


for _name, (_request, _module, _function) in COMMANDS.items():
    app.command(_name)(_command(_name, _request, _module, _function))
