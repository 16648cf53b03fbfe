"""Predictions and scores of a linear model, split by blocks of inputs.

Predictions are the sum of one part for each block and a constant part,

    P = c + sum_b (X_b - mean_b) (S_b + W_b) ,

where mean_b is the mean of the training inputs, W_b and S_b are the coefficients of the block (S_b
of its own inputs), and c is the prediction at the mean of the inputs. `PartErrors` splits R2 in the
same way.

The functions are methods of `LinearRegressor` and `LinearSearch`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.checks import check_choice
from ..core.namespace import Array, asarray_like, namespace_of, to_device_of, to_numpy
from ..core.own_inputs import OwnCoefficients
from ..core.tensor import Tucker
from ..core.threads import few_threads_for
from ..data.arrays import ignores_missing, is_dask, take
from ..data.blocks import INTERCEPT
from ..data.relabel import by_block, labelled, relabel
from ..data.scores import AVERAGES, PartErrors, part_errors_of
from ..data.validation import score_errors, validate_inputs

__all__ = ["BlockParts", "block_errors", "block_parts_of", "predict_blocks", "score_blocks"]


def predict_blocks(self: Any, X: Any) -> Any:
    """Predict the outputs, split into the contributions of the blocks of inputs.

    The part of a block is ``(X_b - mean_b) coef_b``, where ``mean_b`` is the mean of the training
    inputs. The part "intercept" is the prediction at these means and the same for all samples. It
    is the training mean of `y` if no outputs are missing. The parts add up to ``predict(X)``.
    With ``fit_intercept=False``, no mean is subtracted and the part "intercept" is zero. The model
    must be fitted with `blocks`. See docs/blocks.md.

    Parameters
    ----------
    X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
        Inputs, in the format that they had in `fit`.

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
    >>> from holrr import RLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 3))
    >>> Y = np.stack([X[:, 0], X[:, 0] + X[:, 2]], axis=1) + 5
    >>> model = RLS(alpha=0.0, blocks={"lags": [0, 1], "calendar": [2]}).fit(X, Y)
    >>> parts = model.predict_blocks(X)
    >>> {name: part.shape for name, part in parts.items()}
    {'lags': (50, 2), 'calendar': (50, 2), 'intercept': (50, 2)}
    >>> bool(np.allclose(sum(parts.values()), model.predict(X)))
    True
    """
    parts = block_parts_of(self, "predict_blocks")
    checked = validate_inputs(self, X)
    if is_dask(checked):
        from ..streaming.dask import map_lazily

        shape = (len(parts.names), *self._output_shape)
        stacked = map_lazily(parts, checked, "stacked", shape)
        found = [stacked[:, k] for k in range(len(parts.names))]
    else:
        found = parts(checked)
    return by_block(
        {
            name: relabel(self.labels_, X, part)
            for name, part in zip(parts.names, found, strict=True)
        }
    )


def score_blocks(
    self: Any, X: Any, y: Any, sample_weight: Any = None, *, average: str | None = "pooled"
) -> Any:
    """Split R2 into the shares of the variance that the blocks of inputs explain.

    Let P_b be the parts of `predict_blocks`, and let Y and P be the outputs and the predictions
    minus the mean of `y`. The part of a block is ``<P_b, 2 Y - P> / <Y, Y>``. The parts of all
    blocks and of the intercept add up to R2. A block that makes predictions worse has a negative
    part. The part of the intercept is zero for the training data, and usually small for other
    data. The model must be fitted with `blocks`. See docs/blocks.md.

    Parameters
    ----------
    X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
        Inputs, in the format that they had in `fit`. Memory maps and Dask arrays are read in
        chunks.
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
    >>> from holrr import RLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> Y = np.stack([X[:, 0], X[:, 0] + X[:, 2]], axis=1) + rng.normal(size=(200, 2))
    >>> model = RLS(alpha=1.0, blocks={"lags": [0, 1], "calendar": [2]}).fit(X[:150], Y[:150])
    >>> parts = model.score_blocks(X[150:], Y[150:])
    >>> {name: round(part, 2) for name, part in parts.items()}
    {'lags': 0.24, 'calendar': 0.24, 'intercept': -0.05}
    >>> bool(np.isclose(sum(parts.values()), model.score(X[150:], Y[150:])))
    True
    >>> model.score_blocks(X[150:], Y[150:], average=None)["calendar"].round(2)
    array([-0.01,  0.45])
    """
    check_choice(average, AVERAGES, "average")
    names, sums = block_errors(self, X, y, sample_weight)
    found = sums.split(average, output_weight=self._output_weight)
    return by_block(
        {name: labelled(self.labels_, part, "r2") for name, part in zip(names, found, strict=True)}
    )


def block_errors(
    model: Any, X: Any, y: Any, sample_weight: Any = None
) -> tuple[tuple[str, ...], PartErrors]:
    """Return the names of the parts of R2, and the sums that the parts are computed from.

    Parameters
    ----------
    model : estimator
        Fitted estimator.
    X, y, sample_weight
        Arguments of `score_blocks`.
    """
    parts = block_parts_of(model, "score_blocks")
    return parts.names, score_errors(model, X, y, sample_weight, partial(part_errors_of, parts))


# ---------------------------------------------------------------- parts


@dataclass(frozen=True, eq=False)
class BlockParts:
    """Attributes of a fitted model that split its predictions by block.

    Parameters
    ----------
    names : tuple of str
        Names of the blocks, and "intercept".
    columns : tuple of arrays of int
        Columns of each block, counted among the columns that the model uses.
    tucker_ : Tucker
        Coefficients, under the same name as in fitted models.
    own : OwnCoefficients or None
        Coefficients of own inputs.
    mean : array of shape (n_inputs,)
        Centre of the inputs, with the type of the coefficients.
    constant : array of shape (d1, ..., dp)
        Prediction at the centre; NaN for outputs that were never observed.
    has_unknown : bool
        Whether some outputs were never observed.
    ignores_missing : bool
        Whether scores leave missing outputs out.
    """

    names: tuple[str, ...]
    columns: tuple[np.ndarray, ...]
    tucker_: Tucker
    own: OwnCoefficients | None
    mean: Array
    constant: Array
    has_unknown: bool
    ignores_missing: bool

    def of_blocks(self, X: Array) -> list[Array]:
        """Return the part of each block, of shape (n, d1, ..., dp), for validated inputs."""
        T, xp = self.tucker_.to_device_of(X), namespace_of(X)
        n, (n_inputs, *outputs) = X.shape[0], T.shape
        Xc = xp.astype(X, T.core.dtype, copy=False) - to_device_of(self.mean, X)
        unknown = xp.isnan(to_device_of(self.constant, X)) if self.has_unknown else None
        found = []
        with few_threads_for(n * (n_inputs + len(self.columns) * T.rank[0] * math.prod(outputs))):
            for columns in self.columns:
                Xb = take(Xc.T, columns).T
                part = _columns_of(T, columns).map_input(Xb)
                if self.own is not None:
                    own = xp.reshape(self.own.times(Xb, columns), tuple(part.shape))
                    part = part + xp.astype(own, part.dtype, copy=False)
                if unknown is not None:
                    part = xp.where(unknown, xp.full_like(part, math.nan), part)
                found.append(part)
        return found

    def __call__(self, X: Array) -> list[Array]:
        """Return the parts of all blocks and the constant part, each of shape (n, d1, ..., dp)."""
        found = self.of_blocks(X)
        constant = asarray_like(to_numpy(self.constant), X, dtype=found[0].dtype)
        return [*found, namespace_of(X).zeros_like(found[0]) + constant]

    def stacked(self, X: Array) -> Array:
        """Return all parts as one array, of shape (n, n_parts, d1, ..., dp)."""
        return namespace_of(X).stack(self(X), axis=1)


def block_parts_of(model: Any, method: str) -> BlockParts:
    """Return the record that splits the predictions of a fitted model by block.

    Parameters
    ----------
    model : estimator
        Estimator that was fitted with `blocks`.
    method : str
        Name of the calling method, for error messages.
    """
    check_is_fitted(model)
    blocks = vars(model).get("blocks_")
    if blocks is None:
        raise ValueError(
            f"{method} needs blocks of inputs, and this {type(model).__name__} was fitted without "
            f"blocks. Set the parameter blocks, for instance "
            f"blocks={{'lags': [0, 1], 'calendar': [2]}}, or blocks='auto' if X is a dict, and fit "
            f"again."
        )
    used = None if model.labels_ is None else model.labels_.used
    columns = [j if used is None else np.searchsorted(used, j) for j in blocks.values()]
    core = model.tucker_.core
    mean = asarray_like(to_numpy(model._input_mean), core, dtype=core.dtype)
    return BlockParts(
        names=(*blocks, INTERCEPT),
        columns=tuple(columns),
        tucker_=model.tucker_,
        own=model._own,
        mean=mean,
        constant=model._predict_array(mean[None, :])[0, ...],
        has_unknown=model._has_unknown_outputs(),
        ignores_missing=ignores_missing(model),
    )


def _columns_of(T: Tucker, columns: np.ndarray) -> Tucker:
    """Return the coefficients of some of the inputs."""
    first, *others = T.factors
    if first is None:
        return replace(T, core=take(T.core, columns))
    return replace(T, factors=(take(first, columns), *others))
