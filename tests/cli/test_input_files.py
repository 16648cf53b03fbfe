"""What the command line makes of files: names, numbers and what is neither."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

import holrr
from commands import fails
from holrr.cli import main
from holrr.streaming import memory_budget


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with X of four named columns and Y, which tells the columns apart."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    Y = X @ np.array([[1.0, 0], [10, 1], [100, 2], [1000, 3]])
    np.save("X.npy", X)
    np.save("Y.npy", Y)
    write("X.csv", X, names="a,b,c,d")
    write("Y.csv", Y)
    return tmp_path


def write(name, A, names=""):
    np.savetxt(name, A, delimiter=",", header=names, comments="", fmt="%.17g")


# ---------------------------------------------------------------- names of columns


@pytest.mark.parametrize("cv", [[], ["--cv", "3"]])
def test_columns_in_another_order_are_put_in_order_by_name(folder, capfd, cv):
    assert main(["fit", "X.csv", "Y.csv", *cv, "--alpha", "1", "-o", "m"]) == 0
    assert list(holrr.load("m").feature_names_in_) == list("abcd")
    assert main(["predict", "m", "X.csv", "-o", "P.npy"]) == 0
    assert capfd.readouterr().err == ""
    write("reversed.csv", np.load("X.npy")[:, ::-1], names="d,c,b,a")
    assert main(["predict", "m", "reversed.csv", "-o", "R.npy"]) == 0
    assert "note: the columns of reversed.csv were put in the order" in capfd.readouterr().err
    np.testing.assert_array_equal(np.load("R.npy"), np.load("P.npy"))


def test_other_columns_are_refused_by_name(folder, capfd):
    assert main(["fit", "X.csv", "Y.csv", "--alpha", "1", "-o", "m"]) == 0
    write("fewer.csv", np.load("X.npy")[:, :3], names="a,b,c")
    assert "missing 'd' (see" in fails(capfd, 3, "predict", "m", "fewer.csv", "-o", "P.npy")
    write("other.csv", np.load("X.npy"), names="a,b,c,e")
    told = "of other.csv are not those that the model was fitted with: missing 'd'; not known 'e'"
    assert told in fails(capfd, 3, "predict", "m", "other.csv", "-o", "P.npy")
    assert not (folder / "P.npy").exists()


def test_columns_that_the_model_does_not_know_are_left_out_with_a_note(folder, capfd):
    assert main(["fit", "X.csv", "Y.csv", "--alpha", "1", "-o", "m"]) == 0
    assert main(["predict", "m", "X.csv", "-o", "P.npy"]) == 0
    write("more.csv", np.load("X.npy")[:, [2, 0, 3, 1, 3]], names="c,a,e,b,d")
    capfd.readouterr()
    assert main(["predict", "m", "more.csv", "--inputs", "a:d,c", "-o", "Q.npy"]) == 0
    said = capfd.readouterr().err.splitlines()
    assert said[0].endswith("1 of the columns of more.csv, which are left out: 'e'")
    assert said[1].endswith("of more.csv were put in the order of the fit")
    assert main(["predict", "m", "more.csv", "-o", "R.npy"]) == 0
    for name in ("Q.npy", "R.npy"):
        np.testing.assert_array_equal(np.load(name), np.load("P.npy"))
    capfd.readouterr()
    assert main(["score", "m", "X.csv", "Y.csv"]) == 0
    expected = capfd.readouterr().out
    write("all.csv", np.load("X.npy")[:, [0, 0, 1, 2, 3]], names="a,e,b,c,d")
    assert main(["score", "m", "all.csv", "Y.csv"]) == 0
    assert capfd.readouterr().out == expected


def test_names_are_compared_with_those_of_a_table_in_python(folder, capfd):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame(np.load("X.npy"), columns=list("abcd"))
    holrr.RLS().fit(frame, np.load("Y.npy")).save("m")
    assert main(["predict", "m", "X.csv", "-o", "P.npy"]) == 0
    write("other.csv", np.load("X.npy"), names="a,c,b,x")
    assert "missing 'd'; not known 'x'" in fails(
        capfd, 3, "predict", "m", "other.csv", "-o", "P.npy"
    )


@pytest.mark.parametrize("suffix", ["parquet", "feather", "xlsx"])
def test_tables_of_pandas_have_names(folder, capfd, suffix):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    needed = "openpyxl" if suffix == "xlsx" else "pyarrow"
    pytest.importorskip(needed, reason=f"{needed} is not installed")
    frame = pandas.DataFrame(np.load("X.npy"), columns=list("abcd"))

    def save(frame, name):
        options = {"index": False} if suffix == "xlsx" else {}
        {"xlsx": frame.to_excel}.get(suffix, getattr(frame, f"to_{suffix}", None))(name, **options)

    save(frame, f"x.{suffix}")
    save(frame[list("dcba")], f"r.{suffix}")
    assert main(["fit", f"x.{suffix}", "Y.npy", "--alpha", "1", "-o", "m"]) == 0
    for name in "xr":
        assert main(["predict", "m", f"{name}.{suffix}", "-o", f"{name}.npy"]) == 0
    np.testing.assert_array_equal(np.load("x.npy"), np.load("r.npy"))
    save(frame.assign(a=pandas.Timestamp("2020-01-01"), b="one"), f"w.{suffix}")
    assert "columns that are not numeric: a, b. Leave" in fails(
        capfd, 3, "predict", "m", f"w.{suffix}", "-o", "P.npy"
    )


def test_a_file_without_names_can_only_be_taken_as_it_is(folder, capfd):
    assert main(["fit", "X.csv", "Y.csv", "--alpha", "1", "-o", "m"]) == 0
    assert main(["predict", "m", "X.npy", "-o", "P.npy"]) == 0
    assert "warning: X does not have valid feature names" in capfd.readouterr().err
    assert main(["fit", "X.npy", "Y.csv", "--alpha", "1", "-o", "m"]) == 0
    assert main(["predict", "m", "X.csv", "-o", "P.npy"]) == 0
    assert "warning: X has feature names" in capfd.readouterr().err


# ---------------------------------------------------------------- lines of text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1,NA,3,4\n", "line 1, column 2"),
        ("1,,3,4\n", "line 1, column 2"),
        (",,,\n", "line 1, column 1"),
        ("NA,NA,NA,NA\n1,2,3,4\n", "line 1, column 1"),
        ("1,2,x,4\n1,2,3,4\n", "both numbers and text, 'x' for"),
        ("2020-01-01,2,3,4\n", "both numbers and text"),
        ("a,b,c,d\n1,2,NA,4\n", "line 2, column 3"),
        ("a,b,c,d\n1,2,3,4\n1,2,3\n", "line 3: the number of columns changed"),
        ("a,b,c,d\n1,2,3,4\n1,2,x,4\n", "line 3, column 3 (c): could not convert string 'x'"),
        ("a,b,c,d\n1,x,3,y\n", "columns that are not numeric: b, d."),
        ("a,b,a,d\n1,2,3,4\n", "two columns have the name 'a'"),
        ("a,b,c\n1,2,3,4\n", "3 names, but line 2 has 4 columns"),
        ("a,b,c,d\n", "names of columns but no numbers"),
        ("a,b,c,d\n\n\n", "names of columns but no numbers"),
        ("1,2,3,4\n\n1,2,3,4\n", "line 2 is blank"),
        ("\n1,2,3,4\n", "line 1 is blank"),
        ("\n", "empty"),
        ("\ufeff", "empty"),
    ],
)
def test_lines_that_are_neither_names_nor_numbers_are_refused(folder, capfd, text, told):
    assert main(["fit", "X.npy", "Y.npy", "--alpha", "1", "-o", "m"]) == 0
    (folder / "new.csv").write_text(text, encoding="utf-8")
    assert told in fails(capfd, 3, "predict", "m", "new.csv", "-o", "P.npy")
    assert not (folder / "P.npy").exists()


@pytest.mark.parametrize(
    "text",
    ['"a, or b",b,,d\n1,2,3,4\n', "a,b,NA,d\n1,2,3,4\n\n\n", "1,2,3,4\n", "1,2,3,4", '1,2,"3",4\n'],
)
def test_names_may_be_quoted_or_blank_and_the_end_too(folder, text):
    assert main(["fit", "X.npy", "Y.npy", "--alpha", "1", "-o", "m"]) == 0
    (folder / "new.csv").write_text(text)
    assert main(["predict", "m", "new.csv", "-o", "P.npy"]) == 0
    assert np.load("P.npy").shape == (1, 2)


# ---------------------------------------------------------------- arrays


@pytest.mark.parametrize(
    "array",
    [
        np.full((30, 4), "1.5"),
        np.full((30, 4), b"1.5"),
        np.full((30, 4), "2020-01-01", dtype="M8[D]"),
        np.full((30, 4), 5, dtype="m8[s]"),
        np.ones((30, 4), dtype=complex),
        np.ones((30, 4), dtype=[("x", float)]),
        np.full((30, 4), None),
    ],
    ids=lambda a: str(a.dtype),
)
def test_what_is_not_real_numbers_is_refused(folder, capfd, array):
    np.save("A.npy", array, allow_pickle=True)
    np.savez("A.npz", array)
    for name in ("A.npy", "A.npz"):
        assert f"{name} cannot be read" in fails(capfd, 3, "fit", name, "Y.npy", "-o", "m")
        assert f"{name} cannot be read" in fails(capfd, 3, "fit", "X.npy", name, "-o", "m")


def damaged_archives():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=np.random.default_rng(0).normal(size=(30, 4)))
    whole = buffer.getvalue()
    yield b"PK\3\4 and no more"
    yield whole[: len(whole) // 2]
    yield whole[:200] + b"\xff" * 20 + whole[220:]
    yield whole[:100] + b"\0" * 600 + whole[700:]
    for header in (b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999,)}", b"{-"):
        other = io.BytesIO()
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("X.npy", b"\x93NUMPY\1\0" + bytes([len(header), 0]) + header)
        yield other.getvalue()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("X", "text")
    yield other.getvalue()


@pytest.mark.parametrize("content", list(damaged_archives()), ids=range(7))
def test_a_damaged_archive_is_exit_code_3(folder, capfd, content):
    (folder / "X.npz").write_bytes(content)
    assert "X.npz cannot be read" in fails(capfd, 3, "fit", "X.npz", "Y.npy", "-o", "m")


def test_scalars_and_empty_arrays_are_refused(folder, capfd):
    for name, array in {"scalar": np.array(1.0), "empty": np.ones((0, 4))}.items():
        np.save(f"{name}.npy", array)
        fails(capfd, 3, "fit", f"{name}.npy", "Y.npy", "-o", "m")
        fails(capfd, 3, "fit", "X.npy", f"{name}.npy", "-o", "m")
    assert "got ()" in fails(
        capfd, 3, "fit", "X.npy", "scalar.npy", "--output-shape", "2", "-o", "m"
    )


@pytest.mark.parametrize("dtype", ["<f8", ">f8", "<f4", "<i2"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_on_disk_are_fitted_without_being_read_whole(folder, dtype, order):
    rng = np.random.default_rng(0)
    X = np.asarray(100 * rng.normal(size=(40_000, 20)), dtype=dtype, order=order)
    Y = np.asarray(X[:, :6] + rng.normal(size=(40_000, 6)), dtype="f8").reshape(-1, 2, 3)
    np.save("X.npy", X)
    np.save("Y.npy", np.asarray(Y, order=order))
    expected = holrr.HOLRR(2).fit(X, Y).predict(X[:5])
    fit = ["fit", "X.npy", "Y.npy", "--rank", "2", "-o", "m"]
    assert main(fit) == 0  # and all is imported
    tracemalloc.start()
    with memory_budget(2**20):
        assert main(fit) == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < Y.nbytes
    np.testing.assert_allclose(holrr.load("m").predict(X[:5]), expected, rtol=1e-5)
