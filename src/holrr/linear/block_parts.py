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
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
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

    `holrr.predict_blocks` describes them, and also takes pipelines.
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
    self: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    average: Literal["pooled", "uniform"] | None = "pooled",
) -> Any:
    """Split R2 into the shares of the variance that the blocks of inputs explain.

    `holrr.score_blocks` describes them, and also takes pipelines.

    Examples
    --------
    >>> from holrr import RLS
    >>> X, Y = [[0.0, 1.0], [1.0, 1.0], [3.0, 0.0]], [1.0, 2.0, 3.0]
    >>> model = RLS(blocks={"first": [0], "second": [1]}).fit(X, Y)
    >>> parts, shares = model.predict_blocks(X), model.score_blocks(X, Y)
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
