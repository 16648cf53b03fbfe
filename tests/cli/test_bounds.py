"""How sure predictions are, on the command line."""

import numpy as np
import pytest

import holrr
from commands import fails
from holrr.cli import main
from holrr.datasets import make_tensor_regression


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, Y = make_tensor_regression(60, 4, (2, 3), rank=(2, 2, 2), snr=3, random_state=0)
    np.save("X.npy", X)
    np.save("Y.npy", Y)
    return tmp_path


def fit(*words):
    assert main(["fit", "X.npy", "Y.npy", *words, "-o", "m"]) == 0
    return holrr.load("m"), np.load("X.npy")


@pytest.mark.parametrize("words", [["--rank", "2"], [], ["--model", "kernel-rls", "--cv", "3"]])
def test_standard_deviations_are_beside_the_predictions(folder, words):
    model, X = fit(*words)
    assert main(["predict", "m", "X.npy", "--std", "-o", "P.npy"]) == 0
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(np.load("P.npy"), mean)
    np.testing.assert_allclose(np.load("P_std.npy"), std)
    assert std.shape == (60, 2, 3)


@pytest.mark.parametrize("kind", ["entry", "pooled", "simultaneous"])
def test_bounds_are_those_of_the_library(folder, kind):
    model, X = fit("--cv", "3")
    words = ["--interval", "0.8", "--kind", kind, "--std", "-o", "P.npz"]
    assert main(["predict", "m", "X.npy", *words]) == 0
    lower, upper = model.predict_interval(X, 0.8, kind)
    with np.load("P.npz") as found:
        assert sorted(found.files) == ["Y", "lower", "std", "upper"]
        np.testing.assert_allclose(found["lower"], lower)
        np.testing.assert_allclose(found["upper"], upper)


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize("named", [True, False])
def test_bounds_and_standard_deviations_are_separate_columns(folder, suffix, named):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    names = list("abcdef") if named else [f"y{j}" for j in range(6)]
    y = pd.DataFrame(np.load("Y.npy").reshape(60, 6), columns=names)
    y.to_csv("Y.csv", index=False, header=named)
    words = ["--output-shape", "2,3", "--cv", "3", "-o", "m"]
    assert main(["fit", "X.npy", "Y.csv", *words]) == 0
    words = ["--std", "--interval", "0.9", "-o", f"P.{suffix}"]
    assert main(["predict", "m", "X.npy", *words]) == 0
    read = {"csv": pd.read_csv, "xlsx": pd.read_excel, "parquet": pd.read_parquet}[suffix]
    found = read(f"P.{suffix}")
    ends = ("", "_std", "_lower", "_upper")
    assert list(found.columns) == [f"{name}{end}" for end in ends for name in names]
    model, X = holrr.load("m"), np.load("X.npy")
    lower, upper = model.predict_interval(X, 0.9)
    values = {end: found[[f"{n}{end}" for n in names]].to_numpy() for end in ends}
    np.testing.assert_allclose(values["_lower"], lower, rtol=1e-10)
    np.testing.assert_allclose(values["_upper"], upper, rtol=1e-10)
    np.testing.assert_allclose(values["_std"], model.predict(X, return_std=True)[1], rtol=1e-10)


@pytest.mark.parametrize("several", [False, True])
def test_bounds_and_standard_deviations_are_separate_variables(folder, several, capfd):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    time = np.arange("2000-01", "2005-01", dtype="M8[M]").astype("M8[ns]")
    data = xr.Dataset(
        {"x": (("time", "f"), np.load("X.npy")), "u": (("time", "a", "b"), np.load("Y.npy"))},
        coords={"time": time, "a": ["n", "s"]},
    ).assign(v=lambda data: data.u + 1)
    data.to_netcdf("c.nc", engine="h5netcdf")
    outputs = "u,v" if several else "u"
    assert main(["fit", "c.nc:x", f"c.nc:{outputs}", "--cv", "3", "-o", "m"]) == 0
    words = ["--std", "--interval", "0.9", "-o", "P.nc"]
    assert main(["predict", "m", "c.nc:x", *words]) == 0
    assert "warning" not in capfd.readouterr().err
    ends = ("std", "lower", "upper")
    expected = {"u", *ends}
    if several:
        expected = {"u", "v", *(f"{v}_{end}" for end in ends for v in "uv")}
    with xr.open_dataset("P.nc") as found:
        assert set(found.data_vars) == expected
        for name in expected:
            assert found[name].dims == ("time", "a", "b")
            xr.testing.assert_equal(found[name].time, data.time)
        lower = holrr.load("m").predict_interval(data.x, 0.9)[0]
        name = "u_lower" if several else "lower"
        np.testing.assert_allclose(found[name], lower.u if several else lower)


def test_standardized_models_have_bounds_too(folder):
    model, X = fit("--cv", "3", "--standardize")
    assert main(["predict", "m", "X.npy", "--interval", "0.9", "-o", "P.npy"]) == 0
    lower, upper = model[-1].predict_interval(model[:-1].transform(X), 0.9)
    np.testing.assert_allclose(np.load("P_lower.npy"), lower)
    np.testing.assert_allclose(np.load("P_upper.npy"), upper)


def test_invalid_options_for_bounds_are_errors(folder, capfd):
    fit("--rank", "2")
    words = ["predict", "m", "X.npy", "-o", "P.npy"]
    told = fails(capfd, 3, *words, "--interval", "0.9")
    assert "chosen by cross-validation (see --cv of holrr fit); m contains a HOLRR" in told
    for coverage in ("0", "1", "90", "nan", "x"):
        told = fails(capfd, 2, *words, "--interval", coverage)
        assert f"{coverage!r} is not a number between 0 and 1" in told
    assert "needs --interval" in fails(capfd, 2, *words, "--kind", "pooled")
    np.save("P_std.npy", np.load("X.npy"))
    told = fails(capfd, 2, "predict", "m", "P_std.npy", "--std", "-o", "P.npy")
    assert "-o P_std.npy would replace the input" in told
    assert not (folder / "P.npy").exists()
