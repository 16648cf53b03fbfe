"""Intervals and parts of predictions, of estimators and of fitted pipelines that end with one.

Pipelines and grid searches of scikit-learn have the methods `predict` and `score`, but not the
other methods of their last step. These functions apply the transformers of a pipeline to the
inputs, and call the method of the last step.
"""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from .base import TensorRegressor

__all__ = ["final_estimator", "predict_blocks", "predict_interval", "score_blocks"]


def predict_interval(
    model: Any,
    X: Any,
    coverage: float = 0.9,
    kind: Literal["entry", "pooled", "simultaneous"] = "entry",
    *,
    check_inputs: bool = True,
) -> tuple[Any, Any]:
    """Compute prediction intervals, which contain new observations with a given probability.

    An interval is the prediction of the final model of a search plus and minus a quantile of the
    held-out residuals of the search, scaled by the standard deviation of the prediction. If the fit
    used only moments (`fit_fold_moments`, or data that are read in chunks), the residuals are
    assumed to be normal. See docs/intervals.md.

    Parameters
    ----------
    model : estimator, Pipeline or GridSearchCV
        Fitted search of this library, such as `HOLRRCV`, or a fitted pipeline that ends with one.
    X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
        Inputs of the model, before the transformers of a pipeline.
    coverage : float, default=0.9
        Probability that an interval contains a new observation, between 0 and 1.
    kind : {"entry", "pooled", "simultaneous"}, default="entry"
        Quantiles of the intervals. "entry" uses a quantile for each output. "pooled" uses one
        quantile of the scaled residuals of all outputs, which needs fewer samples. "simultaneous"
        widens the intervals so that all outputs of a sample lie in their intervals at the same time
        with the given probability.
    check_inputs : bool, default=True
        Whether to warn if most of the inputs are unlike the training inputs, as in `predict`.

    Returns
    -------
    lower, upper : arrays of shape (n_samples, d1, ..., dp)
        Ends of the intervals, in the format of `predict`.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from holrr import HOLRRCV, predict_interval
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(90, 5, (4, 3), rank=2, snr=1, random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), HOLRRCV()).fit(X[:60], Y[:60])
    >>> lower, upper = predict_interval(pipeline, X[60:], coverage=0.9)
    >>> lower.shape, bool((lower < upper).all())
    ((30, 4, 3), True)
    """
    final, X = final_estimator(model, X)
    found: tuple[Any, Any] = final.predict_interval(X, coverage, kind, check_inputs=check_inputs)
    return found


def predict_blocks(model: Any, X: Any) -> Any:
    """Predict the outputs, split into the contributions of the blocks of inputs.

    The part of a block is ``(X_b - mean_b) coef_b``, where ``mean_b`` is the mean of the training
    inputs. The part "intercept" is the prediction at these means and the same for all samples. It
    is the training mean of `y` if no outputs are missing. The parts add up to ``predict(X)``. With
    ``fit_intercept=False``, no mean is subtracted and the part "intercept" is zero. See
    docs/blocks.md.

    Parameters
    ----------
    model : estimator, Pipeline or GridSearchCV
        Fitted linear model with `blocks`, or a fitted pipeline that ends with one. Its blocks are
        those of the transformed inputs.
    X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
        Inputs of the model, before the transformers of a pipeline.

    Returns
    -------
    dict, DataArray or Dataset
        Part of each block and of "intercept", by name: arrays of shape (n_samples, d1, ..., dp), or
        DataFrames if `y` was a DataFrame in `fit`. If `y` was an xarray object, the result is a
        DataArray or Dataset with the first dimension ``block``. If `X` is a Dask array, the parts
        are lazy. Blocks with an infinite penalty have parts of zero.

    See Also
    --------
    score_blocks : How much of the variance each block explains.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from holrr import RLS, predict_blocks
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> Y = np.stack([X[:, 0], X[:, 0] + X[:, 2]], axis=1) + 5
    >>> model = RLS(alpha=0.0, blocks={"lags": [0, 1], "calendar": [2]})
    >>> pipeline = make_pipeline(StandardScaler(), model).fit(X, Y)
    >>> parts = predict_blocks(pipeline, X)
    >>> {name: part.shape for name, part in parts.items()}
    {'lags': (50, 2), 'calendar': (50, 2), 'intercept': (50, 2)}
    >>> bool(np.allclose(sum(parts.values()), pipeline.predict(X)))
    True
    """
    final, X = final_estimator(model, X)
    return final.predict_blocks(X)


def score_blocks(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    average: Literal["pooled", "uniform"] | None = "pooled",
) -> Any:
    """Split R2 into the shares of the variance that the blocks of inputs explain.

    Let P_b be the parts of `predict_blocks`, and let Y and P be the outputs and the predictions
    minus the mean of `y`. The part of a block is ``<P_b, 2 Y - P> / <Y, Y>``. The parts of all
    blocks and of the intercept add up to R2. A block that makes predictions worse has a negative
    part. The part of the intercept is zero for the training data, and usually small for other data.
    See docs/blocks.md.

    Parameters
    ----------
    model : estimator, Pipeline or GridSearchCV
        Fitted linear model with `blocks`, or a fitted pipeline that ends with one.
    X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
        Inputs of the model, before the transformers of a pipeline. Memory maps and Dask arrays
        are read in chunks.
    y : array of shape (n_samples, d1, ..., dp)
        Observed outputs. With ``missing="ignore"``, missing entries are left out, as in `score`.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples.
    average : {"pooled", "uniform"} or None, default="pooled"
        R2 to split: "pooled" splits `score`, "uniform" splits the mean of the R2 of all outputs,
        and None splits the R2 of each output. The `output_weight` of the model is used, as in
        `holrr.metrics.r2`.

    Returns
    -------
    dict, DataArray or Dataset
        Part of each block and of "intercept", by name. The parts are numbers; with
        ``average=None`` they are arrays of shape (d1, ..., dp), or Series if `y` was a DataFrame in
        `fit`. With ``average=None``, and if `y` was an xarray object, the result is a DataArray or
        Dataset with the first dimension ``block``.

    See Also
    --------
    predict_blocks : Contributions of the blocks to the predictions.
    holrr.plotting.BlockScoresDisplay : Plot of the parts of R2.

    Notes
    -----
    Correlated blocks share variance. The model splits the shared variance between the blocks
    depending on their penalties; the split does not identify causes.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import RLS, score_blocks
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> Y = np.stack([X[:, 0], X[:, 0] + X[:, 2]], axis=1) + rng.normal(size=(200, 2))
    >>> model = RLS(alpha=1.0, blocks={"lags": [0, 1], "calendar": [2]}).fit(X[:150], Y[:150])
    >>> parts = score_blocks(model, X[150:], Y[150:])
    >>> {name: round(part, 2) for name, part in parts.items()}
    {'lags': 0.24, 'calendar': 0.24, 'intercept': -0.05}
    >>> bool(np.isclose(sum(parts.values()), model.score(X[150:], Y[150:])))
    True
    >>> score_blocks(model, X[150:], Y[150:], average=None)["calendar"].round(2)
    array([-0.01,  0.45])
    """
    final, X = final_estimator(model, X)
    return final.score_blocks(X, y, sample_weight, average=average)


def final_estimator(model: Any, *inputs: Any) -> tuple[Any, ...]:
    """Return the estimator of this library at the end of a fitted pipeline, and its inputs.

    Parameters
    ----------
    model : estimator, Pipeline or GridSearchCV
        Estimator of this library, or a fitted pipeline or search of scikit-learn around one.
    inputs : arrays or None
        Inputs of `model`. None stays None.
    """
    while not isinstance(model, TensorRegressor):
        if isinstance(model, Pipeline):
            check_is_fitted(model)
            steps, model = model[:-1], model[-1]
            inputs = tuple(X if X is None or not len(steps) else steps.transform(X) for X in inputs)
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            raise TypeError(
                f"model must be an estimator of holrr, or a pipeline that ends with one; got "
                f"{type(model).__name__}."
            )
    return (model, *inputs)
