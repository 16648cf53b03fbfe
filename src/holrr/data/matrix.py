"""Conversion of inputs with modes or blocks to a table, for scikit-learn's pipelines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..extras import need
from .arrays import is_dask
from .labels import features_of, row_index
from .unlabel import dims_of, has_dims, unlabel_inputs

__all__ = ["to_matrix"]


def to_matrix(X: Any, sample_dim: str | None = None) -> tuple[Any, Any]:
    """Convert inputs to a table with one named column for each cell, and an `input_shape`.

    Transformers, splitters and searches of scikit-learn accept matrices and tables. They do not
    accept Datasets, dicts of arrays, or arrays with more than two dimensions. The parameter
    `input_shape` of an estimator restores the modes and blocks.

    Parameters
    ----------
    X : Dataset, DataArray, dict of arrays, or array of shape (n_samples, m1, ..., mq)
        Inputs in memory.
    sample_dim : str, optional
        Sample dimension of xarray objects. The default is the first dimension.

    Returns
    -------
    table : DataFrame of shape (n_samples, n_cells)
        The inputs, with one column for each cell.
    input_shape : tuple, or dict from names of blocks to tuples
        Value for the parameter `input_shape` of the estimators.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr import RLSCV
    >>> from holrr.data import to_matrix
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> rng = np.random.default_rng(0)
    >>> X = {"field": rng.normal(size=(30, 4, 5)), "index": rng.normal(size=(30, 2))}
    >>> table, input_shape = to_matrix(X)
    >>> table.shape, input_shape
    ((30, 22), {'field': (4, 5), 'index': (2,)})
    >>> model = make_pipeline(StandardScaler(), RLSCV(input_shape=input_shape))
    >>> coef = model.fit(table, rng.normal(size=(30, 3)))[-1].coef_
    >>> coef["field"].shape
    (4, 5, 3)
    """
    pd = need("pandas", "to_matrix needs pandas", "table")
    dim = None
    if has_dims(X):
        dim = dims_of(X)[0] if sample_dim is None else sample_dim
    found = unlabel_inputs(X, dim, None)
    values = found.X
    if is_dask(values):
        raise TypeError("to_matrix needs inputs in memory; compute them first.")
    n_features, names = features_of(values, found.naming)
    shapes = {grid.name: grid.shape for grid in found.grids}
    shape: Any = shapes if len(shapes) > 1 or None not in shapes else shapes[None]
    if found.has_names:
        if found.cells is not None:  # put the columns in the order of the grid
            if found.cells.size < math.prod(found.grids[0].shape):
                raise ValueError(
                    f"the columns of X are not all combinations of their levels "
                    f"{found.grids[0].dims}, and input_shape cannot describe missing combinations. "
                    f"Pass the table itself to the estimator."
                )
            values = values.iloc[:, np.argsort(found.cells)]
        return values, shape or (n_features,)
    columns = [f"x{j}" for j in range(n_features)] if names is None else names
    return pd.DataFrame(np.asarray(values), row_index(X, dim), columns), shape or (n_features,)
