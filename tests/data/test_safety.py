"""Files made to run code, to read other files or to fill the memory: each gets a sentence."""

import gzip
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest
import scipy.sparse as sp

import manyview as mv
from conftest import blobs
from manyview.app.files import read_views
from manyview.io import limits
from manyview.io.limits import TooLarge, check_held, unpacking_limit, unpacking_up_to

X = np.abs(np.random.default_rng(0).standard_normal((12, 3)))


class Trap:
    """Unpickled, it leaves a file."""

    def __init__(self, place):
        self.place = str(place)

    def __reduce__(self):
        return (open, (self.place, "w"))


def refused(path, told, **options):
    """Every way to a file refuses it with the sentence."""
    with pytest.raises(ValueError, match=told) as caught:
        read_views([path], **options)
    assert path.name in str(caught.value)
    if path.suffix in (".h5", ".zarr", ".h5ad"):
        for way in (mv.on_disk, lambda p: mv.WMNMF(2).fit([p])):
            with pytest.raises(ValueError, match=told):
                way(path)


@pytest.fixture
def low(monkeypatch):
    """Limits that small files of a test can exceed."""
    monkeypatch.setattr(limits, "ALWAYS", 50_000)
    monkeypatch.setattr(limits, "RATIO", 50)


# --- limits ------------------------------------------------------------------------------------


def test_the_limit_grows_with_the_file_ends_at_the_memory_and_can_be_raised(monkeypatch):
    monkeypatch.setattr(limits, "free_memory", lambda: 2**34)
    check_held(limits.ALWAYS, 1)  # harms nobody
    with pytest.raises(TooLarge, match=r"takes 257 MiB in memory and 1 bytes in the file"):
        check_held(limits.ALWAYS + 2**20, 1)
    check_held(250 * 2**24, 2**24)
    with pytest.raises(TooLarge, match=r"16 GiB is the limit.*max_unpacked=20 "):
        check_held(20 * 2**30, 2**30)
    monkeypatch.setattr(limits, "free_memory", lambda: 2**20)
    check_held(limits.SMALL, limits.SMALL)
    with unpacking_up_to(21):
        check_held(20 * 2**30, 1)
        with unpacking_up_to(None):
            assert unpacking_limit() == 21
    assert unpacking_limit() is None


@pytest.mark.parametrize("wrong", [0, -1, True, "1", float("nan")])
def test_a_limit_is_a_number_of_gib(wrong):
    with pytest.raises(ValueError, match="max_unpacked must be a number of GiB above 0"):
        mv.on_disk("x.npy", max_unpacked=wrong)


def test_a_file_as_large_as_its_numbers_is_no_bomb(tmp_path, monkeypatch):
    """An .npy is mapped or read by rows, however large; nothing of it is unpacked."""
    monkeypatch.setattr(limits, "ALWAYS", 1)
    monkeypatch.setattr(limits, "free_memory", lambda: 1000)
    monkeypatch.setattr(limits, "SMALL", 1)
    np.save(tmp_path / "v.npy", np.ones((500, 20)))
    assert mv.on_disk(tmp_path / "v.npy")[10:20].shape == (10, 20)
    assert read_views([tmp_path / "v.npy"], on_disk=True).views["v"].shape == (500, 20)
    with pytest.raises(ValueError, match="1000 bytes is the limit"):
        mv.on_disk(tmp_path / "v.npy").load()


# --- Zarr --------------------------------------------------------------------------------------

SECOND = {"zarr_format": 2, "shape": [12, 3], "chunks": [12, 3], "dtype": "<f8", "compressor": None,
          "filters": None, "order": "C", "fill_value": 0.0}  # fmt: skip
THIRD = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [12, 3],
    "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [12, 3]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0.0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    "attributes": {},
}


#: What we say of a codec, or zarr itself.
CODEC = "names the codec 'pickle'|codec not available|Unknown codec|Expected dict|not recognized|unhashable"


def zarr_second(folder, chunk=None, **changes):
    """An array of the second format, written by hand."""
    pytest.importorskip("zarr")
    folder.mkdir(parents=True)
    (folder / ".zarray").write_text(json.dumps(SECOND | changes))
    (folder / "0.0").write_bytes(X.tobytes() if chunk is None else chunk)
    return folder


def zarr_third(folder, chunk=None, **changes):
    pytest.importorskip("zarr")
    (folder / "c" / "0").mkdir(parents=True)
    (folder / "zarr.json").write_text(json.dumps(THIRD | changes))
    (folder / "c" / "0" / "0").write_bytes(X.tobytes() if chunk is None else chunk)
    return folder


def sharded(codecs, index=({"name": "bytes", "configuration": {"endian": "little"}},)):
    settings = {"chunk_shape": [6, 3], "codecs": codecs, "index_codecs": list(index)}
    return [{"name": "sharding_indexed", "configuration": settings}]


def test_arrays_written_by_hand_are_read_where_nothing_is_wrong_with_them(tmp_path):
    for make in (zarr_second, zarr_third):
        np.testing.assert_array_equal(
            mv.on_disk(make(tmp_path / f"{make.__name__}.zarr")).load(), X
        )
    zipped = {
        "compressor": {"id": "zlib", "level": 1},
        "filters": [{"id": "delta", "dtype": "<f8"}],
    }
    made = zarr_second(tmp_path / "z.zarr", zlib.compress(np.zeros((12, 3)).tobytes()), **zipped)
    assert mv.on_disk(made).shape == (12, 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}]},
        {"compressor": {"id": "pickle"}},
        {"filters": [{"id": "delta", "dtype": "<f8"}, {"id": "pickle"}]},
        {"dtype": "|O", "filters": [{"id": "vlen-utf8"}, {"id": "pickle"}]},
        {"compressor": {"id": "mine"}},
        {"compressor": {"id": ["zlib"]}},
    ],
)
@pytest.mark.parametrize("place", ["array", "consolidated", "deep"])
def test_codecs_that_could_run_code_are_refused(changes, place, tmp_path):
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(Trap(sprung))
    folder = tmp_path / "v.zarr"
    if place == "array":
        zarr_second(folder, trap, **changes)
    else:
        zarr_second(folder / "a" / "b", trap, **(changes if place == "deep" else {}))
        (folder / ".zgroup").write_text('{"zarr_format": 2}')
    if place == "consolidated":
        listed = {".zgroup": {"zarr_format": 2}, "a/b/.zarray": SECOND | changes}
        (folder / ".zmetadata").write_text(
            json.dumps({"metadata": listed, "zarr_consolidated_format": 1})
        )
    refused(folder, CODEC)
    assert not sprung.exists()


@pytest.mark.parametrize(
    "codecs",
    [
        [{"name": "numcodecs.pickle"}],
        [*THIRD["codecs"], {"name": "pickle"}],
        [*THIRD["codecs"], "mine"],
        sharded([*THIRD["codecs"], {"name": "numcodecs.pickle"}]),
    ],
)
@pytest.mark.parametrize("place", ["array", "consolidated"])
def test_codecs_of_the_third_format_are_looked_at_too(codecs, place, tmp_path):
    folder = tmp_path / "v.zarr"
    if place == "array":
        zarr_third(folder, codecs=codecs)
    else:
        zarr_third(folder / "a")
        inside = {
            "kind": "inline",
            "must_understand": False,
            "metadata": {"a": THIRD | {"codecs": codecs}},
        }
        group = {"zarr_format": 3, "node_type": "group", "consolidated_metadata": inside}
        (folder / "zarr.json").write_text(json.dumps(group))
    refused(folder, CODEC)


@pytest.mark.parametrize("dtype", ["|O", [["a", "<f8"], ["b", "|O"]]])
def test_objects_in_zarr_are_refused(dtype, tmp_path):
    refused(zarr_second(tmp_path / "v.zarr", dtype=dtype), "No Zarr data type")


def test_texts_are_no_objects(tmp_path):
    """Names of samples are arrays of objects to the second format, and harmless."""
    folder = zarr_second(tmp_path / "v.zarr" / "x")
    zarr_second(tmp_path / "v.zarr" / "names", dtype="|O", filters=[{"id": "vlen-utf8"}])
    (tmp_path / "v.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    np.testing.assert_array_equal(mv.on_disk(f"{folder.parent}::x").load(), X)


@pytest.mark.parametrize("changes", [{"shape": [10**12, 3]}, {"chunks": [10**12, 3]}])
def test_claims_of_zarr_are_compared_with_the_folder(changes, tmp_path):
    told = r"the array takes 2\d\d* ?.* in memory|takes 21.8 TiB"
    refused(zarr_second(tmp_path / "v.zarr", **changes), told)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no links here")
def test_links_out_of_a_zarr_folder_are_refused(tmp_path):
    folder = zarr_second(tmp_path / "v.zarr")
    (tmp_path / "secret.bin").write_bytes(b"x" * 8)
    os.symlink(tmp_path / "secret.bin", folder / "9.9")
    refused(folder, "is a link to something outside of the folder")


def test_what_describes_nothing_is_refused(tmp_path):
    folder = zarr_second(tmp_path / "v.zarr")
    for text in (
        "[" * 100_000,
        "no json",
        "[1]",
        '{"shape": "x"}',
        json.dumps(SECOND | {"dtype": "x"}),
    ):
        (folder / ".zarray").write_text(text)
        refused(folder, "cannot be read")
    (tmp_path / "file.zarr").write_bytes(b"PK")
    with pytest.raises(ValueError, match="is read from a folder"):
        mv.on_disk(tmp_path / "file.zarr")


# --- HDF5 --------------------------------------------------------------------------------------

LEADING_OUT = ("external storage", "external link", "virtual", "external deep", "soft to external")


def leading_out(kind, file, secret, name="x"):
    """A dataset ``name`` whose numbers are another file's."""
    h5py = pytest.importorskip("h5py")
    if kind == "external storage":
        place = [(str(secret), 0, h5py.h5f.UNLIMITED)]
        file.create_dataset(name, (12, 3), dtype="f8", external=place)
    elif kind == "virtual":
        layout = h5py.VirtualLayout((12, 3), dtype="f8")
        layout[:] = h5py.VirtualSource(str(secret), "x", shape=(12, 3))
        file.create_virtual_dataset(name, layout)
    elif kind == "external deep":
        file.create_group("uns/deep")["link"] = h5py.ExternalLink(str(secret), "/x")
        if name not in file:
            file[name] = X
    elif kind == "soft to external":
        file["out"] = h5py.ExternalLink(str(secret), "/")
        file[name] = h5py.SoftLink("/out/x")
    else:
        file[name] = h5py.ExternalLink(str(secret), "/x")


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        *((kind, ".h5") for kind in LEADING_OUT),
        ("external link", ".mat"),
        ("external deep", ".h5ad"),
        ("virtual", ".h5mu"),
    ],
)
def test_hdf5_that_leads_to_other_files_is_refused(kind, ending, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "secret", "w") as file:
        file["x"] = X
    path = tmp_path / f"v{ending}"
    if ending in (".h5ad", ".h5mu"):
        anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
        rows, columns = (
            [f"{kind}{i}" for i in range(n)] for kind, n in zip("sg", X.shape, strict=True)
        )
        data = anndata.AnnData(pandas.DataFrame(X, index=rows, columns=columns))
        if ending == ".h5ad":
            data.write_h5ad(path)
        else:
            mudata = pytest.importorskip("mudata")
            with mudata.set_options(pull_on_update=False):
                mudata.MuData({"rna": data}).write(path)
    with h5py.File(path, "a") as file:
        inside = file["mod/rna"] if ending == ".h5mu" else file
        if "X" in inside and kind != "external deep":
            del inside["X"]
        leading_out(
            kind, inside, tmp_path / "secret", "X" if ending[:4] in (".h5a", ".h5m") else "x"
        )
    told = "is a link to another file|keeps its numbers in other files|put together from other"
    refused(path, rf"({told}).*copy the numbers into one file")


def test_links_inside_a_file_are_followed_also_in_circles(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["deep/x"] = X
        file["deep/up"] = file["/"]
        file["soft"] = h5py.SoftLink("/deep/x")
        file["nowhere"] = h5py.SoftLink("/none")
    for key in ("deep/x", "soft"):
        np.testing.assert_array_equal(mv.on_disk(f"{tmp_path}/v.h5::{key}").load(), X)


@pytest.mark.parametrize("ending", [".h5", ".mat"])
def test_objects_in_hdf5_are_no_views(ending, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / f"v{ending}", "w") as file:
        for name, kind in (("x", h5py.vlen_dtype(np.uint8)), ("r", h5py.ref_dtype)):
            file.create_dataset(name, (12, 3) if name == "x" else (2,), dtype=kind)
    with pytest.raises(ValueError, match=r"v\..*(a view holds numbers only|no array of samples)"):
        read_views([tmp_path / f"v{ending}"])


def test_claims_of_hdf5_are_compared_with_the_file(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file.create_dataset("x", (10**9, 300), dtype="f8", chunks=(10, 300))
    refused(tmp_path / "v.h5", r"'/x' takes 2.18 TiB when read")
    (tmp_path / "v.h5").rename(tmp_path / "v.mat")
    refused(tmp_path / "v.mat", r"takes 2.18 TiB")


def test_chunks_of_hdf5_larger_than_the_array_are_refused(tmp_path, low):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "c.h5", "w") as file:
        sizes = {"maxshape": (None, 3), "chunks": (10**5, 3)}
        file.create_dataset("x", (4, 3), dtype="f8", compression="gzip", **sizes)
        file["x"][:] = 1
    refused(tmp_path / "c.h5", r"a chunk of '/x' takes 2.29 MiB in memory")
    assert mv.on_disk(tmp_path / "c.h5", max_unpacked=1).load().shape == (4, 3)


@pytest.mark.parametrize("harm", ["columns", "rows", "ends"])
def test_sparse_rows_that_lie_outside_are_refused(harm, tmp_path):
    """SciPy would read, or write, outside of memory."""
    h5py, anndata = pytest.importorskip("h5py"), pytest.importorskip("anndata")
    anndata.AnnData(sp.csr_matrix(X)).write_h5ad(tmp_path / "v.h5ad")
    with h5py.File(tmp_path / "v.h5ad", "a") as file:
        if harm == "columns":
            file["X/indices"][5] = 10**6
        elif harm == "ends":
            file["X/indptr"][-1] = 10**6
        else:
            file["X"].attrs["shape"] = (10**6, 3)
    with pytest.raises(ValueError, match=r"v.h5ad"):
        read_views([tmp_path / "v.h5ad"])
    with pytest.raises(
        (ValueError, OSError), match=r"v.h5ad.*(outside of its 3 columns|end where)"
    ):
        mv.on_disk(tmp_path / "v.h5ad").load()


# --- archives, tables, MATLAB ------------------------------------------------------------------


def zipped(path, members, packing=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def test_archives_that_unpack_to_too_much_are_refused_and_can_be_allowed(tmp_path, low):
    np.savez_compressed(tmp_path / "v.npz", a=np.zeros((2000, 500)), b=np.ones((2000, 3)))
    refused(
        tmp_path / "v.npz", r"takes 7.68 MiB in memory and .* KiB in the file.*max_unpacked=0.01"
    )
    with unpacking_up_to(0.01):
        assert read_views([tmp_path / "v.npz"]).views["a"].shape == (2000, 500)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_packed_as_numpy_never_does_are_refused(packing, tmp_path):
    """zipfile unpacks all of such a member, whatever the table of contents says."""
    refused(
        zipped(tmp_path / "v.npz", {"a.npy": npy(X)}, packing), "packed in a way NumPy does not"
    )


def test_entries_that_take_no_room_are_refused(tmp_path):
    raw = (
        npy(np.zeros(3, "V8"))
        .replace(b"(3,)", b"(9" + b"0" * 15 + b",)")
        .replace(b"'|V8'", b"'|V0'")
    )
    for name, content in (("v.npy", raw), ("v.npz", None)):
        if content is None:
            zipped(tmp_path / name, {"a.npy": raw})
        else:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=name):
            read_views([tmp_path / name])


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_sparse_matrices_that_are_all_shape_are_refused(kind, tmp_path):
    S = sp.coo_array(([1.0], ([0], [0])), shape=(3, 3)).asformat(kind)
    parts = {"data": S.data, "format": np.array(kind.encode()), "shape": np.array([10**12, 3])}
    names = ("row", "col") if kind == "coo" else ("indices", "indptr")
    np.savez(tmp_path / "v.npz", **parts, **{name: getattr(S, name) for name in names})
    refused(tmp_path / "v.npz", r"its sparse matrix, of shape \(1000000000000, 3\), takes 7.28 TiB")


def test_matrix_market_that_is_all_shape_is_refused(tmp_path):
    head = "%%MatrixMarket matrix coordinate real general\n"
    (tmp_path / "v.mtx").write_text(f"{head}2 999999999999 1\n1 1 1.0\n")
    refused(tmp_path / "v.mtx", "takes 7.28 TiB")


@pytest.mark.parametrize("ending", [".csv.gz", ".tsv.gz", ".mtx.gz"])
def test_gzip_is_unpacked_up_to_the_limit(ending, tmp_path, low):
    body = "a,b\n" + "0,0\n" * 100_000
    if ending == ".mtx.gz":
        body = "%%MatrixMarket matrix array real general\n100000 1\n" + "0\n" * 100_000
    path = tmp_path / f"v{ending}"
    path.write_bytes(gzip.compress(body.replace(",", "\t" if "tsv" in ending else ",").encode()))
    refused(path, r"takes more than .* in memory")
    with unpacking_up_to(1):
        assert read_views([path]).views["v"].shape[0] == 100_000


def test_parquet_that_unpacks_to_too_much_is_refused_and_can_be_allowed(tmp_path, low):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "v.parquet"
    pandas.DataFrame(np.zeros((50_000, 3)), columns=list("abc")).to_parquet(path)
    refused(path, r"its table of 50000 rows and 3 columns takes 1.14 MiB in memory")
    with unpacking_up_to(1):
        assert read_views([path]).views["v"].shape == (50_000, 3)
    assert mv.on_disk(path).shape == (50_000, 3)  # by rows it may be a thousand times larger


def test_one_long_text_in_every_row_of_parquet_is_refused(tmp_path, low):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "v.parquet"
    pandas.DataFrame({"id": ["x" * 10_000] * 2000, "a": 1.0, "b": 2.0}).to_parquet(path)
    refused(path, "takes more than")
    with pytest.raises(ValueError, match="takes more than"):
        mv.on_disk(path)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read from /proc")
def test_reading_parquet_takes_a_small_multiple_of_its_numbers(tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "v.parquet"
    names = [f"s{i}" for i in range(100_000)]
    pandas.DataFrame(np.zeros((100_000, 100)), index=names).rename(columns=str).to_parquet(path)
    code = (
        "import resource, sys, pandas, pyarrow.parquet\n"
        "from manyview.app.files import read_views\n"
        "from manyview.io import limits\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024\n"
        "before = peak()\n"
        "with limits.unpacking_up_to(1):\n"
        "    held = read_views([sys.argv[1]]).views['v'].nbytes\n"
        "print((peak() - before) / held)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 4.5, done.stdout


def test_parquet_of_lists_is_refused_before_it_is_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"id": ["a", "b"], "x": [[1.0, 2.0], [3.0]]}).to_parquet(
        tmp_path / "v.parquet"
    )
    refused(
        tmp_path / "v.parquet", r"column 'x' \(list.*does not hold one number or text in each row"
    )


def test_matlab_files_that_unpack_to_too_much_are_refused(tmp_path, low):
    scipy_io = pytest.importorskip("scipy.io")
    scipy_io.savemat(tmp_path / "v.mat", {"A": np.zeros((10**5, 10))}, do_compression=True)
    refused(tmp_path / "v.mat", "takes 7.63 MiB in memory")


def test_sound_matlab_files_of_any_packing_are_read(tmp_path):
    scipy_io = pytest.importorskip("scipy.io")
    for packing in (True, False):
        scipy_io.savemat(tmp_path / "v.mat", {"A": X, "S": sp.csc_array(X)}, do_compression=packing)
        found = read_views([tmp_path / "v.mat"]).views
        np.testing.assert_array_equal(found["A"], X)
        np.testing.assert_array_equal(found["S"].toarray(), X)


# --- models and checkpoints --------------------------------------------------------------------


@pytest.fixture
def model_file(tmp_path):
    views, _ = blobs(n=60)
    return mv.WMNMF(3, random_state=0).fit(views).save(tmp_path / "m.npz"), views


def changed(path, change=lambda header, members: None):
    """The model with another header and members, under a right checksum."""
    from manyview.storage import store

    with zipfile.ZipFile(path) as archive:
        members = {n.removesuffix(".npy"): archive.read(n) for n in archive.namelist()}
    header = json.loads(members.pop(store.HEADER))
    change(header, members)
    header["sha256"] = store._checksum(header, members)
    with path.open("wb") as file:
        store._archive(file, header, members, zipfile.ZIP_DEFLATED)
    return path


def test_a_model_that_unpacks_to_too_much_is_refused(model_file, low):
    path, views = model_file
    changed(path, lambda header, members: members.update(bomb=npy(np.zeros(10**7))))
    with pytest.raises(ValueError, match=r"m.npz: it takes .* in memory and .*max_unpacked="):
        mv.load(path)
    assert mv.load(path, max_unpacked=1).predict(views).shape == (60,)


def test_a_header_of_many_small_lists_is_refused(model_file, low):
    path, _ = model_file
    changed(path, lambda header, members: header["state"].update(junk=[[]] * 200_000))
    with pytest.raises(ValueError, match=r"m.npz: it takes"):
        mv.load(path)


def test_a_model_that_repeats_a_matrix_is_refused(model_file):
    path, _ = model_file

    def repeat(header, members):
        S = sp.csr_array(np.ones((100, 100)))
        members.update({f"s{i}": npy(p) for i, p in enumerate((S.data, S.indices, S.indptr))})
        node = {
            "~": "sparse",
            "class": "csr_array",
            "shape": [100, 100],
            "parts": ["s0", "s1", "s2"],
        }
        header["state"]["junk"] = [node] * 1000

    with pytest.raises(ValueError, match="many matrices of the same numbers"):
        mv.load(changed(path, repeat))


def test_a_loaded_model_writes_no_checkpoint_of_another(model_file, tmp_path):
    path, _ = model_file
    changed(
        path, lambda header, members: header["state"].update(checkpoint=str(tmp_path / "theirs"))
    )
    assert mv.load(path).checkpoint is None


@pytest.fixture
def fitted_files(tmp_path):
    views, _ = blobs(n=60)
    files = []
    for s, V in enumerate(views):
        np.save(tmp_path / f"v{s}.npy", V)
        files.append(tmp_path / f"v{s}.npy")
    model = mv.WMNMF(3, random_state=0).fit([mv.on_disk(file) for file in files])
    return model, model.save(tmp_path / "m.npz"), files, views


def test_a_model_opens_only_files_that_are_named_again(fitted_files, monkeypatch, tmp_path):
    model, saved, files, views = fitted_files

    def never(*args):
        raise AssertionError("a file was opened")

    with monkeypatch.context() as patch:
        patch.setattr("manyview.engines.files.disk.open_rows", never)
        again = mv.load(saved)
        with pytest.raises(ValueError, match=r"'view0' \(v0.npy\).*opens only files that you name"):
            again.predict(views)
        with pytest.raises(ValueError, match="only files that you name"):
            mv.load(saved, fitted_on=tmp_path / "other.npy").predict(views)
    expected = model.predict(views)
    for given in (files, [mv.on_disk(file) for file in files]):
        np.testing.assert_array_equal(mv.load(saved, fitted_on=given).predict(views), expected)
    moved = {}
    for s, file in enumerate(files):
        moved[f"view{s}"] = file.rename(tmp_path / f"moved{s}.npy")
    np.testing.assert_array_equal(mv.load(saved, fitted_on=moved).predict(views), expected)
    # Saved once more, they are to be named once more.
    again = mv.load(saved, fitted_on=moved)
    with pytest.raises(ValueError, match="only files that you name"):
        mv.load(again.save(tmp_path / "again.npz")).predict(views)
    with pytest.raises(ValueError, match=r"names the view 'x', but .* from files are: .*view1"):
        mv.load(saved, fitted_on={"x": files[0]})


def test_a_checkpoint_opens_only_the_files_of_the_fit(tmp_path):
    from manyview.engines.files.disk import DiskMatrix
    from manyview.storage.store import read_state, write_state

    for name in ("mine", "theirs"):
        np.save(tmp_path / f"{name}.npy", X)
    mine, theirs = (mv.on_disk(tmp_path / f"{name}.npy") for name in ("mine", "theirs"))
    write_state(tmp_path / "c", "checkpoint", {"mine": mine, "theirs": theirs})
    found = read_state(tmp_path / "c", "checkpoint", [mine])
    np.testing.assert_array_equal(found["mine"].load(), X)
    assert isinstance(found["theirs"], DiskMatrix)
    with pytest.raises(ValueError, match="opens only files that you name"):
        found["theirs"].load()


def test_the_command_line_has_the_same_limits(fitted_files, tmp_path, low):
    typer_testing = pytest.importorskip("typer.testing")
    from manyview.app.cli.app import app

    def run(*words):
        done = typer_testing.CliRunner().invoke(app, [str(word) for word in words])
        return done.exit_code, " ".join(done.output.split())

    np.savez_compressed(tmp_path / "z.npz", z=np.tile(np.arange(60.0)[:, None] // 20, (1, 3000)))
    fit = ("fit", tmp_path / "z.npz", "--clusters", "3", "--no-report", "--out", tmp_path / "run")
    code, told = run(*fit)
    assert code == 2 and "--max-unpacked 0.01 (GiB)" in told
    code, told = run(*fit, "--max-unpacked", "0.01")
    assert code == 0, told

    _, saved, files, views = fitted_files
    np.savez(tmp_path / "new.npz", **{f"view{s}": V[:9] for s, V in enumerate(views)})
    predict = ("predict", saved, tmp_path / "new.npz", "--out", tmp_path / "new.csv")
    code, told = run(*predict)
    assert code == 2 and "give --fitted-on FILE" in told
    named = [word for file in files for word in ("--fitted-on", file)]
    code, told = run(*predict, *named)
    assert code == 0, told
    os.rename(files[0], tmp_path / "moved.npy")
    named = [f"view0={tmp_path / 'moved.npy'}", f"view1={files[1]}", f"view2={files[2]}"]
    code, told = run(*predict, *(w for name in named for w in ("--fitted-on", name)), "--force")
    assert code == 0, told
