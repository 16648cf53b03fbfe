"""Importance of inputs of linear models: VIP and selectivity ratio."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..base import TensorRegressor
from ..core import importance as core
from ..core.checks import check_choice
from ..core.namespace import Array, row_blocks, to_numpy
from ..core.sparse import is_sparse
from ..data.arrays import check_inputs, is_dask, weights_of
from ..data.inputs import whole_axes
from ..data.labels import Grid, Labels, check_rows
from ..data.relabel import by_input, by_input_mode
from ..data.scores import AVERAGES
from ..data.unlabel import dimension_of_inputs, has_dims, unlabel_weights
from ..data.validation import validate_inputs

__all__ = ["selectivity_ratio", "vip"]

# Number of bytes of rows that are converted to float64 at a time.
_BLOCK = 2**25

_VIP = "vip"
_RATIO = "selectivity_ratio"


def vip(
    model: Any, X: Any, *, by: Any = None, sample_weight: Any = None, standardize: bool = False
) -> Any:
    r"""Compute the variable importance in projection (VIP) of each input of a linear model.

    The predictions for `X`, about their means, are a sum of uncorrelated components. Component a
    has the variance :math:`\sigma_a^2` (squared singular values of the predictions) and is a
    combination of the inputs with weights :math:`w_a`. With d inputs

    .. math:: \mathrm{VIP}_j = \sqrt{d \sum_a \frac{\sigma_a^2}{\sum_b \sigma_b^2}
        \frac{w_{ja}^2}{\|w_a\|^2}} .

    The mean of the squared VIP over all inputs is 1, so that inputs with a VIP above 1 are more
    important than the average.

    Parameters
    ----------
    model : estimator
        A fitted linear model, a search over linear models, or a penalised model. The coefficients
        include those of own inputs and of all models of a stack. Kernel models have no
        coefficients of inputs and raise an error.
    X : array of shape (n_samples, n_features)
        Inputs, usually those of the fit, in the format that they had in `fit`.
    by : str, int or tuple of them, optional
        ``"blocks"`` returns one number for each block of inputs: the blocks of the fit or, without
        them, the variables of a Dataset or the arrays of a dict. The name of a mode of X, or its
        position among the axes of a sample, returns one number for each entry of the mode. A tuple
        names several modes. By default, there is one number for each input.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples, such as those of the fit.
    standardize : bool, default=False
        Whether to multiply the weights :math:`w_a` by the standard deviations of the inputs. The
        result is then the VIP of the same predictions for standardised inputs, which does not
        depend on the units of the inputs.

    Returns
    -------
    array of shape (n_features,) or (m1, ..., mq)
        VIP of each input, with the input modes of `coef_`: NaN for inputs that were dropped, and a
        dict if `X` has several blocks. If `X` is a DataFrame, the result is a Series. If `X` is a
        DataArray or a Dataset, the result has the same type. With ``by="blocks"``, the result is a
        dict from names of blocks to numbers.

    See Also
    --------
    selectivity_ratio : Ratio of explained and residual variance of each input.

    Notes
    -----
    In partial least squares the components are those of the algorithm, with X weights :math:`w_a`
    and the sums of squares of y that they explain [1]_. A ridge or low-rank model has no such
    sequence. Its components are the singular directions of its predictions, which do not depend on
    the rotation of `factors_`. For uncorrelated inputs with equal variances both definitions
    agree. A model with one output has one component, and its VIP are the absolute coefficients
    divided by their root mean square.

    Outputs have the `output_weight` of the fit. The output with the largest variance counts most,
    so scale outputs in different units first.

    The VIP of a block, or of an entry along a mode, is the root of the mean of the squared VIP of
    its inputs. For input weights that are products of one vector for each mode it is the VIP of
    N-way partial least squares [2]_.

    References
    ----------
    .. [1] S. Wold, E. Johansson, M. Cocchi (1993). PLS: partial least squares projections to latent
       structures. In: H. Kubinyi (ed.), 3D QSAR in Drug Design, ESCOM, 523-550.
    .. [2] S. Favilla, C. Durante, M. Li Vigni, M. Cocchi (2013). Assessing feature relevance in
       NPLS models by VIP. Chemometrics and Intelligent Laboratory Systems 129, 76-86.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import HOLRR
    >>> from holrr.diagnostics import vip
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> Y = np.stack([X[:, 0], X[:, 0] + X[:, 1]], axis=1) + 0.1 * rng.normal(size=(200, 2))
    >>> model = HOLRR(rank=2).fit(X, Y)
    >>> vip(model, X).round(1)
    array([1.6, 1.2, 0. , 0. ])
    >>> float(np.mean(vip(model, X) ** 2).round(9))
    1.0
    """
    projection = _project(model, X, sample_weight)
    values = core.vip(projection, standardize=standardize)
    if by is None:
        return by_input(model, X, values, _VIP)
    return _grouped(model, X, values**2, by, np.sqrt, _VIP)


def selectivity_ratio(
    model: Any,
    X: Any,
    *,
    by: Any = None,
    average: str | None = "pooled",
    sample_weight: Any = None,
) -> Any:
    r"""Compute the selectivity ratio of each input: explained divided by residual variance.

    Target projection [1]_ projects the inputs on the predictions of an output: the target-projected
    score :math:`t = X_c b / \|b\|` of coefficients b explains the share :math:`r_{jk}^2` of the
    variance of input j, the squared correlation of the input and the predictions of output k. The
    selectivity ratio [2]_ of one output is

    .. math:: \mathrm{SR}_{jk} = \frac{r_{jk}^2}{1 - r_{jk}^2} .

    For several outputs the explained and the residual variances are summed over the outputs, with
    the variances of the predictions as weights:

    .. math:: \mathrm{SR}_j = \frac{E_j}{1 - E_j}, \qquad
        E_j = \frac{\sum_k \|p_k\|^2 \, r_{jk}^2}{\sum_k \|p_k\|^2} ,

    where :math:`p_k` are the predictions of output k about their mean.

    Parameters
    ----------
    model : estimator
        As in `vip`.
    X : array of shape (n_samples, n_features)
        As in `vip`.
    by : str, int or tuple of them, optional
        As in `vip`. The ratio of a block, or of an entry of a mode, is computed from the mean of
        :math:`E_j` over its inputs, each in units of its standard deviation.
    average : {"pooled", "uniform"} or None, default="pooled"
        "pooled" is the formula above, with the `output_weight` of the fit. "uniform" uses the
        unweighted mean of :math:`r_{jk}^2` over outputs, which does not depend on their units. None
        returns the ratio of each output.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples, such as those of the fit.

    Returns
    -------
    array of shape (n_features,) or (m1, ..., mq)
        Selectivity ratios, in the format of `vip`. With ``average=None`` the output modes follow,
        as in `coef_`; if `X` is a DataFrame, the result is a DataFrame of inputs by outputs. The
        ratio is infinite if the predictions determine an input, and 0 for constant inputs.

    See Also
    --------
    vip : Variable importance in projection.

    Notes
    -----
    The ratio does not depend on the units of the inputs. Correlated inputs have similar ratios,
    even if only one of them has a large coefficient. The ratio shows which inputs vary with the
    predictions, and `vip` shows which inputs the model uses.

    References
    ----------
    .. [1] O. M. Kvalheim, T. V. Karstang (1989). Interpretation of latent-variable regression
       models. Chemometrics and Intelligent Laboratory Systems 7, 39-51.
    .. [2] O. M. Kvalheim (2010). Interpretation of partial least squares regression models by means
       of target projection and selectivity ratio plots. Journal of Chemometrics 24, 496-504.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import RLS
    >>> from holrr.diagnostics import selectivity_ratio
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> X[:, 1] = X[:, 0] + X[:, 1]  # correlated with the first input, without an effect on y
    >>> y = X[:, 0] + 0.5 * X[:, 2] + 0.1 * rng.normal(size=500)
    >>> selectivity_ratio(RLS().fit(X, y), X).round(1)
    array([3.6, 0.7, 0.3])
    """
    check_choice(average, AVERAGES, "average")
    projection = _project(model, X, sample_weight)
    share = core.explained_share(projection, average)
    if average is None:
        share = np.where(_known_outputs(model).reshape(-1), share, np.nan)
        share = share.reshape(share.shape[0], *model._output_shape)
    if by is None:
        return by_input(model, X, core.ratio_of(share), _RATIO)
    return _grouped(model, X, share, by, core.ratio_of, _RATIO)


# ---------------------------------------------------------------- second moments


def _project(model: Any, X: Any, sample_weight: Any) -> core.Projection:
    """Return second moments of validated inputs and of their predictions."""
    _check_linear(model)
    if sample_weight is not None:
        labels = model.labels_ or Labels()
        dim = dimension_of_inputs(X, labels) if has_dims(X) else None
        check_rows(X, sample_dim=dim, sample_weight=sample_weight)
    checked = validate_inputs(model, X, sparse=True)
    blocks = _blocks(checked, sample_weight)
    n_inputs = model.tucker_.shape[0]
    mean = np.zeros(n_inputs)
    if getattr(model, "fit_intercept", True):
        weight = 0.0
        for rows, w in blocks():
            mean += w @ rows
            weight += float(w.sum())
        mean /= weight
    known = _known_outputs(model)
    L, Q = core.split_coefficients(
        model.tucker_, model._own, model._output_weight, None if known.all() else known
    )
    projection = core.project(blocks(), L, Q, mean)
    if projection.energy == 0:
        raise ValueError(
            "The importance of inputs is undefined, since the model predicts the same outputs for "
            "all samples of X: its coefficients are zero, or X does not vary."
        )
    return projection


def _check_linear(model: Any) -> None:
    if isinstance(model, Pipeline):
        raise TypeError(
            "model must be an estimator of holrr; got a Pipeline. Pass its last step and the "
            "inputs of that step: vip(pipeline[-1], pipeline[:-1].transform(X))."
        )
    if not isinstance(model, TensorRegressor):
        raise TypeError(f"model must be an estimator of holrr; got {type(model).__name__}.")
    check_is_fitted(model)
    if model._has_dual_form:
        raise TypeError(
            f"{type(model).__name__} has no coefficients of the inputs, which VIP and selectivity "
            f"ratio need. Use a linear model, or permutation importance "
            f"(sklearn.inspection.permutation_importance)."
        )


def _known_outputs(model: Any) -> np.ndarray:
    """Return a mask of the outputs that were observed in the fit, of shape (d1, ..., dp)."""
    b = model._intercept
    return np.isfinite(np.asarray(b) if isinstance(b, float) else to_numpy(b))


def _blocks(X: Any, sample_weight: Any) -> Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]:
    """Return a function that yields blocks of rows in float64, with the weights of the rows."""
    if is_dask(X):
        from ..streaming.dask import known_chunks

        X = known_chunks(X, "X").rechunk({1: -1})
        ends = np.cumsum(X.chunks[0])
        places = [slice(stop - size, stop) for size, stop in zip(X.chunks[0], ends, strict=True)]
    else:
        places = row_blocks(X.shape[0], 8 * X.shape[1], _BLOCK)
    w = weights_of(unlabel_weights(sample_weight), X.shape[0])
    w = np.ones(X.shape[0]) if w is None else w

    def read() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for rows in places:
            if rows.stop > rows.start:
                yield _dense(X[rows] if is_sparse(X) else X[rows, ...]), w[rows]

    return read


def _dense(X: Array) -> np.ndarray:
    if is_dask(X):
        X = check_inputs(X.compute())
    X = X.toarray() if is_sparse(X) else to_numpy(X)
    return X.astype(np.float64, copy=False)


# ---------------------------------------------------------------- blocks and modes


def _grouped(
    model: Any,
    X: Any,
    values: np.ndarray,
    by: Any,
    finish: Callable[[np.ndarray], np.ndarray],
    name: str,
) -> Any:
    """Average values over the inputs of each block, or over all modes of X except `by`.

    Parameters
    ----------
    model : estimator
    X : object
        Inputs, which determine the type of the result.
    values : array of shape (n_used, ...)
        Values of each input that the model uses.
    by : as in `vip`
    finish : callable
        Function that is applied to the means.
    name : str
        Name of the result.
    """
    if isinstance(by, str) and by == "blocks":
        found = {b: finish(_mean(values[j], (0,))) for b, j in _blocks_of(model).items()}
        return {b: float(v) if v.ndim == 0 else v for b, v in found.items()}
    labels = model.labels_ or Labels()
    wanted = by if isinstance(by, (tuple, list)) else (by,)
    parts = whole_axes(values, labels, model.n_features_in_)
    grids = labels.inputs or (Grid(("feature",), (model.n_features_in_,), is_named=False),)
    means: dict[Any, tuple[Grid, tuple[int, ...], np.ndarray]] = {}
    for grid, part in zip(grids, parts, strict=True):
        axes = _axes(wanted, grid)
        if axes is None:
            continue
        others = tuple(k for k in range(len(grid.dims)) if k not in axes)
        mean = _mean(part, others)
        order = np.argsort(np.argsort(axes))  # positions of the modes among the remaining modes
        mean = np.moveaxis(mean, order, range(len(axes)))
        means[grid.name] = (grid, axes, finish(mean))
    if not means:
        dims = [f"{grid.name}: {grid.dims}" if grid.name else str(grid.dims) for grid in grids]
        raise ValueError(
            f"by={by!r} is not a mode of X, which has {', '.join(dims)}; it must be 'blocks', the "
            f"name of a mode, its position among the axes of a sample, or a tuple of such modes."
        )
    return by_input_mode(model, X, means, name)


def _axes(wanted: Sequence[Any], grid: Grid) -> tuple[int, ...] | None:
    """Return the positions of modes in a grid, or None if the grid lacks one of them."""
    found = []
    for mode in wanted:
        if isinstance(mode, str) and mode in grid.dims:
            found.append(grid.dims.index(mode))
        elif isinstance(mode, (int, np.integer)) and 0 <= mode < len(grid.dims):
            found.append(int(mode))
        else:
            return None
    return tuple(found) if len(set(found)) == len(found) else None


def _mean(values: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the mean along some axes over the inputs that are used; NaN without such inputs."""
    seen = np.isfinite(values) | np.isinf(values)
    count = seen.sum(axis=axes)
    total = np.where(seen, values, 0.0).sum(axis=axes)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _blocks_of(model: Any) -> dict[str, np.ndarray]:
    """Return the columns of each block of inputs that the model uses."""
    labels = model.labels_ or Labels()
    n = model.n_features_in_
    used = np.arange(n) if labels.used is None else labels.used
    blocks = vars(model).get("blocks_")
    if blocks is not None:
        return {name: np.searchsorted(used, j) for name, j in blocks.items()}
    if len(labels.inputs) < 2:
        raise ValueError(
            "by='blocks' needs blocks of inputs: fit the model with the parameter blocks, or with "
            "X as a dict of arrays or a Dataset."
        )
    ends = np.cumsum([int(np.prod(grid.shape)) for grid in labels.inputs])
    return {
        str(grid.name): np.flatnonzero((used >= start) & (used < stop))
        for grid, start, stop in zip(labels.inputs, [0, *ends[:-1]], ends, strict=True)
    }
