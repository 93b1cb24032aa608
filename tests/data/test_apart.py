"""Spreadsheets, R's files, Feather, Parquet and HDF5: read by a process that may neither grow nor write."""

import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_read_fuzz import attempt, mutated
from typer.testing import CliRunner

from fuzz_apart import flipped
from manyview.app.cli.app import app
from manyview.app.files import read_views
from manyview.engines.files.formats import PROGRAM
from manyview.io.child import read_apart
from manyview.io.limits import BadFile

FRAME = pd.DataFrame(
    np.round(np.random.default_rng(0).random((9, 4)) * 20, 2),
    index=pd.Index([f"s{i}" for i in range(9)], name="sample"),
    columns=list("abcd"),
)
#: Copies of each kind that the fuzz makes; some thousands by hand, as docs/safety.md tells.
COPIES = int(os.environ.get("MANYVIEW_FUZZ", "40"))
#: suffix → packages that write and read it, and the kind of reader.
KINDS = {
    ".xlsx": (("openpyxl", "python_calamine"), "spreadsheet"),
    ".xls": (("xlwt", "python_calamine"), "spreadsheet"),
    ".rds": (("rdata",), "r"),
    ".rda": (("rdata",), "r"),
    ".feather": (("pyarrow",), "feather"),
    ".parquet": (("pyarrow",), "parquet"),
    ".h5": (("h5py",), "hdf5"),
    ".h5ad": (("h5py", "anndata"), "hdf5"),
    ".h5mu": (("h5py", "mudata"), "hdf5"),
    ".mat": (("scipy.io",), "scipy"),
    ".mtx": (("scipy.io",), "scipy"),
}


def _tables():
    return pd.DataFrame(index=FRAME.index), pd.DataFrame(index=FRAME.columns)


def made(kind, folder):
    for name in KINDS[kind][0]:
        pytest.importorskip(name)
    path, frame = folder / f"t{kind}", FRAME.reset_index()
    if kind == ".xlsx":
        frame.to_excel(path, index=False)
    elif kind == ".feather":
        frame.to_feather(path)
    elif kind == ".parquet":
        frame.to_parquet(path, index=False)
    elif kind == ".h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file.create_dataset("x", data=FRAME, chunks=(3, 4), compression="gzip")
    elif kind in (".h5ad", ".h5mu"):
        data = pytest.importorskip("anndata").AnnData(sp.csr_matrix(FRAME), *_tables())
        if kind == ".h5ad":
            data.write_h5ad(path)
        else:
            mudata = pytest.importorskip("mudata")
            with mudata.set_options(pull_on_update=False):
                mudata.MuData({"t": data}).write(path)
    elif kind == ".mat":
        pytest.importorskip("scipy.io").savemat(path, {"t": FRAME.to_numpy()})
    elif kind == ".mtx":
        pytest.importorskip("scipy.io").mmwrite(path, sp.coo_array(FRAME))
    elif kind == ".xls":
        xlwt = pytest.importorskip("xlwt")
        book = xlwt.Workbook()
        sheet = book.add_sheet("data")
        for j, name in enumerate(frame.columns):
            sheet.write(0, j, name)
            for i, value in enumerate(frame[name]):
                sheet.write(i + 1, j, value if isinstance(value, str) else float(value))
        book.save(str(path))
    else:
        rdata = pytest.importorskip("rdata")
        rdata.write_rds(path, frame) if kind == ".rds" else rdata.write_rda(path, {"x": frame})
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_numbers(kind, tmp_path):
    read = read_views([made(kind, tmp_path)])
    X = read.views["t"]
    np.testing.assert_allclose(X.toarray() if sp.issparse(X) else X, FRAME.to_numpy())
    if kind in (".h5", ".mat", ".mtx"):  # an array without names
        return
    assert list(read.sample_names) == list(FRAME.index) and read.features["t"] == list("abcd")


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_end_in_a_sentence(kind, tmp_path):
    """Nothing that a damaged file holds is run, and nothing is written."""
    if not hasattr(os, "fork"):
        pytest.skip("copies are read in forks")
    program = Path(__file__).parents[1] / "fuzz_apart.py"
    arrays = KINDS[kind][1] in ("hdf5", "scipy")
    inside = "matlab" if kind == ".mat" else kind
    wanted = {"key": None, "kind": inside, "most": 2**40} if arrays else None
    asked = [PROGRAM, KINDS[kind][1], json.dumps(wanted), made(kind, tmp_path), COPIES, 0]
    environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(program), *map(str, asked)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    ends = json.loads(done.stdout)
    assert sum(ends.values()) == COPIES
    # A reader in C that gives up ends its process; the one who asked gets a sentence (below).
    assert set(ends) <= {"read", "sentence", "signal 6", "signal 11", "signal 14"}, ends
    assert ends.get("sentence", 0) > 0


@functools.cache
def sound(kind):
    """The bytes of a sound file, the same at every call: spreadsheets hold the time of their making."""
    with tempfile.TemporaryDirectory() as folder:
        return made(kind, Path(folder)).read_bytes()


@pytest.mark.parametrize("kind", [".xlsx", ".h5", ".parquet", ".mat"])
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_by_name(kind, tmp_path, data):
    path = tmp_path / f"t{kind}"
    path.write_bytes(mutated(data, sound(kind)))
    attempt(path)


def test_a_program_that_dies_or_prints_without_end_is_a_sentence(tmp_path, monkeypatch):
    data = tmp_path / "t.bin"
    data.write_bytes(b"x" * 100)
    programs = {
        "import os; os.abort()": "takes more than .* in memory",
        "import sys; sys.exit(5)": "takes more than .* in memory",
        "import sys; print('is odd'); sys.exit(3)": "is odd",
        "import sys; sys.exit(9)": "its reader ended with status 9",
        "import sys\nwhile True: sys.stdout.write('x' * 2**20)": "takes more than",
    }
    monkeypatch.setattr("manyview.io.limits.ALWAYS", 2**24)
    for text, sentence in programs.items():
        program = tmp_path / "program.py"
        program.write_text(text)
        with pytest.raises(ValueError, match=sentence):
            read_apart(program, data, "")


def test_a_reader_that_never_ends_is_given_up_or_interrupted(tmp_path, monkeypatch):
    """By its time of computing; and Ctrl-C ends a reader that waits."""
    if sys.platform != "linux":
        pytest.skip("limits of a process are those of Linux")
    data = tmp_path / "t.bin"
    data.write_bytes(b"x" * 100)
    confined = "import json, sys; from manyview.io.child import confine\n"
    confined += "asked = json.loads(sys.argv[2]); confine(asked['room'], asked['seconds'])\n"
    (tmp_path / "computes.py").write_text(confined + "while True: pass")
    monkeypatch.setattr("manyview.io.child.SECONDS", 1)
    with pytest.raises(BadFile, match="could not be read in 1 seconds of computing"):
        read_apart(tmp_path / "computes.py", data, "")
    (tmp_path / "waits.py").write_text(
        f"import os, signal, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        # Python drops an interrupt that arrives in a destructor: ask again, seldom.
        "for _ in range(60): os.kill(os.getppid(), signal.SIGINT); time.sleep(10)"
    )
    # A shell starts what it runs in the background with interrupts ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            read_apart(tmp_path / "waits.py", data, "")
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.filterwarnings("ignore")  # zarr warns of what it does not know
@pytest.mark.parametrize("kind", [".npz", ".zarr", ".zarr of before"])
def test_flipped_bits_in_what_is_read_here_are_refused_by_name_or_read(kind, tmp_path):
    path, rng = tmp_path / f"t{kind.split()[0]}", random.Random(0)
    if kind == ".npz":
        np.savez_compressed(path, a=FRAME)
    else:
        zarr = pytest.importorskip("zarr")
        version = 2 if kind.endswith("before") else 3
        array = zarr.open(str(path), mode="w", shape=(9, 4), chunks=(3, 4), zarr_format=version)
        array[:] = FRAME.to_numpy()
    files = sorted(p for p in path.rglob("*") if p.is_file()) or [path]
    whole = [file.read_bytes() for file in files]
    for _ in range(COPIES):
        place = rng.randrange(len(files))
        files[place].write_bytes(flipped(whole[place], rng))
        attempt(path)
        files[place].write_bytes(whole[place])


@pytest.mark.parametrize("kind", [".parquet", ".h5", ".h5ad", ".npz"])
def test_the_command_refuses_a_damaged_file_with_status_2(kind, tmp_path):
    """What an error is called in the library that finds it makes no difference."""
    path = tmp_path / f"t{kind}"
    if kind == ".npz":
        np.savez_compressed(path, a=FRAME)
        raw = path.read_bytes()
    else:
        raw = sound(kind)
    # What pandas has noted of the columns; and numbers that cannot be unpacked.
    harmed = raw.replace(b'"numpy_type"', b'"numpz_type"')
    path.write_bytes(harmed if harmed != raw else bytes(b ^ (i > 200) for i, b in enumerate(raw)))
    done = CliRunner().invoke(
        app, ["fit", str(path), "--clusters", "2", "--out", str(tmp_path / "o")]
    )
    assert done.exit_code == 2 and path.name in done.stderr, done.output


def test_the_reader_may_neither_grow_nor_write(tmp_path):
    if sys.platform != "linux":
        pytest.skip("limits of a process are those of Linux")
    data = tmp_path / "t.bin"
    data.write_bytes(b"x")
    confined = "from manyview.io.child import confine; confine(2**25, 60)\n"
    (tmp_path / "grows.py").write_text(confined + "x = bytes(2**30)")
    (tmp_path / "writes.py").write_text(
        confined + "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"open({str(tmp_path / 'made')!r}, 'w').write('x' * 9999)"
    )
    for name in ("grows", "writes"):
        with pytest.raises(ValueError, match="its reader ended with status 1"):
            read_apart(tmp_path / f"{name}.py", data, "")
    assert not (tmp_path / "made").exists() or (tmp_path / "made").stat().st_size == 0


def test_a_spreadsheet_that_is_a_bomb_is_refused(tmp_path, monkeypatch):
    """One cell at the far corner of a sheet, and a sheet that unpacks to more than is allowed."""
    monkeypatch.setattr("manyview.io.limits.ALWAYS", 2**24)
    path = made(".xlsx", tmp_path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = next(name for name in parts if name.endswith("sheet1.xml"))
    far = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData>'
    for content in (
        parts[sheet].replace(b"</sheetData>", far),
        parts[sheet].replace(b"</sheetData>", b" " * (20 << 20) + b"</sheetData>"),
    ):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in (parts | {sheet: content}).items():
                archive.writestr(name, data)
        with pytest.raises(ValueError, match=r"t\.xlsx.*--max-unpacked"):
            read_views([path])


def test_formulas_are_not_computed_and_links_not_followed(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    secret = tmp_path / "secret.csv"
    secret.write_text("1,2\n")
    book = openpyxl.Workbook()
    book.active.append(["sample", "a", "b"])
    for i in range(4):
        book.active.append(
            [f"s{i}", f"='[{secret}]Sheet1'!A1", f'=HYPERLINK("file://{secret}",{i})']
        )
    book.save(tmp_path / "f.xlsx")
    read = read_views([tmp_path / "f.xlsx"], missing="allow")
    assert np.isnan(read.views["f"]).all()


def test_without_the_package_the_extra_is_named(tmp_path):
    path = tmp_path / "t.xlsx"
    path.write_bytes(b"x")
    program = tmp_path / "program.py"
    text = PROGRAM.read_text().replace('"python_calamine"', '"no_such_package"')
    program.write_text(text)
    with pytest.raises(ImportError, match=r"pip install 'manyview\[files\]'"):
        read_apart(program, path, "spreadsheet")
