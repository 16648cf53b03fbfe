"""Program that uses the public interface, for ``mypy --strict`` (`test_types.py`)."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped, unused-ignore]

import holrr
from holrr import HOLRR, HOLRRCV, LRR, RLS, KernelHOLRRCV, Moments, TraceNormRegression
from holrr.data import Standardizer
from holrr.datasets import make_tensor_regression
from holrr.diagnostics import find_outliers
from holrr.inference import StandardErrors
from holrr.metrics import r2, rmse
from holrr.model_selection import BlockKFold


def main() -> dict[str, float]:
    X, Y = make_tensor_regression(60, 5, (4, 3), rank=2, snr=5.0, random_state=0)
    model = HOLRRCV(cv=BlockKFold(4), max_rank=(2, 2, 2), scale_outputs="std", verbose=False)
    fitted = assert_type(model.fit(X, Y), HOLRRCV)
    assert_type(fitted.predict(X), NDArray[Any])
    mean, _ = assert_type(fitted.predict(X, return_std=True), tuple[NDArray[Any], NDArray[Any]])
    assert_type(fitted.predict_interval(X, coverage=0.8, kind="pooled"), tuple[Any, Any])
    assert_type(fitted.rank_, tuple[int, ...])
    assert_type(fitted.best_estimator_, HOLRR)
    assert_type(fitted.choice_, str)
    assert_type(fitted.held_out_mse_, float)
    assert_type(fitted.set_params(selection="min").fit(X, Y).alphas_, NDArray[Any])

    maps = xr.DataArray(Y, dims=("time", "lat", "lon"))
    inputs = xr.DataArray(X, dims=("time", "index"))
    ridge = RLS(alpha=2.0).fit(inputs, maps, sample_dim="time")
    assert_type(ridge.predict(inputs), xr.DataArray)
    assert_type(ridge.predict(inputs, return_std=True), tuple[xr.DataArray, xr.DataArray])

    rank: int = (
        LRR(rank=2, alpha={"a": 1.0, "b": 0.1}, blocks={"a": [0, 1], "b": [2, 3, 4]})
        .fit(X, Y)
        .rank_
    )
    kernel = KernelHOLRRCV(gammas=[0.1, 1.0], landmarks=20, random_state=0).fit(X, Y)
    assert_type(kernel.kernel_params_, dict[str, Any])
    assert_type(TraceNormRegression(penalty=3.0).fit(X, Y).history_, dict[str, NDArray[Any]])
    streamed = HOLRR(rank=2).partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    assert_type(streamed, HOLRR)
    moments = Moments.from_arrays(X, Y)
    assert_type(HOLRR(rank=(2, 2, 2)).fit_moments(moments + moments), HOLRR)

    pipeline = make_pipeline(Standardizer(), HOLRRCV(cv=3)).fit(X, Y)
    lower, upper = holrr.predict_interval(pipeline, X)
    width = float(np.mean(upper - lower))
    errors = assert_type(holrr.standard_errors(pipeline, X, Y, stability=False), StandardErrors)
    outliers = find_outliers(ridge, X, Y)
    assert_type(kernel.get_params(), dict[str, Any])
    assert_type(float(np.mean(errors.intercept.std_error)), float)
    scores = {"score": streamed.score(X, Y), "r2": float(r2(Y, mean)), "rmse": float(rmse(Y, mean))}
    return scores | {"rank": rank, "width": width, "outliers": len(outliers.residuals)}


if __name__ == "__main__":
    print(main())
