"""The command line for the tests: what works, what is refused, and small tables to try it on."""

import csv

import pandas as pd
from typer.testing import CliRunner

from conftest import blobs
from manyview.app.cli.app import app


def run(*words, **environment):
    return CliRunner().invoke(app, [str(word) for word in words], env=environment)


def done(*words):
    """The result of a command that works."""
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result


def refused(sentence, *words):
    """The result of a command that is bad input, and says so in one sentence at the end."""
    result = run(*words)
    said = result.stderr.splitlines()
    assert result.exit_code == 2 and sentence in " ".join(said), result.output
    assert said[-1].startswith(f"manyview {words[0]}: ") and "Traceback" not in result.output
    return result


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_tables(folder, names=("rna", "prot"), n=30, features=(4, 5), **how):
    """CSV files of well separated groups, the ids of their samples, and the groups."""
    views, y = blobs(n=n, features=features, **how)
    ids = [f"p{i}" for i in range(n)]
    for name, X in zip(names, views, strict=True):
        pd.DataFrame(X, index=ids).add_prefix(name).to_csv(folder / f"{name}.csv")
    return [folder / f"{name}.csv" for name in names], ids, y
