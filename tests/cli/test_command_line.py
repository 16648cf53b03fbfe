"""Commands do what the library does, on files of every format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GroupKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline

import holrr
from commands import fails
from holrr import HOLRR, HOLRRCV, RLSCV, KernelHOLRR
from holrr.cli import main
from holrr.data import Standardizer
from holrr.datasets import make_tensor_regression
from holrr.metrics import rmse

pd = pytest.importorskip("pandas", reason="pandas is not installed")
xr = pytest.importorskip("xarray", reason="xarray is not installed")

X, Y = make_tensor_regression(50, 4, (3, 2), rank=(2, 2, 2), snr=3.0, random_state=0)
NEW = np.random.default_rng(1).normal(size=(6, 4))
ROWS = [f"r{k}" for k in range(50)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with arrays and a table, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    np.save("Y.npy", Y)
    np.save("N.npy", NEW)
    np.savez("both.npz", X=X, Y=Y)
    return tmp_path


def runs(*words):
    assert main(list(map(str, words))) == 0


# ---------------------------------------------------------------- arrays


def test_fit_predict_score_and_info_agree_with_the_library(capsys):
    runs("fit", "X.npy", "Y.npy", "-o", "m")
    runs("predict", "m", "N.npy", "-o", "P.npz", "--std", "--interval", 0.8, "--kind", "pooled")
    model = HOLRRCV().fit(X, Y)
    mean, std = model.predict(NEW, return_std=True)
    with np.load("P.npz") as found:
        assert_allclose(found["Y"], mean, atol=1e-10)
        assert_allclose(found["std"], std, atol=1e-10)
        bounds = model.predict_interval(NEW, 0.8, "pooled")
        assert_allclose([found["lower"], found["upper"]], bounds, atol=1e-9)
    runs("predict", "m", "N.npy", "-o", "P.npy", "--std")
    assert_allclose(np.load("P_std.npy"), std, atol=1e-10)
    capsys.readouterr()
    runs("score", "m", "both.npz:X", "both.npz:Y")
    said = capsys.readouterr().out
    assert f"{model.score(X, Y):.6g}" in said
    assert f"{rmse(Y, model.predict(X)):.6g}" in said
    runs("info", "m")
    said = capsys.readouterr().out
    assert f"{np.sqrt(model.held_out_mse_):.6g} (5-fold cross-validation)" in said
    assert "samples        50" in said
    runs("info", "m", "--json")
    facts = json.loads(capsys.readouterr().out)
    assert facts["format"] == 1
    assert facts["held_out"]["rmse"] == pytest.approx(np.sqrt(model.held_out_mse_))


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ("--rank 2 --alpha 0.5", HOLRR(2, 0.5)),
        ("--alpha 0.1,10 --cv 3 --model rls", RLSCV([0.1, 10.0], cv=3)),
        ("--max-rank 2 --alpha 1", HOLRRCV([1.0], max_rank=2)),
        ("--time-series --cv 3", HOLRRCV(cv=TimeSeriesSplit(3))),
        ("--model kernel-holrr --rank 2,2,1 --kernel poly --alpha 3 --set gamma=0.1",
         KernelHOLRR((2, 2, 1), 3.0, kernel="poly", gamma=0.1)),
        ("--set loss=huber --set fit_intercept=False --rank 2",
         HOLRR(2, loss="huber", fit_intercept=False)),
        ("--output-weight 1,2,3,4,5,6 --rank 1", HOLRR(1, output_weight=np.arange(1.0, 7.0))),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:The best penalty")
def test_options_are_parameters_of_the_estimators(words, model):
    given = X, Y
    if "output-weight" in words:
        given = X, Y.reshape(50, 6)
        np.save("Y.npy", given[1])
    runs("fit", "X.npy", "Y.npy", "-o", "m", *words.split())
    runs("predict", "m", "N.npy", "-o", "P.npy")
    assert_allclose(np.load("P.npy"), model.fit(*given).predict(NEW), atol=1e-9)


def test_pipelines_that_python_saved_are_applied(capsys):
    model = make_pipeline(Standardizer(), HOLRRCV(cv=3)).fit(X, Y)
    holrr.save(model, "m")
    runs("predict", "m", "N.npy", "-o", "P.npy", "--interval", 0.8)
    assert_allclose(np.load("P.npy"), model.predict(NEW))
    bounds = model[-1].predict_interval(model[:-1].transform(NEW), 0.8)
    assert_allclose([np.load("P_lower.npy"), np.load("P_upper.npy")], bounds)
    capsys.readouterr()
    runs("score", "m", "X.npy", "Y.npy")
    assert f"{model.score(X, Y):.6g}" in capsys.readouterr().out


def test_reports_recognise_the_training_data(capfd):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    runs("fit", "X.npy", "Y.npy", "-o", "m", "--cv", 3, "--max-rank", 2)
    runs("report", "m", "X.npy", "Y.npy", "-o", "training.html")
    said = capfd.readouterr()
    assert "training data: the model is evaluated by cross-validation" in said.err
    np.save("X2.npy", X[:20])
    np.save("Y2.npy", Y[:20])
    runs("report", "m", "X2.npy", "Y2.npy", "-o", "new.html", "--title", "Run 7")
    assert "training data" not in capfd.readouterr().err
    assert "<h1>Run 7</h1>" in Path("new.html").read_text(encoding="utf-8")


# ---------------------------------------------------------------- tables


def table(index="run"):
    frame = pd.DataFrame(X, columns=list("abcd"), index=pd.Index(ROWS, name=index))
    frame["plant"] = np.repeat(list("ABCDE"), 10)
    return frame.assign(u=Y[:, 0, 0], v=Y[:, 1, 1])


WRITERS = {
    "csv": lambda frame, path: frame.to_csv(path),
    "tsv": lambda frame, path: frame.to_csv(path, sep="\t"),
    "xlsx": lambda frame, path: frame.to_excel(path),
    "parquet": lambda frame, path: frame.to_parquet(path),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("index", ["run", None])
def test_a_table_that_pandas_wrote_works_as_it_is(kind, index, capfd):
    WRITERS[kind](table(index), f"t.{kind}")
    words = [] if index is None or kind == "parquet" else ["--index-col", "run"]
    chosen = ["--inputs", "a:c,d", "--outputs", "u,v", "--groups", "plant", *words]
    runs("fit", f"t.{kind}", *chosen, "-o", "m")
    frame = table(index)
    inputs, outputs = frame[list("abcd")], frame[["u", "v"]]
    model = HOLRRCV(cv=GroupKFold(5)).fit(inputs, outputs, groups=frame.plant)
    new = pd.DataFrame(NEW, columns=list("abcd"), index=pd.Index(list("uvwxyz"), name=index))
    WRITERS[kind](new[list("dbac")].assign(more=1.0), f"n.{kind}")
    capfd.readouterr()
    runs("predict", "m", f"n.{kind}", "-o", "P.csv")
    assert "not fitted with are left out: more" in capfd.readouterr().err
    found = pd.read_csv("P.csv", index_col=0)
    assert found.index.name == index
    pd.testing.assert_frame_equal(found, model.predict(new), rtol=1e-9)
    runs("score", "m", f"t.{kind}")
    assert f"{model.score(inputs, outputs):.6g}" in capfd.readouterr().out


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize("names", [("year", "crop"), None])
@pytest.mark.parametrize("index", ["run", None])
@pytest.mark.parametrize("numbers", [False, True])
def test_two_header_lines_that_pandas_wrote_are_two_modes(kind, names, index, numbers):
    crops = [1, 2] if numbers else ["rye", "oat"]
    columns = pd.MultiIndex.from_product([["x", "y", "z"], crops], names=names)
    rows = pd.Index(ROWS, name=index)
    WRITERS[kind](pd.DataFrame(X, columns=list("abcd"), index=rows), f"X.{kind}")
    WRITERS[kind](pd.DataFrame(Y.reshape(50, 6), columns=columns, index=rows), f"Y.{kind}")
    runs("fit", f"X.{kind}", f"Y.{kind}", "--rank", 2, "-o", "m",
         *(["--index-col", "run"] if index and kind != "parquet" else []))  # fmt: skip
    assert holrr.load("m").tucker_.shape == (4, 3, 2)
    runs("predict", "m", "N.npy", "-o", "P.npy")
    assert_allclose(np.load("P.npy"), HOLRR(2).fit(X, Y).predict(NEW), rtol=1e-9)


def test_row_numbers_of_y_are_no_output():
    pd.DataFrame(X).to_csv("X.csv")
    pd.DataFrame(Y[:, 0]).to_csv("Y.csv")
    runs("fit", "X.csv", "Y.csv", "--rank", 1, "-o", "m")
    assert holrr.load("m").tucker_.shape == (4, 2)


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
@pytest.mark.parametrize("labels", [range(100, 150), ROWS])
@pytest.mark.parametrize("several", [False, True])
def test_a_first_column_that_both_files_have_labels_the_rows(kind, labels, several, capfd):
    rows = pd.Index(labels, name="id")
    columns = pd.MultiIndex.from_product([["x", "y", "z"], ["u", "v"]]) if several else list("pq")
    inputs = pd.DataFrame(X, columns=list("abcd"), index=rows)
    outputs = pd.DataFrame(Y.reshape(50, 6)[:, : len(columns)], columns=columns, index=rows)
    WRITERS[kind](inputs, f"X.{kind}")
    WRITERS[kind](outputs, f"Y.{kind}")
    runs("fit", f"X.{kind}", f"Y.{kind}", "--rank", 1, "-o", "m")
    assert "the first column of both files, id, labels the rows" in capfd.readouterr().err
    assert list(holrr.load("m").feature_names_in_) == list("abcd")
    runs("predict", "m", f"X.{kind}", "-o", "P.parquet")
    found = pd.read_parquet("P.parquet")
    assert found.index.name == "id"
    assert_allclose(found, HOLRR(1).fit(inputs, outputs).predict(inputs), rtol=1e-9)
    WRITERS[kind](outputs[::-1], f"Y.{kind}")
    assert main(["fit", f"X.{kind}", f"Y.{kind}", "-o", "m"]) == 3
    assert "different labels" in capfd.readouterr().err


def test_a_column_of_the_same_name_with_other_values_is_data():
    pd.DataFrame(X, columns=list("abcd")).to_csv("X.csv", index=False)
    pd.DataFrame(X[:, :2] + 1, columns=["a", "u"]).to_csv("Y.csv", index=False)
    runs("fit", "X.csv", "Y.csv", "--rank", 1, "-o", "m")
    assert holrr.load("m").tucker_.shape == (4, 2)


def test_row_labels_that_do_not_start_at_zero_are_kept():
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(100, 150))
    frame.to_csv("X.csv")
    frame[["a", "b"]].add(1).to_csv("Y.csv")
    runs("fit", "X.csv", "Y.csv", "--rank", 1, "-o", "m")
    runs("predict", "m", "X.csv", "-o", "P.csv")
    assert pd.read_csv("P.csv", index_col=0).index.tolist() == frame.index.tolist()


def test_headers_of_numbers_and_of_units(capfd):
    np.savetxt("X.csv", X, delimiter=",")
    np.savetxt("Y.csv", Y.reshape(50, -1), delimiter=";")
    told = fails(capfd, 3, "fit", "X.csv", "Y.csv", "-o", "m")
    assert "the first line of X.csv has only numbers: say with --header 1" in told
    runs("fit", "X.csv", "Y.csv", "--header", 0, "--output-shape", "3,2", "--rank", 1, "-o", "m")
    model = holrr.load("m")
    assert model.tucker_.shape == (4, 3, 2)
    assert_allclose(model.predict(NEW), HOLRR(1).fit(X, Y).predict(NEW).reshape(6, 6), rtol=1e-9)
    with open("units.csv", "w", encoding="utf-8") as file:
        file.write("temp,rain,wind\nK,mm,m/s\n")
        np.savetxt(file, Y[:, :, 0], delimiter=",")
    runs("fit", "X.npy", "units.csv", "--rank", 1, "-o", "m")
    assert holrr.load("m").labels_.columns[0].tolist() == ["temp/K", "rain/mm", "wind/m/s"]


def test_decimal_commas_and_missing_cells():
    frame = table().drop(columns="plant")
    frame.iloc[3, -1] = np.nan
    frame.to_csv("t.csv", sep=";", decimal=",")
    words = ["--decimal", ",", "--index-col", "run", "--outputs", "u,v"]
    runs("fit", "t.csv", *words, "--missing", "ignore", "--rank", 1, "-o", "m")
    runs("predict", "m", "t.csv", "--decimal", ",", "-o", "P.csv")
    model = HOLRR(1, missing="ignore").fit(frame[list("abcd")], frame[["u", "v"]])
    found = pd.read_csv("P.csv", sep=";", decimal=",", index_col="run")
    pd.testing.assert_frame_equal(found, model.predict(frame[list("abcd")]), rtol=1e-9)


def test_wavelengths_are_selected_by_range():
    names = [str(w) for w in range(1000, 1400, 100)]
    pd.DataFrame(np.c_[X, Y[:, 0]], columns=[*names, "fat", "water"]).to_csv("t.csv")
    runs("fit", "t.csv", "--inputs", "1100:1250,1300", "--outputs", "fat", "--rank", 1, "-o", "m")
    assert list(holrr.load("m").feature_names_in_) == ["1100", "1200", "1300"]


# ---------------------------------------------------------------- labelled grids


@pytest.mark.parametrize("suffix", ["nc", "zarr"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_grids_keep_their_names(suffix):
    pytest.importorskip({"nc": "h5netcdf", "zarr": "zarr"}[suffix])
    times = pd.date_range("2000-01-01", periods=50, freq="MS")
    data = xr.Dataset(
        {"x": (("time", "k"), X), "t2m": (("time", "lat", "lon"), Y, {"units": "K"})},
        {"time": times, "lat": [50.0, 60.0, 70.0]},
    )
    data.to_netcdf("d.nc", engine="h5netcdf") if suffix == "nc" else data.to_zarr("d.zarr")
    words = ["--output-weight", "cos:lat", "--groups", "time.year"]
    runs("fit", f"d.{suffix}:x", f"d.{suffix}:t2m", *words, "-o", "m")
    runs("predict", "m", f"d.{suffix}:x", "--std", "-o", f"P.{suffix}")
    weight = np.cos(np.deg2rad(data.lat))
    model = HOLRRCV(output_weight=weight, cv=GroupKFold(5))
    model.fit(data.x, data.t2m, groups=data["time.year"])
    expected, std = model.predict(data.x, return_std=True)
    with xr.open_dataset(f"P.{suffix}", engine="h5netcdf" if suffix == "nc" else "zarr") as found:
        xr.testing.assert_allclose(found.t2m, expected)
        xr.testing.assert_allclose(found["std"], std.rename("std"))
        assert found.t2m.attrs == {"units": "K"}
    runs("predict", "m", f"d.{suffix}:x", "-o", "P.csv")
    assert pd.read_csv("P.csv", header=[0, 1], index_col=0).shape == (50, 6)


def test_the_dimension_of_the_samples_is_named_if_it_is_not_first(capfd):
    pytest.importorskip("h5netcdf")
    times = {"time": pd.date_range("2000-01-01", periods=50, freq="MS"), "k": np.arange(4.0)}
    x = xr.DataArray(X, times, ("time", "k"), name="x").T
    y = xr.DataArray(Y[:, 0, :1] + X, times, ("time", "k"), name="y").T
    xr.Dataset({"x": x, "y": y}).to_netcdf("d.nc", engine="h5netcdf")
    words = ["fit", "d.nc:x", "d.nc:y", "--rank", "1", "-o", "m"]
    assert "contains times. Pass sample_dim='time' to fit" in fails(capfd, 3, *words)
    runs(*words, "--sample-dim", "time")
    assert "50 along time" in capfd.readouterr().out
    runs("predict", "m", "d.nc:x", "-o", "P.nc")
    with xr.open_dataset("P.nc", engine="h5netcdf") as found:
        xr.testing.assert_allclose(found.y, HOLRR(1).fit(x.T, y.T).predict(x.T))


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("fit X.npy Y.npy -o m --rank 2 --cv", 2, "--rank fits one model"),
        ("fit X.npy Y.npy -o m --alpha 1,2 --rank 2", 2, "several values of --alpha need --cv"),
        ("fit X.npy Y.npy -o m --groups g --time-series", 2, "--groups cannot be combined"),
        ("fit X.npy Y.npy -o m --set colour=red", 2, "HOLRRCV has no parameter 'colour'"),
        ("fit X.npy Y.npy -o m --model rls --rank 2", 2, "RLS has no parameter 'rank'"),
        ("fit X.npy Y.npy -o m --output-weight x", 2, "must be numbers such as 1,2,0.5, or cos:"),
        ("fit X.npy Y.npy -o m --output-weight cos:lat", 3, "Y has no dimension 'lat'"),
        ("fit X.npy -o m", 2, "Y is missing"),
        ("fit X.npy Y.npy -o X.npy", 2, "would replace the input X.npy"),
        ("fit X.npy Y.npy -o none/m", 4, "the folder none does not exist"),
        ("fit X.npy missing.npy -o m", 3, "missing.npy does not exist"),
        ("fit X.npy Y.docx -o m", 2, "unknown format '.docx'"),
        ("fit both.npz Y.npy -o m", 3, "contains the arrays X, Y; write both.npz:X"),
        ("fit t.csv --inputs a,e --outputs u -o m", 3, "no column matches 'e'"),
        ("fit t.csv --outputs u -o m", 3, "columns that are not numbers: 'run', 'plant'"),
        ("fit t.csv --inputs a,u --outputs u -o m", 3, "both inputs and outputs: u"),
        ("fit t.csv --inputs a,b --outputs u --index-col id -o m", 3, "no column 'id'"),
        ("fit t.csv --inputs a,b --outputs u --groups g -o m", 3, "'g' is neither a column"),
        ("predict X.npy N.npy -o P.npy", 3, ""),
        ("predict single N.npy -o P.npy --interval 0.9", 3, "chosen by cross-validation"),
        ("predict single N.npy -o P.npy --kind pooled", 2, "--kind needs --interval"),
        ("predict single N.npy -o P.doc", 2, "unknown format '.doc'"),
        ("predict named t.csv -o N.npy", 2, "would replace the input"),
        ("predict named n.csv -o P.npy", 3, "n.csv lacks columns that the model was fitted"),
    ],
)  # fmt: skip
def test_errors_are_one_line_with_a_code(words, code, told, capfd):
    table().to_csv("t.csv")
    holrr.save(HOLRR(1).fit(X, Y), "single")
    holrr.save(HOLRR(1).fit(table()[list("abcd")], Y), "named")
    pd.DataFrame(NEW[:, :3], columns=list("abc")).to_csv("n.csv")
    words = words.replace("predict named t.csv -o N.npy", "predict named t.csv -o t.csv")
    assert told in fails(capfd, code, *words.split())
    assert not os.path.exists("m")


def test_a_failed_command_leaves_files_as_they_were(monkeypatch):
    holrr.save(HOLRR(1).fit(X, Y), "m")
    np.save("P.npy", NEW)

    def fail(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", fail)
    assert main(["predict", "m", "N.npy", "-o", "P.npy"]) == 4
    assert_allclose(np.load("P.npy"), NEW)
    assert sorted(p for p in os.listdir() if p.startswith(".")) == []


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "holrr", "info", "missing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr == "holrr info: missing does not exist\n"


def test_help_version_and_wrong_arguments(capfd):
    assert main(["--version"]) == 0
    assert capfd.readouterr().out.strip() == f"holrr {holrr.__version__}"
    assert main([]) == main(["--help"]) == 0
    overview = capfd.readouterr().out
    assert max(map(len, overview.splitlines())) <= 100
    for command in ("fit", "predict", "score", "info", "report", "demo"):
        assert f"\n  {command} " in overview
        assert main([command, "--help"]) == 0
        capfd.readouterr()
    for words in (["nonsense"], ["fit"], ["fit", "X", "Y", "-o", "m", "--rank", "0"]):
        assert main(words) == 2
        assert len(capfd.readouterr().err.strip().splitlines()) == 1
