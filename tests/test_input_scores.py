"""Input scores and feature importances."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import make_pipeline

import holrr
from holrr import HOLRR, HOLRRCV, RLS, KernelHOLRR, KernelRLS
from problems import toy

pytestmark = pytest.mark.filterwarnings(
    "ignore:The best penalty",
    "ignore:landmarks=",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


def predictions(model, scores):
    """From the scores, the core and the output factors alone."""
    out = np.tensordot(scores, model.core_, 1)
    for mode, U in enumerate(model.factors_[1:], start=1):
        out = np.moveaxis(np.tensordot(out, U, (mode, 1)), -1, mode)
    return out + model.intercept_


@pytest.mark.parametrize("shape", [(), (3,), (3, 4)], ids=str)
def test_predictions_follow_from_the_scores(row, shape):
    X, Y = toy(shape=shape)
    model = row.make().fit(X, Y)
    new = 1.3 * X[:7] - 0.2
    scores = model.transform(new)
    assert scores.shape == (7, model.core_.shape[0])
    assert_allclose(predictions(model, scores), model.predict(new), rtol=1e-10, atol=1e-10)
    assert list(model.get_feature_names_out()) == [
        f"{type(model).__name__.lower()}{k}" for k in range(scores.shape[1])
    ]


def test_scores_are_the_inputs_times_the_input_factor(row):
    X, Y = toy()
    model = row.make().fit(X, Y)
    values = X if not hasattr(model, "dual_coef_") else kernel_values(model, X)
    assert_allclose(model.transform(X), values @ model.factors_[0], rtol=1e-9, atol=1e-9)


def kernel_values(model, X):
    """With the samples or landmarks of the fit, by scikit-learn."""
    fit = getattr(model, "best_estimator_", model)
    params = {name: getattr(fit, name) for name in ("gamma", "degree", "coef0")}
    return pairwise_kernels(X, fit.X_fit_, metric=fit.kernel, filter_params=True, **params)


def test_directions_without_coefficients_have_scores_of_zero():
    """With rank 2 for one output the second direction is arbitrary."""
    X, Y = toy(shape=())
    scores = HOLRR(rank=2).fit(X, Y).transform(X)
    assert np.ptp(scores[:, 0]) > 0
    assert_array_equal(scores[:, 1], 0)
    assert_array_equal(HOLRR(rank=2).fit(X, 0 * Y).transform(X), 0)


def test_inputs_of_scores_are_validated():
    X, Y = toy()
    model = HOLRR(rank=2).fit(X, Y)
    with pytest.raises(ValueError, match="4 features"):
        model.transform(X[:, :4])
    with pytest.raises(ValueError, match="X contains NaN"):
        model.transform(np.where(X == X[3, 2], np.nan, X))
    with pytest.raises(NotFittedError):
        HOLRR().transform(X)


def test_scores_in_every_array_library(xp):
    X, Y = toy()
    for model in (HOLRR(rank=2), KernelHOLRR(rank=2, kernel="rbf")):
        expected = model.fit(X, Y).transform(X)
        found = model.fit(xp.asarray(X), xp.asarray(Y)).transform(xp.asarray(X))
        assert xp.owns(found)
        assert_allclose(xp.to_numpy(found), expected, rtol=1e-8, atol=1e-8)
    single = HOLRR(rank=2).fit(X.astype("f4"), Y.astype("f4")).transform(X.astype("f4"))
    assert single.dtype == np.float32


@pytest.mark.parametrize(
    "model", [HOLRR(rank=2), HOLRRCV(cv=3), KernelHOLRR(rank=2, kernel="rbf"), RLS()], ids=str
)
def test_scores_of_dask_arrays_are_lazy(model):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy()
    expected = model.fit(X, Y).transform(X)
    found = model.transform(da.from_array(X, chunks=(13, 2)))
    assert isinstance(found, da.Array)
    assert found.shape == expected.shape
    assert_allclose(found.compute(), expected)


@pytest.mark.parametrize("model", [HOLRR(rank=2), HOLRRCV(cv=3)], ids=str)
def test_scores_keep_the_labels_of_the_samples(model, tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy()
    table = pd.DataFrame(X, columns=list("abcde"), index=[f"rat {i}" for i in range(40)])
    scores = model.set_output(transform="pandas").fit(table, Y).transform(table)
    assert list(scores.columns) == list(model.get_feature_names_out())
    assert list(scores.index) == list(table.index)
    model.save(tmp_path / "model.holrr")
    pd.testing.assert_frame_equal(holrr.load(tmp_path / "model.holrr").transform(table), scores)


def test_scores_of_data_arrays_are_data_arrays():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = toy()
    x = xr.DataArray(
        X.reshape(40, 5, 1), dims=("time", "lat", "lon"), coords={"time": 1950 + np.arange(40)}
    )
    model = HOLRR(rank=2).fit(x, Y)
    scores = model.transform(x.transpose("lon", "time", "lat"))
    assert scores.dims == ("time", "component")
    assert_array_equal(scores.time, x.time)
    assert_array_equal(scores, model.transform(x))
    assert_allclose(scores, X @ model.factors_[0])


def test_scores_in_a_pipeline():
    """Least squares on the scores is the best linear map from them to the outputs."""
    X, Y = toy()
    pipe = make_pipeline(HOLRR(rank=2, alpha=0), LinearRegression()).fit(X, Y.reshape(40, -1))
    assert pipe[-1].n_features_in_ == 2
    assert pipe.score(X, Y.reshape(40, -1)) > 0.8
    scores = np.c_[np.ones(40), HOLRR(rank=2, alpha=0).fit(X, Y.reshape(40, -1)).transform(X)]
    assert_allclose(
        pipe.predict(X), scores @ np.linalg.lstsq(scores, Y.reshape(40, -1), rcond=None)[0]
    )


def test_feature_importance_is_the_norm_of_the_coefficients(row):
    X, Y = toy()
    model = row.make().fit(X, Y)
    if not row.linear:
        assert not hasattr(model, "feature_importances_")
        return
    expected = np.sqrt((model.coef_**2).sum(axis=(1, 2)))
    assert_allclose(model.feature_importances_, expected, rtol=1e-12)


def test_importance_leaves_out_outputs_that_were_never_observed():
    X, Y = toy()
    Y[:, 1, 2] = np.nan
    model = RLS(missing="ignore").fit(X, Y)
    assert np.isnan(model.coef_).any()
    assert_allclose(model.feature_importances_**2, np.nansum(model.coef_**2, axis=(1, 2)))
    assert not hasattr(KernelRLS(kernel="rbf").fit(X, Y[..., 0]), "feature_importances_")
