"""Preprocessing of spectra: standard normal variate, derivatives, ranges of wavelengths.

A spectrum runs along a mode of the inputs: the columns of a matrix or table, or the last axis of an
array, unless the parameter `dim` names another mode. The transformers do not estimate anything from
the values of the inputs, so they can be applied before the data are split into folds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ..core.namespace import Array, asarray_like, is_numpy_array, namespace_of
from ..core.state import PlainState
from ..core.warn import warn
from .arrays import (
    check_inputs,
    check_matrix,
    comes_from,
    is_dask,
    is_on_disk,
    nan_for_masked,
    refuse_sparse,
)
from .blockwise import BlockFunction, columns_of, map_blocks
from .inputs import Inputs, block_of, column_names, is_blocks, join_columns, some_columns
from .labels import Grid, Labels
from .unlabel import dimension_of_inputs, has_dims, is_dataset, sample_dimension, unlabel_inputs
from .validation import Names, compare_inputs, names_of_inputs

__all__ = ["RangeSelector", "SavitzkyGolay", "StandardNormalVariate", "derivative_matrix"]
__all__ += ["known_grids", "spectral_axes"]

# Largest relative deviation of the spacings of wavelengths from their median.
_EVEN = 0.1
# Maps an array and one of its axes to an array of the same shape.
Along = Callable[[Array, int], Array]

_MODE_PARAMETERS: dict[str, list[Any]] = {
    "dim": [str, None],
    "blocks": ["array-like", str, None],
    "sample_dim": [str, None],
}


class StandardNormalVariate(PlainState, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Standard normal variate (SNV): standardize each spectrum by its mean and deviation.

    SNV removes offsets and factors that differ between samples, such as those of light scattering
    in powders. Each sample is transformed separately, so `fit` only stores the names of the inputs.

    The result has the type of the inputs: tables and xarray objects keep their names, tensors of
    torch and other libraries stay on their device, float32 stays float32, and Dask arrays stay
    lazy. `holrr.save` saves the transformer with a model.

    Parameters
    ----------
    dim : str, optional
        Mode of the wavelengths: a dimension of an xarray object, or a level of the columns of a
        table. The default is the last mode of X. If a sample has other modes, it contains one
        spectrum for each of their entries.
    blocks : str or list of str, optional
        Variables of a Dataset, or arrays of a dict, that contain spectra. Required if X has several
        blocks. Other blocks are returned unchanged.
    sample_dim : str, optional
        Sample dimension of xarray objects. The default is the dimension that X and y share, or the
        first one.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if they have names.
    labels_ : Labels or None
        Labels of inputs with modes or blocks. `transform` compares the labels of its inputs with
        them.

    See Also
    --------
    SavitzkyGolay : Derivatives along the spectrum.
    Standardizer : Standardizes each feature over the samples.

    Notes
    -----
    The standard deviation of a spectrum of m wavelengths has m - 1 degrees of freedom. A constant
    spectrum is transformed to zeros.

    References
    ----------
    R. J. Barnes, M. S. Dhanoa, S. J. Lister (1989). Standard normal variate transformation and
    de-trending of near-infrared diffuse reflectance spectra. Applied Spectroscopy 43(5), 772-777.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.data import StandardNormalVariate
    >>> spectrum = np.array([1.0, 2.0, 4.0, 1.0])
    >>> found = StandardNormalVariate().fit_transform([spectrum, 3 * spectrum + 5])
    >>> found.round(2)
    array([[-0.71,  0.  ,  1.41, -0.71],
           [-0.71,  0.  ,  1.41, -0.71]])
    """

    _parameter_constraints: dict = _MODE_PARAMETERS
    labels_: Labels | None = None

    def __init__(self, *, dim=None, blocks=None, sample_dim=None):
        self.dim = dim
        self.blocks = blocks
        self.sample_dim = sample_dim

    def fit(self, X: Any, y: Any = None) -> Any:
        """Store the names of the inputs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), table, or xarray object
            Inputs. Arrays may have modes. The arrays of a dict are blocks.
        y : outputs, optional
            Outputs, which are used only to find the sample dimension of xarray objects.

        Returns
        -------
        self
        """
        found, modes = _fitted(self, X, y)
        for grid, axis in modes:
            _check_size(grid, axis, 2, "a spectrum needs a standard deviation")
        return _assigned(self, found)

    def transform(self, X: Any) -> Any:
        """Return the standard normal variate of each spectrum.

        Parameters
        ----------
        X : as in `fit`
            Inputs with the features of `fit`, in the same order.

        Returns
        -------
        as `X`

        Examples
        --------
        >>> import pandas as pd
        >>> from holrr.data import StandardNormalVariate
        >>> table = pd.DataFrame({"1100": [1.0, 2.0], "1102": [3.0, 6.0], "1104": [2.0, 4.0]})
        >>> StandardNormalVariate().fit(table).transform(table)
           1100  1102  1104
        0  -1.0   1.0   0.0
        1  -1.0   1.0   0.0
        """
        return _transformed(self, X, _standard_normal)


class SavitzkyGolay(PlainState, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Savitzky-Golay filter: derivatives of spectra, or smoothed spectra.

    A polynomial is fitted by least squares to a window around each wavelength. The result is the
    value or a derivative of the polynomial at this wavelength. Derivatives remove baselines and
    separate overlapping bands. The polynomials of the first and the last window are used at the
    ends, so that the number of features does not change.

    The result has the type of the inputs, as with `StandardNormalVariate`, and `holrr.save`
    saves the transformer with a model.

    Parameters
    ----------
    window : int, default=15
        Number of wavelengths in a window: odd, and at most the number of wavelengths.
    polyorder : int, default=2
        Degree of the polynomial, less than `window`.
    deriv : int, default=1
        Order of the derivative, at most `polyorder`; 0 smooths.
    delta : float, default=1.0
        Distance of two adjacent wavelengths, which determines the unit of derivatives.
    dim : str, optional
        Mode of the wavelengths, as in `StandardNormalVariate`.
    blocks : str or list of str, optional
        Blocks of inputs that contain spectra, as in `StandardNormalVariate`.
    sample_dim : str, optional
        Sample dimension of xarray objects, as in `StandardNormalVariate`.

    Attributes
    ----------
    n_features_in_, feature_names_in_, labels_
        As in `StandardNormalVariate`.

    See Also
    --------
    StandardNormalVariate : Removes the offset and the scale of each spectrum.

    Notes
    -----
    Wavelengths must be equally spaced. If the names of the features are numbers that are not
    equally spaced, `fit` warns. The computation is that of `scipy.signal.savgol_filter` with
    ``mode="interp"``.

    References
    ----------
    A. Savitzky, M. J. E. Golay (1964). Smoothing and differentiation of data by simplified least
    squares procedures. Analytical Chemistry 36(8), 1627-1639.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.data import SavitzkyGolay
    >>> line, parabola = np.arange(6.0), np.arange(6.0) ** 2
    >>> found = SavitzkyGolay(window=5, polyorder=2, deriv=1).fit_transform([line, parabola])
    >>> bool(np.allclose(found, [[1, 1, 1, 1, 1, 1], [0, 2, 4, 6, 8, 10]]))
    True
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "window": [Interval(Integral, 1, None, closed="left")],
        "polyorder": [Interval(Integral, 0, None, closed="left")],
        "deriv": [Interval(Integral, 0, None, closed="left")],
        "delta": [Interval(Real, 0, None, closed="neither")],
        **_MODE_PARAMETERS,
    }
    labels_: Labels | None = None

    def __init__(
        self,
        window=15,
        polyorder=2,
        deriv=1,
        *,
        delta=1.0,
        dim=None,
        blocks=None,
        sample_dim=None,
    ):
        self.window = window
        self.polyorder = polyorder
        self.deriv = deriv
        self.delta = delta
        self.dim = dim
        self.blocks = blocks
        self.sample_dim = sample_dim

    def fit(self, X: Any, y: Any = None) -> Any:
        """Check the parameters, and store the names of the inputs.

        Parameters
        ----------
        X, y : as in `StandardNormalVariate`

        Returns
        -------
        self
        """
        found, modes = _fitted(self, X, y)
        if self.window % 2 == 0 or self.polyorder >= self.window:
            raise ValueError(
                f"window must be odd and larger than polyorder; got window={self.window} and "
                f"polyorder={self.polyorder}."
            )
        if self.deriv > self.polyorder:
            raise ValueError(
                f"deriv must be at most polyorder, since higher derivatives are zero; got "
                f"deriv={self.deriv} and polyorder={self.polyorder}."
            )
        for grid, axis in modes:
            _check_size(grid, axis, self.window, f"window={self.window} is longer than a spectrum")
            _warn_uneven(grid, axis)
        return _assigned(self, found)

    def transform(self, X: Any) -> Any:
        """Return the filtered spectra.

        Parameters
        ----------
        X : as in `fit`
            Inputs with the features of `fit`, in the same order.

        Returns
        -------
        as `X`

        Examples
        --------
        >>> from holrr.data import SavitzkyGolay
        >>> step = SavitzkyGolay(window=3, polyorder=1, deriv=0).fit([[0.0, 3.0, 0.0]])
        >>> step.transform([[0.0, 3.0, 0.0]])  # means of three values
        array([[1., 1., 1.]])
        """
        return _transformed(self, X, self._filtered)

    def _filtered(self, A: Array, axis: int) -> Array:
        if is_numpy_array(A):
            from scipy.signal import savgol_filter

            found = savgol_filter(
                A.astype(np.float64, copy=False),
                self.window,
                self.polyorder,
                self.deriv,
                self.delta,
                axis,
            )
            return found.astype(A.dtype, copy=False)
        S = derivative_matrix(self, A.shape[axis])
        xp = namespace_of(A)
        S = S.astype(np.float64) if is_dask(A) else asarray_like(S, A, dtype=xp.float64)
        moved = xp.moveaxis(xp.astype(A, xp.float64, copy=False), axis, -1)
        return xp.astype(xp.moveaxis(moved @ S, -1, axis), A.dtype, copy=False)


def derivative_matrix(step: SavitzkyGolay, size: int) -> np.ndarray:
    """Return the filter as a matrix S of shape (size, size): the filtered spectrum is ``x S``."""
    from scipy.signal import savgol_filter

    options = (step.window, step.polyorder, step.deriv, step.delta)
    return savgol_filter(np.eye(size), *options, axis=1)


class RangeSelector(PlainState, TransformerMixin, BaseEstimator):
    """Select the features in ranges of coordinates, such as wavelengths from 1100 to 2300.

    Coordinates are the names of the columns of a table, which must be numbers or text that contains
    numbers, or the coordinate of a dimension of an xarray object. Inputs without names have the
    coordinates 0, 1, 2 and so on. The result has the type of the inputs, and `holrr.save` saves
    the transformer with a model.

    Parameters
    ----------
    ranges : tuple (start, stop), list of such tuples, or None, default=None
        Ranges of coordinates, including both ends. An end of None is unbounded. None for `ranges`
        keeps all features.
    dim : str, optional
        Mode of the wavelengths, as in `StandardNormalVariate`.
    blocks : str or list of str, optional
        Blocks of inputs that contain spectra, as in `StandardNormalVariate`.
    sample_dim : str, optional
        Sample dimension of xarray objects, as in `StandardNormalVariate`.

    Attributes
    ----------
    selected_ : dict
        For the name of each block (or ""), an array of the positions that are kept along its mode.
    columns_ : array of int
        Positions of the kept features among all features.
    n_features_in_, feature_names_in_, labels_
        As in `StandardNormalVariate`.

    See Also
    --------
    sklearn.compose.ColumnTransformer : Selects columns by name or position.

    Examples
    --------
    >>> import pandas as pd
    >>> from holrr.data import RangeSelector
    >>> spectra = pd.DataFrame([[0.1, 0.2, 0.3, 0.4]], columns=["900", "1000", "1100", "1200"])
    >>> selector = RangeSelector([(900, 950), (1050, None)]).fit(spectra)
    >>> selector.transform(spectra)
       900  1100  1200
    0  0.1   0.3   0.4
    >>> selector.get_feature_names_out()
    array(['900', '1100', '1200'], dtype=object)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "ranges": ["array-like", None],
        **_MODE_PARAMETERS,
    }
    labels_: Labels | None = None
    selected_: dict[str, np.ndarray]
    columns_: np.ndarray

    def __init__(self, ranges=None, *, dim=None, blocks=None, sample_dim=None):
        self.ranges = ranges
        self.dim = dim
        self.blocks = blocks
        self.sample_dim = sample_dim

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find the features that lie in the ranges.

        Parameters
        ----------
        X, y : as in `StandardNormalVariate`

        Returns
        -------
        self
        """
        found, modes = _fitted(self, X, y, finite=False)
        ranges = _check_ranges(self.ranges)
        places = {grid.name: (axis, _within(grid, axis, ranges)) for grid, axis in modes}
        if is_dataset(X):
            _check_shared(X, {grid.dims[axis] for grid, axis in modes}, list(places))
        kept = []
        for grid, part in columns_of(found.grids):
            mask = np.ones(grid.shape, dtype=bool)
            if grid.name in places:
                axis, chosen = places[grid.name]
                mask = np.moveaxis(mask, axis, 0)
                mask[np.setdiff1d(np.arange(grid.shape[axis]), chosen)] = False
                mask = np.moveaxis(mask, 0, axis)
            kept.append(part.start + np.flatnonzero(mask.ravel()))
        cells = np.concatenate(kept)
        columns = cells if found.inputs.cells is None else _columns(found.inputs.cells, cells)
        selected = {"" if name is None else name: chosen for name, (_, chosen) in places.items()}
        return _assigned(self, found, selected_=selected, columns_=columns)

    def transform(self, X: Any) -> Any:
        """Return the selected features.

        Parameters
        ----------
        X : as in `fit`
            Inputs with the features of `fit`, in the same order.

        Returns
        -------
        as `X`
            Inputs with the selected features only.
        """
        check_is_fitted(self)
        inputs = compare_inputs(self, X)
        grids = inputs.grids or known_grids(self)
        modes = {
            grid.name: (axis, self.selected_["" if grid.name is None else grid.name])
            for grid, axis in _modes(self, grids)
        }
        if comes_from(X, "xarray"):
            dims = {grid.name: grid.dims for grid in grids}
            return X.isel({dims[name][axis]: places for name, (axis, places) in modes.items()})
        if is_blocks(X):
            found = {}
            for grid in grids:
                A = X[grid.name]
                found[grid.name] = _part(A, grid, *modes[grid.name]) if grid.name in modes else A
            return {name: found[name] for name in X}
        if comes_from(X, "pandas"):
            return X.iloc[:, self.columns_]
        if comes_from(X, "polars"):
            return X.select([X.columns[j] for j in self.columns_])
        if inputs.grids:
            grid = grids[0]
            return _taken(_array_of(X), *modes[grid.name])
        if is_dask(X):
            return _array_of(X)[:, self.columns_]
        return some_columns(_array_of(inputs.X), self.columns_, check=False)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the features that are kept.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the inputs, if `fit` has not seen names. The default is x0, x1, ...

        Returns
        -------
        array of shape (n_features_out,)
        """
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)[self.columns_]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


# ---------------------------------------------------------------- shared by the transformers


@dataclass(frozen=True, eq=False)
class _Found:
    """Inputs of a fit, with the grids of their blocks and their names."""

    inputs: Inputs
    grids: tuple[Grid, ...]
    names: Names


def _fitted(
    step: Any, X: Any, y: Any, *, finite: bool = True
) -> tuple[_Found, list[tuple[Grid, int]]]:
    """Return checked inputs of a fit, and the blocks with spectra with the mode of each."""
    step._validate_params()
    refuse_sparse(X)
    dim = sample_dimension(step.sample_dim, X, y, None)
    inputs = unlabel_inputs(X, dim, None)
    _values(inputs, finite=finite)
    names = names_of_inputs(inputs, dim)
    if inputs.grids:  # also for tables, whose column levels are modes
        labels = Labels(sample_dim=dim, inputs=inputs.grids, cells=inputs.cells)
        names = replace(names, labels=labels)
    grids = _grids_of(inputs)
    return _Found(inputs, grids, names), _modes(step, grids)


def _assigned(step: Any, found: _Found, **attributes: Any) -> Any:
    for name in ("n_features_in_", "feature_names_in_", "labels_"):
        step.__dict__.pop(name, None)
    step.__dict__.update(found.names.attributes(), **attributes)
    return step


def _values(inputs: Inputs, *, finite: bool = True) -> Any:
    """Return inputs as a floating-point matrix; Dask arrays are not computed."""
    X = inputs.X
    if is_dask(X):
        return X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
    if not finite:
        return check_matrix(nan_for_masked(X))
    return check_inputs(X, names=column_names(inputs, None))


def _grids_of(inputs: Inputs) -> tuple[Grid, ...]:
    """Return the blocks of the inputs; a matrix is one block, with its column names as labels."""
    if inputs.grids:
        return inputs.grids
    names = column_names(inputs, None)()
    X = inputs.X if hasattr(inputs.X, "shape") else np.asarray(inputs.X)
    coords: dict[str, Any] = {}
    if names:
        coords = {"feature": (("feature",), np.array(list(map(str, names)), dtype=object), {})}
    return (Grid(("feature",), (int(X.shape[1]),), coords, is_named=bool(names)),)


def known_grids(step: Any) -> tuple[Grid, ...]:
    """Return the blocks of the inputs of a fitted transformer, also if they were a matrix."""
    grids = (step.labels_ or Labels()).inputs
    return grids or (Grid(("feature",), (int(step.n_features_in_),), is_named=False),)


def _modes(step: Any, grids: Sequence[Grid]) -> list[tuple[Grid, int]]:
    """Return the blocks with spectra, and the position of the mode of the wavelengths in each."""
    names = [grid.name for grid in grids]
    if step.blocks is None:
        if len(grids) > 1:
            raise ValueError(
                f"X has the blocks {names}; name the blocks that contain spectra with the "
                f"parameter blocks, for instance {type(step).__name__}(blocks={names[:1]})."
            )
        chosen = list(grids)
    else:
        wanted = [step.blocks] if isinstance(step.blocks, str) else list(step.blocks)
        unknown = [name for name in wanted if name not in names]
        if unknown:
            known = f"the blocks {names}" if names != [None] else "no named blocks"
            raise ValueError(f"blocks contains {unknown[0]!r}, but X has {known}.")
        chosen = [grid for grid in grids if grid.name in wanted]
    found = []
    for grid in chosen:
        where = "X" if grid.name is None else f"block {grid.name!r} of X"
        if not grid.dims:
            raise ValueError(f"{where} has one number for each sample, which is not a spectrum.")
        if step.dim is not None and step.dim not in grid.dims:
            raise ValueError(f"dim={step.dim!r} is not a mode of {where}, which has {grid.dims}.")
        axis = len(grid.dims) - 1 if step.dim is None else grid.dims.index(step.dim)
        found.append((grid, axis))
    return found


def _check_size(grid: Grid, axis: int, least: int, why: str) -> None:
    size, dim = grid.shape[axis], grid.dims[axis]
    if size < least:
        raise ValueError(
            f"{why}: X has {size} feature(s) along {dim!r}, and at least {least} are needed."
        )


def _transformed(step: Any, X: Any, operate: Along) -> Any:
    """Apply a function along the spectra of `X`, and return an object of the same type."""
    check_is_fitted(step)
    refuse_sparse(X)
    inputs = compare_inputs(step, X)
    matrix = _values(inputs)
    dim = dimension_of_inputs(X, step.labels_ or Labels()) if has_dims(X) else None
    grids = inputs.grids or known_grids(step)
    cells = inputs.cells if inputs.grids else (step.labels_ or Labels()).cells
    function = _along_modes(grids, cells, dict(spectral_axes(step, grids)), operate)
    return map_blocks(X, matrix, inputs.grids, dim, function)


def spectral_axes(step: Any, grids: Sequence[Grid]) -> list[tuple[Any, int]]:
    """Return the names of blocks with spectra, and the position of the mode of wavelengths."""
    return [(grid.name, axis) for grid, axis in _modes(step, grids)]


def _along_modes(
    grids: Sequence[Grid], cells: np.ndarray | None, axes: Mapping[Any, int], operate: Along
) -> BlockFunction:
    """Return a function of blocks that operates along one mode of some blocks.

    Parameters
    ----------
    grids : sequence of Grid
        Grids of all blocks.
    cells : array of int, or None
        Cell of each column, if the columns of a table have several levels.
    axes : dict
        Position of the mode, for the name of each block to change.
    operate : callable
        Function of an array and one of its axes.
    """
    every = list(columns_of(tuple(grids)))

    def function(A: Array, columns: slice) -> Array:
        A = _floating(A)
        if cells is not None:
            order = _complete(cells, grids[0])
            xp = namespace_of(A)
            whole = xp.take(A, asarray_like(order, A), axis=1)
            found = on_block(whole, grids[0])
            return xp.take(found, asarray_like(np.argsort(order), A), axis=1)
        if columns.start is None and len(every) > 1:
            return join_columns([on_block(A[:, part], grid) for grid, part in every])
        (grid,) = (grid for grid, part in every if columns in (part, slice(None)))
        return on_block(A, grid)

    def on_block(A: Array, grid: Grid) -> Array:
        axis = axes.get(grid.name)
        if axis is None:
            return A
        shape = tuple(A.shape)
        reshape = namespace_of(A).reshape
        found = operate(reshape(A, (shape[0], *grid.shape)), 1 + axis)
        return reshape(found, shape)

    return function


def _floating(A: Array) -> Array:
    """Convert an array to floating-point numbers, which xarray objects may not yet contain."""
    if is_dask(A):
        return A if A.dtype.kind == "f" else A.astype(np.float64)
    xp = namespace_of(A)
    return A if A.dtype in (xp.float32, xp.float64) else xp.astype(A, xp.float64)


def _complete(cells: np.ndarray, grid: Grid) -> np.ndarray:
    """Return the columns in the order of the cells; every cell must have a column."""
    n_cells = int(np.prod(grid.shape))
    if cells.size < n_cells:
        raise ValueError(
            f"the columns of X are not all combinations of their levels {grid.dims}: "
            f"{n_cells - cells.size} are missing, so some spectra are incomplete. Add the missing "
            f"columns, or leave out the incomplete spectra."
        )
    return np.argsort(cells)


# ---------------------------------------------------------------- standard normal variate


def _standard_normal(A: Array, axis: int) -> Array:
    """Return deviations from the mean along an axis, divided by their standard deviation.

    Deviations are divided by the largest one, so that squares neither overflow nor underflow.
    """
    xp = namespace_of(A)
    B = xp.astype(A, xp.float64, copy=False)
    mean = xp.mean(B, axis=axis, keepdims=True)
    C = B - mean
    largest = xp.max(xp.abs(C), axis=axis, keepdims=True)
    # Rounding errors of a constant spectrum do not count as deviations.
    varies = largest > 8 * float(np.finfo(float).eps) * xp.abs(mean)
    one = xp.ones_like(largest)
    C = C / xp.where(varies, largest, one)
    spread = xp.sqrt(xp.sum(C * C, axis=axis, keepdims=True) / (A.shape[axis] - 1))
    found = xp.where(varies, C / xp.where(varies, spread, one), xp.zeros_like(C))
    return xp.astype(found, A.dtype, copy=False)


# ---------------------------------------------------------------- coordinates


def _numbers(labels: np.ndarray) -> np.ndarray | None:
    """Return coordinates as numbers, or None if they are not numbers."""
    if labels.dtype.kind in "iuf":
        return labels.astype(np.float64)
    try:
        return np.array([float(label) for label in labels])
    except (TypeError, ValueError):
        return None


def _warn_uneven(grid: Grid, axis: int) -> None:
    """Warn if coordinates are numbers that are not equally spaced."""
    x = _numbers(grid.coordinate(axis)) if grid.is_labelled(axis) else None
    if x is None or x.size < 3 or not np.isfinite(x).all():
        return
    steps = np.diff(x)
    middle = float(np.median(steps))
    if np.max(np.abs(steps - middle)) > _EVEN * abs(middle):
        k = int(np.argmax(np.abs(steps - middle)))
        warn(
            f"SavitzkyGolay assumes equally spaced features, but the coordinates along "
            f"{grid.dims[axis]!r} are not equally spaced: most differ by {middle:g}, but {x[k]:g} "
            f"and {x[k + 1]:g} differ by {steps[k]:g}. Interpolate the spectra first, or filter "
            f"them before you leave out ranges."
        )


def _check_ranges(ranges: Any) -> list[tuple[float, float]]:
    """Check ranges, and return them as pairs of numbers."""
    if ranges is None:
        return [(-np.inf, np.inf)]
    listed = list(ranges)
    if len(listed) == 2 and all(end is None or isinstance(end, Real) for end in listed):
        listed = [tuple(listed)]
    found = []
    for pair in listed:
        ends = list(pair) if isinstance(pair, (tuple, list, np.ndarray)) else []
        if len(ends) != 2 or not all(end is None or isinstance(end, Real) for end in ends):
            raise ValueError(
                f"ranges must be a pair (start, stop) of numbers, or a list of such pairs; got "
                f"{ranges!r}."
            )
        start = -np.inf if ends[0] is None else float(ends[0])
        stop = np.inf if ends[1] is None else float(ends[1])
        if not start <= stop:
            raise ValueError(f"ranges must have start <= stop; got the range {pair!r}.")
        found.append((start, stop))
    if not found:
        raise ValueError("ranges is empty; it must contain at least one pair (start, stop).")
    return found


def _within(grid: Grid, axis: int, ranges: Sequence[tuple[float, float]]) -> np.ndarray:
    """Return the positions along a mode whose coordinates lie in one of the ranges."""
    dim = grid.dims[axis]
    if list(ranges) == [(-np.inf, np.inf)]:
        return np.arange(grid.shape[axis])
    labels = grid.coordinate(axis)
    x = _numbers(labels)
    if x is None:
        bad = next(label for label in labels if _numbers(np.array([label], dtype=object)) is None)
        raise ValueError(
            f"ranges needs features whose names are numbers along {dim!r}; {str(bad)!r} is not "
            f"a number. Leave such features out first, or select columns by name with a "
            f"ColumnTransformer."
        )
    places = np.flatnonzero(np.any([(x >= a) & (x <= b) for a, b in ranges], axis=0))
    for a, b in ranges:
        if not ((x >= a) & (x <= b)).any():
            counted = "" if grid.is_labelled(axis) else " (positions, since X has no names)"
            raise ValueError(
                f"no feature lies in the range from {a:g} to {b:g}: the coordinates along {dim!r} "
                f"go from {np.nanmin(x):g} to {np.nanmax(x):g}{counted}."
            )
    return places


def _check_shared(X: Any, dims: set[str], chosen: list[Any]) -> None:
    """Raise a ValueError if variables of a Dataset that are not selected share the dimension."""
    for name, A in X.data_vars.items():
        both = [dim for dim in A.dims if dim in dims]
        if both and name not in chosen:
            raise ValueError(
                f"variable {name!r} of X also has the dimension {both[0]!r}, but is not in blocks; "
                f"rename the dimension, or add the variable to blocks."
            )


def _columns(cells: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Return the columns of a table whose cells are kept, in the order of the table."""
    return np.flatnonzero(np.isin(cells, kept))


# ---------------------------------------------------------------- selection of entries


def _part(A: Any, grid: Grid, axis: int, places: np.ndarray) -> Any:
    """Return some entries along a mode of a block of a dict."""
    if comes_from(A, "xarray"):
        return A.isel({grid.dims[axis]: places})
    if comes_from(A, "pandas"):
        return A.iloc[:, places]
    if comes_from(A, "polars"):
        return A.select([A.columns[j] for j in places])
    if is_dask(A) or len(np.shape(A)) > 2:
        return _taken(_array_of(A), axis, places)
    return some_columns(block_of(grid.name, A)[0], places, check=False)


def _taken(A: Array, axis: int, places: np.ndarray) -> Array:
    """Return some entries along a mode of an array of shape (n, m1, ..., mq)."""
    if is_dask(A):
        return A[(slice(None),) * (1 + axis) + (places,)]
    return namespace_of(A).take(A, asarray_like(places, A), axis=1 + axis)


def _array_of(X: Any) -> Any:
    """Return an array in memory or of Dask; other data are read into memory."""
    X = nan_for_masked(X)
    if is_dask(X):
        return X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X
    if is_on_disk(X) or not hasattr(X, "shape"):
        X = np.asarray(X)
    return _floating(X)
