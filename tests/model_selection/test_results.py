"""The results of a search: a plain dict of NumPy arrays and floats, the same for all searches."""

import copy
import json
import pickle

import numpy as np
import pytest

from holrr import HOLRRCV, LRRCV, RLSCV, KernelHOLRRCV, Tucker, load
from problems import toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.1, 1.0, 10.0]
SURFACES = ("mean_mse", "std_mse", "fold_mse")
MAKE = [RLSCV, LRRCV, HOLRRCV, KernelHOLRRCV]


def results_of(make=HOLRRCV, **parameters):
    X, Y = toy(n=30, d0=4, shape=(3, 2), seed=1)
    return make(ALPHAS, cv=5, **parameters).fit(X, Y).cv_results_


@pytest.mark.parametrize("make", MAKE)
def test_results_are_a_dict(make):
    results = results_of(make)
    assert isinstance(results, dict)
    common = {"alphas", "n_parameters", *(["kernels"] if make is KernelHOLRRCV else [])}
    ways = set() if make is RLSCV else {"ways", "ways_mse"}
    assert results.keys() == common | ways | {*SURFACES, "null_mse", "ridge_mse", "held_out_mse"}
    for name, value in results.items():
        assert type(value) in (np.ndarray, float) or name in ("kernels", "ways")
    plain = {name: np.asarray(v).tolist() for name, v in results.items() if name != "kernels"}
    assert json.loads(json.dumps(plain)) == plain


READ = {
    "get": lambda r, name: r.get(name),
    "dict": lambda r, name: dict(r)[name],
    "unpacked": lambda r, name: {**r}[name],
    "merged": lambda r, name: ({} | r)[name],
    "items": lambda r, name: dict(r.items())[name],
    "values": lambda r, name: list(r.values())[list(r).index(name)],
    "own copy": lambda r, name: r.copy()[name],
    "copy": lambda r, name: copy.copy(r)[name],
    "deepcopy": lambda r, name: copy.deepcopy(r)[name],
    "pickle": lambda r, name: pickle.loads(pickle.dumps(r))[name],
    "pop": lambda r, name: r.pop(name),
    "setdefault": lambda r, name: r.setdefault(name, None),
}


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("make", MAKE)
def test_every_way_of_reading_gives_the_value(make, read):
    """Also of values that are computed when they are read for the first time."""
    expected = results_of(make)["fold_mse"].std(axis=0)
    np.testing.assert_allclose(READ[read](results_of(make), "std_mse"), expected, rtol=1e-9)
    results = results_of(make)
    assert results["std_mse"] is results["std_mse"]
    assert results.get("other", 5) == 5
    assert results.pop("other", 6) == 6
    with pytest.raises(KeyError, match="other"):
        results["other"]


@pytest.mark.parametrize("make", MAKE)
def test_mean_and_standard_deviation_are_those_of_the_folds(make):
    results = results_of(make)
    np.testing.assert_allclose(results["mean_mse"], results["fold_mse"].mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(results["std_mse"], results["fold_mse"].std(axis=0), rtol=1e-9)
    assert results["fold_mse"].shape[0] == 5
    np.testing.assert_array_equal(results["alphas"], ALPHAS)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e140])
@pytest.mark.parametrize("make", MAKE)
def test_errors_are_in_the_units_of_the_data(make, scale):
    """Counts and penalties are not."""
    X, Y = toy(n=30, d0=4, shape=(3, 2), seed=1)
    plain, scaled = (make(ALPHAS, cv=5).fit(X, Y * s).cv_results_ for s in (1.0, scale))
    errors = [*SURFACES, "null_mse", "ridge_mse", "held_out_mse"]
    for name in (*errors, *(() if make is RLSCV else ["ways_mse"])):
        np.testing.assert_allclose(scaled[name] / scale / scale, plain[name], rtol=1e-6)
    for name in ("alphas", "n_parameters", *(() if make is RLSCV else ["ways"])):
        np.testing.assert_array_equal(scaled[name], plain[name])


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2), (9, 2, 2), (3, 2, 3, 2)], ids=str)
def test_parameter_counts_are_those_of_tucker_tensors(shape):
    """``prod(R) + sum R_i (d_i - R_i)`` where no rank exceeds the product of the others."""
    d0, *outputs = shape
    X, Y = toy(n=40, d0=d0, shape=tuple(outputs))
    counts = HOLRRCV(ALPHAS, cv=3, max_rank=shape).fit(X, Y).cv_results_["n_parameters"]
    assert counts.shape == shape
    for index in np.ndindex(*shape):
        R = [i + 1 for i in index]
        factors = [np.eye(d, r) for d, r in zip(shape, R, strict=True)]
        assert counts[index] == Tucker(np.ones(R), factors).n_parameters
        if all(r * r <= np.prod(R) for r in R):
            free = sum(r * (d - r) for r, d in zip(R, shape, strict=True))
            assert counts[index] == np.prod(R) + free
        else:  # a rank above the product of the others adds nothing
            most = [min(r, int(np.prod(R)) // r) for r in R]
            assert counts[index] == counts[tuple(m - 1 for m in most)]
    matrix = LRRCV(ALPHAS, cv=3).fit(X, Y).cv_results_["n_parameters"]
    np.testing.assert_array_equal(matrix, counts[(slice(len(matrix)), *[-1] * (len(shape) - 1))])


def test_files_keep_the_results_of_ridge_regression(tmp_path):
    """Those of several ranks are tested with the files."""
    X, Y = toy(n=30, d0=4, shape=(3,), seed=1)
    model = RLSCV(ALPHAS).fit(X, Y)
    model.save(tmp_path / "model.holrr")
    again = load(tmp_path / "model.holrr").cv_results_
    assert type(again) is dict
    np.testing.assert_allclose(again["std_mse"], model.cv_results_["fold_mse"].std(axis=0))
    assert list(again) == list(model.cv_results_)
    for name, value in model.cv_results_.items():
        np.testing.assert_array_equal(again[name], value)
