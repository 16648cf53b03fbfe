"""`holrr info --json`: stable keys, the numbers of Python, nothing that is not JSON."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import holrr
from holrr import HOLRR, HOLRRCV, RLS, KernelRLS
from holrr.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
Y = RNG.normal(size=(N, 3, 4)) + 2 * X[:, :1, None]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    np.save("Y.npy", Y)
    return tmp_path


def info(capfd, model="m"):
    capfd.readouterr()
    assert main(["info", model, "--json"]) == 0
    found = capfd.readouterr()
    assert found.err == ""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(found.out, parse_constant=refuse)


def test_numbers_are_those_of_python(folder, capfd):
    assert main(["fit", "X.npy", "Y.npy", "--standardize", "-o", "m"]) == 0
    text, found, model = capfd.readouterr().out, info(capfd), holrr.load("m")[-1]
    assert found["model"] == "HOLRR"
    assert found["search"] == "HOLRRCV"
    assert found["holrr"] == holrr.__version__
    assert found["preprocessing"] == [
        {
            "name": "standardize",
            "class": "Standardizer",
            "parameters": {},
            "description": "standardization",
        }
    ]
    assert found["inputs"]["n_features"] == found["inputs"]["n_used"] == 5
    assert found["outputs"]["shape"] == [3, 4]
    assert found["n_samples"] == N
    assert found["rank"] == list(model.rank_)
    assert found["penalty"]["alpha"] == pytest.approx(model.best_params_["alpha"])
    assert found["n_parameters"] == model.n_parameters_
    assert found["n_coefficients"] == 60
    assert found["held_out"]["rmse"] == pytest.approx(np.sqrt(model.held_out_mse_))
    assert found["held_out"]["ridge_rmse"] == pytest.approx(np.sqrt(model.ridge_mse_))
    assert found["held_out"]["mean_rmse"] == pytest.approx(np.sqrt(model.null_mse_))
    assert found["held_out"]["cv"] == {"kind": "KFold", "n_splits": 5}
    assert found["has_intervals"] is True
    weights = [part["weight"] for part in found["stack"]["models"]]
    assert weights == pytest.approx(model.stack_weights_.tolist())
    assert found["certificate"] == pytest.approx(
        model.best_estimator_.objective_ / model.best_estimator_.lower_bound_
    )
    # All numbers of the text are numbers of the JSON, to the digits that are printed.
    assert f"{found['held_out']['rmse']:.6g}" in text
    assert f"{found['certificate']:.4f}" in text
    assert found["stack"]["description"] in text


MODELS = {
    "fixed": lambda: HOLRR(2).fit(X, Y),
    "blocks": lambda: RLS({"a": 1.0, "b": np.inf}, blocks={"a": [0], "b": [1, 2, 3, 4]}).fit(X, Y),
    "own": lambda: RLS(own=[(0, 0)]).fit(X[:, :3], Y),
    "weights": lambda: HOLRR(2, output_weight=[np.arange(1.0, 4), None]).fit(X, Y),
    "never": lambda: RLS(missing="ignore").fit(X, np.where(np.arange(4) < 1, np.nan, Y)),
    "dropped": lambda: RLS(missing_features="drop").fit(np.insert(X, 2, np.nan, axis=1), Y),
    "modes": lambda: HOLRR(2, input_rank=(1, 2)).fit(X[:, :4].reshape(N, 2, 2), Y),
    "arrays": lambda: RLS().fit({"u": X, "v": X[:, 0] ** 2}, Y),
    "scalar": lambda: RLS().fit(X, Y[:, 0, 0]),
    "kernel": lambda: KernelRLS(kernel="rbf", gamma=0.5, n_components=7, random_state=0).fit(X, Y),
    "search": lambda: HOLRRCV(selection="min").fit(X, Y),
    "by output": lambda: RLS(alpha=np.ones((3, 4))).fit(X, Y),
    "penalised": lambda: holrr.TraceNormRegression().fit(X, Y),
    "mlmt-nc": lambda: holrr.MLMTNC(rank=2).fit(X, Y),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_model_has_the_same_keys(folder, capfd, name):
    MODELS[name]().save("m")
    found = info(capfd)
    assert sorted(found) == sorted(documented_keys())
    assert sorted(found["inputs"]) == sorted(documented_keys("inputs"))
    assert sorted(found["outputs"]) == sorted(documented_keys("outputs"))
    expected = {
        "blocks": lambda f: (
            f["inputs"]["blocks"][1]
            == {"name": "b", "n_features": 4, "alpha": None, "left_out": True}
        ),
        "own": lambda f: f["inputs"]["own"] == [[0, 0]],
        "weights": lambda f: f["outputs"]["weighted"],
        "never": lambda f: f["outputs"]["n_never_observed"] == 3,
        "dropped": lambda f: (f["inputs"]["n_features"], f["inputs"]["n_used"]) == (6, 5),
        "modes": lambda f: f["inputs"]["rank"] == [1, 2],
        "arrays": lambda f: [a["name"] for a in f["inputs"]["arrays"]] == ["u", "v"],
        "scalar": lambda f: f["outputs"]["shape"] == [],
        "kernel": lambda f: f["kernel"] == {"name": "rbf", "gamma": 0.5, "n_components": 7},
        "by output": lambda f: f["penalty"]["alpha"] == [[1.0] * 4] * 3,
        "search": lambda f: f["stack"] is None and f["search"] == "HOLRRCV",
        "penalised": lambda f: f["penalty"] == {"alpha": 0.0, "penalty": 1.0},
        "mlmt-nc": lambda f: f["penalty"] == {"beta": 1.0},
    }
    assert expected.get(name, lambda f: f["held_out"] is None)(found)
    assert main(["info", "m"]) == 0  # the text is made of the same facts


def documented_keys(part=None):
    """The keys in the tables of the page."""
    section = PAGE.split("## info")[1].split("\n## ")[0]
    prefix = f"{part}." if part else ""
    keys = re.findall(r"^\| `([\w.]+)`", section, flags=re.M)
    return [
        key.removeprefix(prefix)
        for key in keys
        if ("." in key) == bool(part) and key.startswith(prefix)
    ]


def test_labels_and_dates_are_text(folder, capfd):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    inputs = xr.DataArray(
        X.reshape(N, 5), {"day": pd.date_range("2001-01-01", periods=5)}, ("time", "day")
    )
    outputs = xr.DataArray(Y, {"lat": [1.5, 2.5, 3.5]}, ("time", "lat", "lon"))
    RLS().fit(inputs, outputs).save("m")
    found = info(capfd)
    assert found["outputs"]["modes"][0] == {
        "name": "lat",
        "size": 3,
        "coordinates": [1.5, 2.5, 3.5],
    }
    assert found["outputs"]["kind"] == "dataarray"
    assert found["sample_dim"] == "time"
    days = found["inputs"]["arrays"][0]["modes"][0]["coordinates"]
    assert days[:2] == ["2001-01-01", "2001-01-02"]
