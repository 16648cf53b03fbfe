"""T2 and Q limits of inputs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from ..annotations import CrossValidation
from ..core.namespace import to_numpy
from ..core.state import PlainState
from ..core.threads import few_threads_for
from ..data.arrays import check_inputs, is_dask, is_memory_map, refuse_sparse, take, weights_of
from ..data.inputs import Inputs, column_names, drop_missing, find_used
from ..data.labels import Labels
from ..data.unlabel import sample_dimension, unlabel_inputs
from ..data.validation import names_of_inputs
from ..model_selection.folds import check_splits
from ._input_model import MIN_ROWS, InputModel, fit_input_model, folds_of_splits, rows_to_use

__all__ = ["InputMonitor"]


class InputMonitor(PlainState, BaseEstimator):
    """T2 and Q limits of inputs, to find rows that differ from them.

    Fit an `InputMonitor` to the inputs that a model is fitted to, and pass it to `diagnose_inputs`
    with new inputs. It serves models of every kind.

    The fit uses at most 500 rows, and fewer rows if there are many inputs. The rows are spread
    evenly over the data. Only these rows are read from memory maps and Dask arrays. Inputs that are
    NaN in every row, such as land in a field of the sea, are left out.

    Parameters
    ----------
    cv : int, splitter or iterable, optional
        Folds whose rows are held out to compute the limits, as in scikit-learn. By default, there
        are five folds, and each holds out every fifth row. Samples of one group, and samples at
        neighbouring times, should be held out together. `cv` needs data in memory.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Labels of the inputs. Labels of new inputs are compared with them.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.diagnostics import InputMonitor, diagnose_inputs
    >>> rng = np.random.default_rng(0)
    >>> latent = rng.normal(size=(300, 2))
    >>> X = latent @ rng.normal(size=(2, 30)) + 0.1 * rng.normal(size=(300, 30))
    >>> monitor = InputMonitor().fit(X)
    >>> new = X[:3].copy()
    >>> new[1, 4] += 3.0  # a value that does not fit the other inputs
    >>> diagnose_inputs(monitor, new).outside
    array([False,  True, False])
    """

    labels_: Labels | None = None
    _input_model: InputModel

    # With metadata routing, these arguments of scikit-learn's tools reach `fit`.
    __metadata_request__fit = {"groups": True, "sample_dim": True}  # noqa: RUF012

    def __init__(self, cv: CrossValidation = None) -> None:
        self.cv = cv

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        sample_dim: Any = None,
    ) -> Self:
        """Compute principal components and limits of the inputs.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), table, or object of xarray
            Inputs. Arrays may have several modes. A dict of arrays has one block for each array.
        y : outputs, optional
            Used only to find the sample dimension of xarray objects.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples. Samples without weight are left out.
        groups : array of shape (n_samples,), optional
            Group labels of the samples, for splitters such as ``GroupKFold``.
        sample_dim : str, optional
            Sample dimension of xarray objects. The default is the dimension that `X` and `y` share,
            or the first one.

        Returns
        -------
        self
            The fitted monitor.
        """
        refuse_sparse(X)
        dim = sample_dimension(sample_dim, X, y, None)
        inputs = unlabel_inputs(X, dim, None)
        n, weights = inputs.X.shape[0], weights_of(sample_weight, inputs.X.shape[0])
        matrix, kept = self._read(inputs, weights)
        used = find_used(matrix)
        names = names_of_inputs(inputs, dim, used)
        if used is not None:
            matrix = drop_missing(matrix, used, column_names(inputs, None))
        matrix = check_inputs(matrix, names=column_names(inputs, used), fitted=False)
        splits: list[Any] = []
        if self.cv is not None:
            if matrix.shape[0] < n:
                raise ValueError(
                    f"cv={self.cv!r} needs data in memory, and X is read in chunks: use cv=None, "
                    f"or pass rows of X as an array."
                )
            splits = check_splits(self.cv, matrix, np.empty(n), groups, weights)
        model = _described(matrix, None if weights is None else weights[kept], splits)
        if model is None:
            raise ValueError(
                f"InputMonitor needs at least {MIN_ROWS} rows with positive weight; X has "
                f"{n if weights is None else np.count_nonzero(weights)}."
            )
        state = self.__dict__
        for name in [k for k in state if k.endswith("_") or k == "_input_model"]:
            del state[name]
        state.update(names.attributes() | {"_input_model": model})
        return self

    def _read(self, inputs: Inputs, weights: np.ndarray | None) -> tuple[Any, Any]:
        """Return the inputs, and the indices of their rows among all rows.

        If the inputs are not in memory, only the rows that are used are read.
        """
        X = inputs.X
        if not (is_dask(X) or is_memory_map(X)):
            return X, slice(None)
        n, d = X.shape
        rows = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
        rows = rows[rows_to_use(rows.size, d)]
        if hasattr(X, "to_dask_array"):
            X = X.to_dask_array(lengths=True)
        return np.asarray(X[rows]), rows

    def __sklearn_is_fitted__(self) -> bool:
        return "_input_model" in vars(self)


def _described(X: Any, w: np.ndarray | None, splits: list[Any]) -> InputModel | None:
    """Return the `InputModel` of some rows of positive weight, or None if there are too few."""
    n, d = X.shape
    kept = np.arange(n) if w is None else np.flatnonzero(w > 0)
    rows = kept[rows_to_use(kept.size, d)]
    if rows.size < MIN_ROWS:
        return None
    folds = folds_of_splits(splits, n, rows) if splits else None
    with few_threads_for(rows.size * d * min(rows.size, d)):
        return fit_input_model(to_numpy(take(X, rows)), None if w is None else w[rows], folds)
