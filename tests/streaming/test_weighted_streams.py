"""`output_weight` and outputs that are never observed, of data on disk and of Dask arrays."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV, standard_errors
from holrr.streaming import memory_budget
from problems import on_disk, toy

pytestmark = pytest.mark.filterwarnings(
    "ignore:The best penalty", "ignore::sklearn.exceptions.ConvergenceWarning"
)

KINDS = ["disk", "dask"]
OPTIONS = {"alphas": [0.1, 1.0, 10.0], "cv": 3}
MODELS = [RLS(), LRR(2), HOLRR(2), HOLRR(2, subspaces="response"), HOLRR(2, refine=True)]
MODELS += [RLS(alpha=np.linspace(0.1, 3, 20).reshape(4, 5))]
MODELS += [RLSCV(**OPTIONS), LRRCV(**OPTIONS), HOLRRCV(**OPTIONS)]
MODELS += [HOLRRCV(**OPTIONS, selection="min")]
AREA = np.array([1.0, 3.0, 0.5, 2.0])
NO_SLICE = np.array([1.0, 3.0, 0.0, 2.0])
LAND = np.ones((4, 5), dtype=bool)
LAND[1, 2:4] = LAND[2, 3] = LAND[0] = False


def data(n=80):
    return toy(n=n, shape=(4, 5), noise=1.0)


def blockwise(kind, folder, X, Y):
    """The data as a user would pass them where they do not fit in memory."""
    if kind == "disk":
        return on_disk(folder, "X", X), on_disk(folder, "Y", Y)
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    return da.from_array(X, chunks=(17, 3)), da.from_array(Y, chunks=(17, 3, 2))


def assert_same_model(found, expected, X, tol=1e-7):
    assert_allclose(found.predict(X), expected.predict(X), atol=tol)
    assert_allclose(found.objective_, expected.objective_, rtol=tol)
    if hasattr(expected, "best_score_"):
        assert found.best_params_ == expected.best_params_
        assert_allclose(found.held_out_mse_, expected.held_out_mse_, rtol=tol)
        # In memory the folds are fitted once more, and cells of a mask completed anew.
        both = [model.cv_results_["unweighted_mse"] for model in (found, expected)]
        assert_allclose(*both, rtol=tol if tol < 1e-6 else 1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [2**14, 2**11], ids=["usual", "wide"])
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("area", [AREA, NO_SLICE], ids=["positive", "zero"])
def test_weighted_fits_of_streams_equal_those_in_memory(model, area, budget, kind, tmp_path):
    X, Y = data()
    Y[3:9, area == 0] = np.nan  # has no weight
    model = clone(model).set_params(output_weight=[area, None])
    expected = clone(model).fit(X, Y)
    with memory_budget(budget):
        found = clone(model).fit(*blockwise(kind, tmp_path, X, Y))
    assert_same_model(found, expected, X)
    assert_array_equal(np.isnan(found.predict(X)[0]).all(axis=1), area == 0)


@pytest.mark.parametrize("model", [RLS(), LRR(2), HOLRR(2), *MODELS[6:10]], ids=str)
def test_weights_of_streams_with_a_fixed_mask_equal_those_in_memory(model, tmp_path):
    X, Y = data()
    masked = np.where(LAND, Y, np.nan)
    model = clone(model).set_params(missing="ignore")
    for weight, y, kind in (
        ([AREA, None], masked, "disk"),
        ([NO_SLICE, None], masked, "dask"),
        (np.where(LAND, AREA[:, None], np.nan), masked, "disk"),  # the mask in the weights as well
        (np.where(LAND, AREA[:, None], 0.0), Y, "dask"),  # or in the weights alone
    ):
        weighted = clone(model).set_params(output_weight=weight)
        with memory_budget(2**14):
            found = clone(weighted).fit(*blockwise(kind, tmp_path, X, y))
        expected = weighted.fit(X, y)
        assert_same_model(found, expected, X, tol=1e-5)
        assert np.isnan(found.predict(X)[:, ~LAND]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_without_weight_may_be_missing_in_some_samples(kind, tmp_path):
    """They are no part of the mask that every sample must have."""
    X, Y = data()
    Y[:, 1, 2] = np.nan
    Y[10:20, 3] = np.nan
    model = HOLRR(2, missing="ignore", output_weight=[[1.0, 2.0, 3.0, 0.0], None])
    with memory_budget(2**14):
        found = clone(model).fit(*blockwise(kind, tmp_path, X, Y))
        Y[10, 1, 2] = 1.0
        with pytest.raises(ValueError, match=r"a number for an output .* at index \(10, 1, 2\)"):
            clone(model).fit(*blockwise(kind, tmp_path, X, Y))
    Y[10, 1, 2] = np.nan
    assert_same_model(found, model.fit(X, Y), X, tol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", [HOLRR(2), HOLRRCV(**OPTIONS)], ids=str)
def test_bad_weights_of_streams_are_refused(model, kind, tmp_path):
    X, Y = data()
    bad = [
        (np.where(LAND, AREA[:, None], 0.0), 'set missing="ignore"', "raise"),
        (np.where(LAND, AREA[:, None], np.nan), "which is observed in y", "ignore"),
        (np.arange(1.0, 21.0).reshape(4, 5), "must be a product over the output modes", "raise"),
        ([AREA], "must have 2 entries", "raise"),
    ]
    with memory_budget(2**14):
        pair = blockwise(kind, tmp_path, X, Y)
        for weight, message, missing in bad:
            new = clone(model).set_params(output_weight=weight, missing=missing)
            with pytest.raises(ValueError, match=message):
                new.fit(*pair)
            assert not hasattr(new, "tucker_")
        Y[41, 2, 3] = np.nan
        new = clone(model).set_params(output_weight=[AREA, None])
        with pytest.raises(ValueError, match=r"y contains NaN at index \(41, 2, 3\)"):
            new.fit(*blockwise(kind, tmp_path, X, Y))


@pytest.mark.parametrize("kind", KINDS)
def test_standard_errors_of_weighted_streams_are_refused(kind, tmp_path):
    with memory_budget(2**14):
        pair = blockwise(kind, tmp_path, *data())
        with pytest.raises(ValueError, match=r"output_weight .* standard errors of data that"):
            standard_errors(HOLRR(2, output_weight=[AREA, None]), *pair)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_weighted_outputs_have_the_type_of_those_in_memory(kind, dtype, tmp_path):
    X, Y = data()
    X, Y = X.astype("float32"), (10 * Y).astype(dtype)
    model = HOLRR(2, output_weight=[AREA, None])
    expected = clone(model).fit(X, Y)
    with memory_budget(2**12):
        found = clone(model).fit(*blockwise(kind, tmp_path, X, Y))
    assert found.coef_.dtype == expected.coef_.dtype
    assert_allclose(found.coef_, expected.coef_, rtol=1e-3, atol=1e-4)
