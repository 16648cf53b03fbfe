"""The results of a search: a plain dict of NumPy arrays and floats, the same for all searches."""

import copy
import json
import pickle

import numpy as np
import pytest

from holrr import HOLRRCV, LRRCV, RLSCV, KernelHOLRRCV, load
from holrr.core.results import Results
from holrr.datasets import make_tensor_regression
from holrr.model_selection import pruning
from holrr.model_selection.search import in_units

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.1, 1.0, 10.0]
SURFACES = ("mean_mse", "std_mse", "fold_mse")


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV, KernelHOLRRCV])
@pytest.mark.parametrize("criterion", ["cv", "bic"])
def test_results_are_a_dict(make_data, make, criterion):
    X, Y = make_data(n=30, d0=4, shape=(3, 2), seed=1)
    results = make(ALPHAS, criterion=criterion).fit(X, Y).cv_results_
    assert isinstance(results, dict)
    common = {"alphas", "n_parameters", *(["kernels"] if make is KernelHOLRRCV else [])}
    errors = {*SURFACES, "null_mse", "ridge_mse", "held_out_mse"}
    if criterion == "cv":
        assert results.keys() == common | errors
    else:
        assert results.keys() >= common | {criterion}
        assert results.keys().isdisjoint(errors)
    for name, value in results.items():
        assert type(value) in (np.ndarray, float) or name == "kernels"
    for same in (copy.copy(results), copy.deepcopy(results), pickle.loads(pickle.dumps(results))):
        assert isinstance(same, dict)
        assert list(same) == list(results)
    plain = {name: np.asarray(v).tolist() for name, v in results.items() if name != "kernels"}
    assert json.loads(json.dumps(plain)) == plain


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
def test_mean_and_standard_deviation_are_those_of_the_folds(make_data, make):
    X, Y = make_data(n=30, d0=4, shape=(3, 2), seed=1)
    results = make(ALPHAS).fit(X, Y).cv_results_
    np.testing.assert_allclose(results["mean_mse"], results["fold_mse"].mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(results["std_mse"], results["fold_mse"].std(axis=0), rtol=1e-9)
    assert results["fold_mse"].shape[:2] == (5, 3)
    np.testing.assert_array_equal(results["alphas"], ALPHAS)


def test_files_keep_the_results(make_data, tmp_path):
    X, Y = make_data(n=30, d0=4, shape=(3,), seed=1)
    model = RLSCV(alphas=ALPHAS).fit(X, Y)
    model.save(tmp_path / "model.holrr")
    again = load(tmp_path / "model.holrr").cv_results_
    assert type(again) is dict
    np.testing.assert_allclose(again["std_mse"], model.cv_results_["fold_mse"].std(axis=0))
    assert list(again) == list(model.cv_results_)
    for name, value in model.cv_results_.items():
        np.testing.assert_array_equal(again[name], value)


@pytest.mark.parametrize(
    "parameters",
    [
        {"selection": "stack"},
        {"selection": "min"},
        {"selection": "1se"},
        {"max_rank": (None, 3, 4)},
        {"ranks": [(1, 1, 1), (3, 3, 3), (15, 6, 7)]},
        {"alphas": [1.0, 0.1, 10.0, 0.01]},
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [HOLRRCV, KernelHOLRRCV])
def test_shapes_do_not_depend_on_the_search(monkeypatch, make, parameters):
    """A pruned search has NaN for what it has not computed, in arrays of the full shape."""
    monkeypatch.setattr(pruning, "_MANY", 20)
    monkeypatch.setattr(pruning, "N_DIRECTIONS", 20)
    X, Y = make_tensor_regression(
        60, n_features=35, output_shape=(6, 7), rank=3, snr=1.0, random_state=0
    )
    kernels = {"gammas": [0.01, 0.03]} if make is KernelHOLRRCV else {}
    full, pruned = (
        make(search=search, **kernels, **parameters).fit(X, Y).cv_results_
        for search in ("exhaustive", "pruned")
    )
    assert pruned.keys() - full.keys() == {"screened_mse"}
    assert full.keys() <= pruned.keys()
    for name in full.keys() - {"kernels"}:
        assert np.shape(pruned[name]) == np.shape(full[name]), name
    assert np.isnan(pruned["mean_mse"]).sum() > np.isnan(full["mean_mse"]).sum()
    for name in SURFACES:
        known = np.isfinite(pruned[name])
        np.testing.assert_allclose(pruned[name][known], full[name][known], rtol=1e-9)
        assert np.isfinite(full[name][known]).all()
    np.testing.assert_array_equal(pruned["n_parameters"], full["n_parameters"])
    lead = full["mean_mse"].shape[: full["mean_mse"].ndim - full["n_parameters"].ndim]
    assert pruned["screened_mse"].shape == lead


def test_results_in_other_units():
    """Mean squares are multiplied by the square of the unit; counts and penalties are not."""
    results = Results(mean_mse=np.ones(2), gcv=np.ones(2), bic=np.ones(2), alphas=np.ones(2))
    assert in_units(results, 1.0) is results
    found = in_units(results, 4.0)
    assert {name: float(value[0]) for name, value in found.items()} == {
        "mean_mse": 16.0,
        "gcv": 16.0,
        "bic": 1.0,
        "alphas": 1.0,
    }
