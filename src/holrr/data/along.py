"""Transformers of columns that are applied along one mode of the inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from ..core.namespace import Array, asarray_like, is_numpy_array, to_numpy
from ..core.state import PlainState
from .arrays import check_matrix, comes_from, is_dask, nan_for_masked, refuse_sparse
from .blockwise import columns_of
from .inputs import Inputs, column_names, is_blocks
from .labels import Grid, Labels
from .unlabel import dimension_of_inputs, has_dims, is_dataset, sample_dimension, unlabel_inputs
from .validation import compare_inputs, names_of_inputs

__all__ = ["Along"]


class Along(PlainState, TransformerMixin, BaseEstimator):
    """Apply a transformer of columns along one mode of the inputs, and keep labels.

    Transformers such as those of chemotools and scikit-learn take a matrix. `Along` passes them the
    inputs as a matrix whose columns are the entries of one mode, such as the wavelengths of a
    spectrum, and whose rows are the samples and the entries of all other modes. The result has the
    type of the inputs: tables and xarray objects keep their names and coordinates, arrays keep
    their modes.

    Parameters
    ----------
    transformer : transformer
        Transformer of a matrix. It may change the number of columns.
    mode : str or None, default=None
        Name of the mode: a dimension of xarray objects, or a level of the columns of a table. By
        default, it is the last mode.
    blocks : str, list of str or None, default=None
        Variables of a Dataset, or arrays of a dict, that the transformer is applied to. The others
        are returned unchanged. It must be given if X has several blocks.

    Attributes
    ----------
    transformers_ : dict
        Fitted transformer of each block; the key is "" if the inputs have no blocks.
    features_ : dict
        For each block, the positions of the input features that the output features are named
        after (``get_feature_names_out`` of the transformer), or their own names.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if they have names.
    labels_ : Labels or None
        Labels of inputs with modes or blocks. `transform` compares the labels of its inputs with
        them.

    See Also
    --------
    Standardizer : Standardizes each feature over the samples.
    sklearn.compose.ColumnTransformer : Applies transformers to columns of a matrix or a table.

    Notes
    -----
    The transformer is fitted without y. Output features that are named after input features keep
    their coordinates; others have their names as coordinates.

    Examples
    --------
    Each of two spectra per sample is scaled to a maximum of one:

    >>> import numpy as np
    >>> import xarray as xr
    >>> from sklearn.preprocessing import Normalizer
    >>> from holrr.data import Along
    >>> spectra = xr.DataArray(
    ...     np.arange(12.0).reshape(2, 3, 2) + 1,
    ...     {"wavelength": [1100, 1200, 1300], "detector": ["a", "b"]},
    ...     ("sample", "wavelength", "detector"),
    ... )
    >>> step = Along(Normalizer("max"), "wavelength").fit(spectra)
    >>> step.transform(spectra).sel(detector="a").values.round(2)
    array([[0.2 , 0.6 , 1.  ],
           [0.64, 0.82, 1.  ]])
    >>> step.get_feature_names_out()[:2]
    array(['wavelength=1100,a', 'wavelength=1100,b'], dtype=object)
    """

    labels_: Labels | None = None
    transformers_: dict[str, Any]
    features_: dict[str, np.ndarray]

    # With metadata routing, the sample dimension that is passed to a pipeline reaches `fit`.
    __metadata_request__fit = {"sample_dim": True}  # noqa: RUF012 (scikit-learn's convention)

    def __init__(
        self,
        transformer: Any,
        mode: str | None = None,
        *,
        blocks: str | Sequence[str] | None = None,
    ) -> None:
        self.transformer = transformer
        self.mode = mode
        self.blocks = blocks

    def fit(self, X: Any, y: Any = None, *, sample_dim: str | None = None) -> Self:
        """Fit the transformer of each block.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), table, or xarray object
            Inputs in memory. Arrays may have modes. The arrays of a dict are blocks.
        y : outputs, optional
            Outputs, which are used only to find the sample dimension of xarray objects.
        sample_dim : str, optional
            Sample dimension of xarray objects. The default is the dimension that `X` and `y` share,
            or the first one.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._fit(X, y, sample_dim)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, sample_dim: Any = None) -> Any:
        """Fit the transformer of each block, and apply it.

        Parameters
        ----------
        X, y, sample_dim : as in `fit`

        Returns
        -------
        as `X`
            Inputs with the transformed features.
        """
        return self._fit(X, y, sample_dim).transform(X)

    def _fit(self, X: Any, y: Any, sample_dim: Any) -> Any:
        refuse_sparse(X)
        dim = sample_dimension(sample_dim, X, y, None)
        inputs = unlabel_inputs(X, dim, None)
        names = names_of_inputs(inputs, dim)
        if inputs.grids:  # also for tables, whose column levels are modes
            labels = Labels(sample_dim=dim, inputs=inputs.grids, cells=inputs.cells)
            names = replace(names, labels=labels)
        found, features = {}, {}
        for block in self._blocks(X, inputs):
            if block.axis is not None:
                rows = block.rows()
                step = clone(self.transformer).fit(rows)
                found[block.key], features[block.key] = step, _features_out(step, rows)
        for name in ("n_features_in_", "feature_names_in_", "labels_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(transformers_=found, features_=features, **names.attributes())
        return self

    def transform(self, X: Any) -> Any:
        """Apply the transformer of each block.

        Parameters
        ----------
        X : as in `fit`
            Inputs with the features of `fit`, in the same order.

        Returns
        -------
        as `X`
            Inputs with the transformed features.

        Examples
        --------
        >>> import pandas as pd
        >>> from sklearn.decomposition import PCA
        >>> from holrr.data import Along
        >>> table = pd.DataFrame({1100: [1.0, 2.0, 4.0], 1200: [2.0, 4.0, 8.0]}, index=list("abc"))
        >>> Along(PCA(1)).fit_transform(table).round(2)
           pca0
        a -2.98
        b -0.75
        c  3.73
        """
        check_is_fitted(self)
        refuse_sparse(X)
        inputs = compare_inputs(self, X)
        done = {}
        for block in self._blocks(X, inputs):
            done[block.key] = block.data
            if block.axis is not None:
                found = self.transformers_[block.key].transform(block.rows())
                done[block.key] = block.rebuilt(found, self.features_[block.key])
        if is_dataset(X):
            self._check_sizes(X, done)
            return type(X)(done, attrs=X.attrs)
        if is_blocks(X):
            return {name: done[name] for name in X}
        return done[""]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the transformed features.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the inputs, if `fit` has not seen names. The default is x0, x1, ...

        Returns
        -------
        array of shape (n_features_out,)
        """
        check_is_fitted(self)
        before = _check_feature_names_in(self, input_features)
        grids = (self.labels_ or Labels()).inputs
        if not grids:
            features = self.features_[""]
            return before[features] if _is_selection(features) else features
        names: list[str] = []
        for grid, columns in columns_of(grids):
            made = self.features_.get(_key(grid))
            if made is None or _keeps_all(made, grid.shape[self._axis(grid)]):
                names.extend(before[columns])
            else:
                names.extend(_grid_out(grid, self._axis(grid), made).entries())
        return np.array(names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self.transformer).input_tags.allow_nan
        return tags

    def _blocks(self, X: Any, inputs: Inputs) -> Iterator[_Block]:
        """Yield the blocks of the inputs, with the mode of the transformer."""
        if is_dask(inputs.X):
            raise TypeError("Along needs inputs in memory; got a Dask array. Pass X.compute().")
        matrix = check_matrix(nan_for_masked(inputs.X))
        grids = inputs.grids or (_grid_of_matrix(X, inputs, int(matrix.shape[1])),)
        cells = inputs.cells
        if inputs.grids and hasattr(X, "columns") and cells is None:  # in the order of the grid
            cells = np.arange(matrix.shape[1])
        chosen = self._chosen(grids)
        dim = dimension_of_inputs(X, self.labels_ or Labels()) if has_dims(X) else None
        dim = sample_dimension(None, X, None, None) if self.labels_ is None else dim
        for grid, columns in columns_of(grids):
            whole = isinstance(X, np.ndarray) or not (is_blocks(X) or is_dataset(X))
            axis = self._axis(grid) if grid.name in chosen else None
            data = X if whole else X[grid.name]
            values = matrix if whole else matrix[:, columns]
            yield _Block(data, values, grid, axis, dim, cells)

    def _chosen(self, grids: Sequence[Grid]) -> list[Any]:
        """Return the names of the blocks that the transformer is applied to."""
        names = [grid.name for grid in grids]
        if self.blocks is None:
            if len(grids) > 1:
                raise ValueError(
                    f"X has the blocks {names}; name those that the transformer is applied to with "
                    f"the parameter blocks, such as blocks={names[:1]}."
                )
            return names
        wanted = [self.blocks] if isinstance(self.blocks, str) else list(self.blocks)
        unknown = [name for name in wanted if name not in names]
        if unknown:
            known = "no named blocks" if names == [None] else f"the blocks {names}"
            raise ValueError(f"blocks contains {unknown[0]!r}, but X has {known}.")
        return wanted

    def _axis(self, grid: Grid) -> int:
        """Return the position of the mode of the transformer."""
        where = "X" if grid.name is None else f"block {grid.name!r} of X"
        if not grid.dims:
            raise ValueError(f"{where} has one number for each sample, and so no mode.")
        if self.mode is None:
            return len(grid.dims) - 1
        if self.mode not in grid.dims:
            known = f"the modes {grid.dims}" if grid.is_named else "no named modes"
            raise ValueError(f"mode={self.mode!r} is not a mode of {where}, which has {known}.")
        return grid.dims.index(self.mode)

    def _check_sizes(self, X: Any, done: dict[str, Any]) -> None:
        """Raise a ValueError if a dimension has another size in blocks that are unchanged."""
        for name, A in done.items():
            for dim in set(A.dims) & set(X.dims):
                others = [o for o in X.data_vars if o != name and dim in done[o].dims]
                bad = next((o for o in others if done[o].sizes[dim] != A.sizes[dim]), None)
                if bad is not None:
                    raise ValueError(
                        f"the transformer changes the size of the dimension {dim!r}, which "
                        f"variable {bad!r} of X also has, but is not in blocks. Rename the "
                        f"dimension, or add the variable to blocks."
                    )


@dataclass(frozen=True, eq=False)
class _Block:
    """One block of the inputs.

    Parameters
    ----------
    data : object
        The block as the user passed it.
    values : array of shape (n_samples, n_columns)
    grid : Grid
    axis : int or None
        Position of the mode that the transformer is applied along; None leaves the block unchanged.
    dim : str or None
        Sample dimension of xarray objects.
    cells : array of shape (n_columns,), or None
        Cell of the grid of each column, for tables whose columns have levels.
    """

    data: Any
    values: Array
    grid: Grid
    axis: int | None
    dim: str | None
    cells: np.ndarray | None

    @property
    def key(self) -> str:
        return _key(self.grid)

    def rows(self) -> np.ndarray:
        """Return the matrix for the transformer, with the entries of the mode as its columns."""
        A = to_numpy(self.values)
        if self.cells is not None:
            n_cells = math.prod(self.grid.shape)
            if self.cells.size < n_cells:
                raise ValueError(
                    f"the columns of X are not all combinations of their levels {self.grid.dims}: "
                    f"{n_cells - self.cells.size} are missing. Add them, or leave out the "
                    f"incomplete entries."
                )
            A = A[:, np.argsort(self.cells)]
        assert self.axis is not None
        A = np.moveaxis(A.reshape(len(A), *self.grid.shape), 1 + self.axis, -1)
        return A.reshape(-1, A.shape[-1])

    def rebuilt(self, found: Any, features: np.ndarray) -> Any:
        """Return the rows of `transform` as an object of the type of the block."""
        assert self.axis is not None
        found = np.asarray(found)
        others = np.delete(self.grid.shape, self.axis)
        A = found.reshape(self.values.shape[0], *others, found.shape[1])
        A = np.ascontiguousarray(np.moveaxis(A, -1, 1 + self.axis))
        if comes_from(self.data, "xarray"):
            return self._as_xarray(A, features)
        if hasattr(self.data, "columns"):
            return self._as_table(A.reshape(len(A), -1), features)
        is_foreign = hasattr(self.values, "shape") and not is_numpy_array(self.values)
        return asarray_like(A, self.values, dtype=self.values.dtype) if is_foreign else A

    def _as_xarray(self, A: np.ndarray, features: np.ndarray) -> Any:
        assert self.axis is not None
        mode = self.grid.dims[self.axis]
        before = self.data.transpose(self.dim, *self.grid.dims)
        if _is_selection(features):
            after = before.isel({mode: features}).copy(data=A)
        else:
            coords = {name: c for name, c in before.coords.items() if mode not in c.dims}
            coords[mode] = features
            make = type(before)
            after = make(A, coords, before.dims, name=before.name, attrs=before.attrs)
        return after.transpose(*self.data.dims)

    def _as_table(self, A: np.ndarray, features: np.ndarray) -> Any:
        assert self.axis is not None
        columns = self.data.columns
        if comes_from(self.data, "polars"):
            names = [columns[j] for j in features] if _is_selection(features) else list(features)
            return type(self.data)(A, schema=names, orient="row")
        size = self.grid.shape[self.axis]
        if self.cells is None:
            columns = columns[features] if _is_selection(features) else features
        elif _keeps_all(features, size):
            A = A[:, self.cells]
        else:
            grid = _grid_out(self.grid, self.axis, features)
            parts = [grid.coordinate(k) for k in range(len(grid.dims))]
            columns = type(columns).from_product(parts, names=columns.names)
        return type(self.data)(A, index=self.data.index, columns=columns)


def _key(grid: Grid) -> str:
    return "" if grid.name is None else str(grid.name)


def _grid_of_matrix(X: Any, inputs: Inputs, n_columns: int) -> Grid:
    """Return the grid of inputs with one mode, with the names of the columns as coordinates."""
    names = column_names(inputs, None)()
    shape = (n_columns,)
    if not names:
        return Grid(("feature",), shape, is_named=False)
    called = getattr(getattr(X, "columns", None), "name", None)
    dim = "feature" if called is None else str(called)
    return Grid((dim,), shape, {dim: ((dim,), np.array(names, dtype=object), {})})


# ---------------------------------------------------------------- output features


def _features_out(step: Any, rows: np.ndarray) -> np.ndarray:
    """Return the input features that the output features are named after, or their names."""
    n_out, size = np.shape(step.transform(rows[:1]))[1], rows.shape[1]
    if hasattr(step, "get_feature_names_out"):
        places = {f"x{j}": j for j in range(size)}
        names = np.asarray(step.get_feature_names_out(np.array(list(places), dtype=object)))
        is_selection = all(name in places for name in names)
        return np.array([places[n] for n in names]) if is_selection else names.astype(object)
    if n_out == size:
        return np.arange(size)
    return np.array([f"x{j}" for j in range(n_out)], dtype=object)


def _is_selection(features: np.ndarray) -> bool:
    return features.dtype.kind == "i"


def _keeps_all(features: np.ndarray, size: int) -> bool:
    return _is_selection(features) and np.array_equal(features, np.arange(size))


def _grid_out(grid: Grid, axis: int, features: np.ndarray) -> Grid:
    """Return the grid of the output features."""
    mode, coords, levels = grid.dims[axis], {}, grid.levels
    for name, (dims, values, attrs) in grid.coords.items():
        if mode not in dims:
            coords[name] = (dims, values, attrs)
        elif _is_selection(features):
            coords[name] = (dims, np.take(values, features, axis=dims.index(mode)), attrs)
    if not _is_selection(features):
        coords[mode] = ((mode,), features, {})
        levels = {dim: names for dim, names in levels.items() if dim != mode}
    shape = (*grid.shape[:axis], len(features), *grid.shape[axis + 1 :])
    return replace(grid, shape=shape, coords=coords, levels=levels)
