"""Predictions and scores of a linear model, split by blocks of inputs.

With the means of the training inputs, predictions are a sum of one part for each block and a
constant part,

    P = c + sum_b (X_b - mean_b) (S_b + W_b) ,

where W_b and S_b are the coefficients of the block, S_b those of own inputs, and c is the
prediction at the mean of the inputs. `PartErrors` splits R2 in the same way.

The functions are methods of `LinearRegressor` and `LinearSearch`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    """Predictions split by blocks of inputs: what each block adds to the mean.

    The part of a block is ``(X_b - mean_b) coef_b``, with the means of the training inputs. The
    part called "intercept" is the prediction at these means, the same for all samples: the
    training mean of `y` where no outputs are missing. The parts add up to ``predict(X)``. Without
    an intercept (``fit_intercept=False``) nothing is subtracted, and that part is zero.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        As in `predict`. The model must be fitted with `blocks`.

    Returns
    -------
    dict, DataArray or Dataset
        From the name of each block, and "intercept", to what `predict` returns: arrays of shape
        (n_samples, d1, ..., dp), or tables. Where `y` came from xarray, a DataArray or Dataset
        with the dimension ``block`` in front. Lazy where `X` is a Dask array. Blocks with an
        infinite penalty have parts of zero.

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
    """R2 split by blocks of inputs: how much of the variance each block explains.

    With the parts P_b of `predict_blocks`, and outputs Y and predictions P about the mean of `y`,
    the part of a block is ``<P_b, 2 Y - P> / <Y, Y>``. The parts, that of the intercept included,
    add up to R2. A part is negative where a block makes predictions worse. The part of the
    intercept is zero where the prediction at the mean of the training inputs is the mean of `y`,
    as for the training data, and usually small for others.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The model must be fitted with `blocks`. Data on disk or of Dask are read in blocks.
    y : array of shape (n_samples, d1, ..., dp)
        With ``missing="ignore"``, missing entries are passed over, as in `score`.
    sample_weight : array of shape (n_samples,), optional
    average : {"pooled", "uniform"} or None, default="pooled"
        As in `holrr.metrics.r2`, with the `output_weight` of the model: "pooled" splits `score`,
        "uniform" the mean of the R2 of all outputs, None the R2 of each output.

    Returns
    -------
    dict, DataArray or Dataset
        From the name of each block, and "intercept", to a number; with ``average=None`` to an
        array of shape (d1, ..., dp), or a Series where the outputs are columns of a table. There,
        where `y` came from xarray in the fit, it is a DataArray or Dataset with the dimension
        ``block`` in front.

    See Also
    --------
    predict_blocks : The parts of the predictions.
    holrr.plotting.BlockScoresDisplay : Draws them.

    Notes
    -----
    Where blocks are correlated, the variance that they share is split between them as the model
    splits it: it depends on the penalties, and says nothing about causes.

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
    """The names of the parts of R2, and the sums that they consist of.

    Parameters
    ----------
    model : estimator
    X, y, sample_weight
        As in `score_blocks`.
    """
    parts = block_parts_of(model, "score_blocks")
    sums_of, n_sums = partial(part_errors_of, parts), 3 + 2 * len(parts.columns)
    return parts.names, score_errors(model, X, y, sample_weight, sums_of, n_sums)


# ---------------------------------------------------------------- parts


@dataclass(frozen=True, eq=False)
class BlockParts:
    """What the parts of predictions need of a fitted model.

    Parameters
    ----------
    names : tuple of str
        Of the blocks, and "intercept".
    columns : tuple of arrays of int
        The columns of each block among those that the model uses.
    tucker_ : Tucker
        Coefficients. Fitted models have them under the same name.
    own : OwnCoefficients or None
        Coefficients of own inputs.
    mean : array of shape (n_inputs,)
        Centre of the inputs, in the type of the coefficients.
    constant : array of shape (d1, ..., dp)
        The prediction there; NaN for outputs that were never observed.
    has_unknown : bool
        Whether there are such outputs.
    ignores_missing : bool
        Whether scores pass over missing outputs.
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
        """The part of each block, of shape (n, d1, ..., dp), for validated inputs."""
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
        """The parts of all blocks, and the constant part, each of shape (n, d1, ..., dp)."""
        found = self.of_blocks(X)
        constant = asarray_like(to_numpy(self.constant), X, dtype=found[0].dtype)
        return [*found, namespace_of(X).zeros_like(found[0]) + constant]

    def stacked(self, X: Array) -> Array:
        """All parts as one array, of shape (n, n_parts, d1, ..., dp)."""
        return namespace_of(X).stack(self(X), axis=1)


def block_parts_of(model: Any, method: str) -> BlockParts:
    """The parts of the predictions of a fitted model.

    Parameters
    ----------
    model : estimator
    method : str
        What messages call the method that needs them.
    """
    check_is_fitted(model)
    blocks = vars(model).get("blocks_")
    if blocks is None:
        raise ValueError(
            f"{method} needs blocks of inputs, and this {type(model).__name__} was fitted without: "
            f"say with the parameter blocks which columns belong together, for instance "
            f"blocks={{'lags': [0, 1], 'calendar': [2]}}, and fit again."
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
    """The coefficients of some of the inputs."""
    first, *others = T.factors
    if first is None:
        return Tucker(take(T.core, columns), T.factors)
    return Tucker(T.core, (take(first, columns), *others))
