"""How good a model is, on the command line: score, and what fit and info say."""

import re

import numpy as np
import pytest

import holrr
from holrr.cli import main
from holrr.datasets import make_tensor_regression
from holrr.metrics import r2, rmse
from holrr.streaming import memory_budget


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, Y = make_tensor_regression(80, 5, (3, 4), rank=(2, 2, 2), snr=3, random_state=0)
    Y[:, 0, 0] *= 1e-3  # an output that hardly varies
    np.save("X.npy", X[:60])
    np.save("Y.npy", Y[:60])
    np.save("X_new.npy", X[60:])
    np.save("Y_new.npy", Y[60:])
    return tmp_path


def lines(capfd, *words):
    capfd.readouterr()
    assert main(list(words)) == 0
    found = capfd.readouterr()
    assert found.err == ""
    pairs = [re.match(r" *(\S.*?)  +(\S.*)", line) for line in found.out.splitlines()]
    return dict(pair.groups() for pair in pairs if pair)


def number(text):
    return float(text.split()[0])


def test_scores_are_those_of_the_library(folder, capfd):
    assert main(["fit", "X.npy", "Y.npy", "-o", "m"]) == 0
    said = lines(capfd, "score", "m", "X_new.npy", "Y_new.npy")
    X, Y = np.load("X_new.npy"), np.load("Y_new.npy")
    predicted = holrr.load("m").predict(X)
    assert number(said["R2"]) == pytest.approx(r2(Y, predicted), rel=1e-5)
    each = r2(Y, predicted, average="uniform")
    assert number(said["of each output"]) == pytest.approx(each, rel=1e-5)
    assert number(said["RMSE"]) == pytest.approx(rmse(Y, predicted), rel=1e-5)
    of_mean = np.sqrt(np.mean((Y - Y.mean(0)) ** 2))
    assert number(said["of the mean"]) == pytest.approx(of_mean, rel=1e-5)
    assert said["samples"].strip() == "20"


def test_scores_have_the_weights_of_the_outputs_in_the_fit(folder, capfd):
    X, Y, X_new, Y_new = (np.load(f"{name}.npy") for name in ("X", "Y", "X_new", "Y_new"))
    weights = [np.linspace(1, 9, Y.shape[1]), *[None] * (Y.ndim - 2)]
    model = holrr.HOLRR(2, output_weight=weights).fit(X, Y)
    model.save("m")
    said = lines(capfd, "score", "m", "X_new.npy", "Y_new.npy")
    assert number(said["R2"]) == pytest.approx(model.score(X_new, Y_new), rel=1e-5)
    pair, how = (Y_new, model.predict(X_new)), {"output_weight": weights}
    each = r2(*pair, average="uniform", **how)
    assert number(said["of each output"]) == pytest.approx(each, rel=1e-5)
    assert number(said["RMSE"]) == pytest.approx(rmse(*pair, **how), rel=1e-5)
    assert rmse(*pair) != pytest.approx(rmse(*pair, **how), rel=1e-4)
    assert said["weights"] == "those of the outputs in the fit"


def test_scores_of_large_files_are_the_same(folder, capfd):
    assert main(["fit", "X.npy", "Y.npy", "--model", "rls", "--alpha", "1", "-o", "m"]) == 0
    small = lines(capfd, "score", "m", "X.npy", "Y.npy")
    with memory_budget(2**12):
        assert lines(capfd, "score", "m", "X.npy", "Y.npy") == small


def test_scores_of_a_labelled_file_in_another_order_of_dimensions(folder, capfd):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    Y = xr.DataArray(np.load("Y.npy"), dims=("time", "a", "b"), name="Y")
    X = xr.DataArray(np.load("X.npy"), dims=("time", "f"), name="X")
    Y.to_netcdf("Y.nc", engine="h5netcdf")
    X.to_netcdf("X.nc", engine="h5netcdf")
    Y.transpose("b", "time", "a").to_netcdf("T.nc", engine="h5netcdf")
    assert main(["fit", "X.nc", "Y.nc", "--rank", "2", "-o", "m"]) == 0
    expected = lines(capfd, "score", "m", "X.nc", "Y.nc")
    assert number(expected["R2"]) > 0.5
    assert lines(capfd, "score", "m", "X.nc", "T.nc") == expected


def test_columns_in_another_order_score_the_same(folder, capfd):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(np.load("X.npy"), columns=list("abcde"))
    table = table.assign(u=table.a + table.b, v=table.c)
    table.to_csv("t.csv", index=False)
    table[list("vuedcba")].to_csv("r.csv", index=False)
    assert main(["fit", "t.csv", "--outputs", "u,v", "--alpha", "1", "-o", "m"]) == 0
    expected = lines(capfd, "score", "m", "t.csv", "--outputs", "u,v")
    assert main(["score", "m", "r.csv", "--outputs", "u,v"]) == 0
    found = capfd.readouterr()
    assert "put in the order" in found.err
    assert found.out.splitlines()[1].split()[1] == expected["R2"].split()[0]
    assert main(["score", "m", "r.csv", "--outputs", "v,u"]) == 3
    assert "y has other columns than the fit" in capfd.readouterr().err


@pytest.mark.parametrize("model", ["holrr", "rls", "kernel-rls"])
def test_the_held_out_error_stands_beside_those_of_the_mean_and_of_ridge(folder, capfd, model):
    said = lines(capfd, "fit", "X.npy", "Y.npy", "--model", model, "--cv", "3", "-o", "m")
    by_hand = holrr.load("m")
    assert number(said["held-out RMSE"]) == pytest.approx(by_hand.held_out_mse_**0.5, rel=1e-5)
    assert number(said["of the mean"]) == pytest.approx(by_hand.null_mse_**0.5, rel=1e-5)
    assert number(said["of ridge"]) == pytest.approx(by_hand.ridge_mse_**0.5, rel=1e-5)
    info = lines(capfd, "info", "m")
    assert said == info


def test_info_shows_names_and_coordinates(folder, capfd):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    months = pd.MultiIndex.from_product(
        [["north", "south", "west"], [1, 2, 3, 4]], names=["site", "month"]
    )
    y = pd.DataFrame(np.load("Y.npy").reshape(60, 12), columns=months)
    x = pd.DataFrame(np.load("X.npy"), columns=["nao", "enso", "qbo", "amo", "pdo"])
    holrr.HOLRR(2).fit(x, y).save("m")
    info = lines(capfd, "info", "m")
    assert info["inputs"].strip() == "5 (nao, enso, ..., pdo)"
    assert info["site"].strip() == "north, south, west"
    assert info["month"].strip() == "1, 2, 3, 4"


def test_progress_is_shown_on_a_terminal(folder, capfd, monkeypatch):
    pytest.importorskip("rich", reason="rich is not installed")
    import io
    import sys

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["fit", "X.npy", "Y.npy", "--cv", "3", "-o", "m"]) == 0
    assert "HOLRRCV" in terminal.getvalue()
    assert holrr.load("m").verbose is False


def test_the_file_has_the_errors_along_a_path_of_ranks(folder):
    assert main(["fit", "X.npy", "Y.npy", "-o", "m"]) == 0
    by_hand = holrr.HOLRRCV(cv=5).fit(np.load("X.npy"), np.load("Y.npy"))
    results = holrr.load("m").cv_results_
    assert results["path_mse"][-1] == by_hand.cv_results_["mean_mse"].min()
    assert results["held_out_mse"] == by_hand.held_out_mse_
