"""What every estimator shares: coefficients in Tucker form, predictions, scores, files."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils.validation import check_is_fitted

from .core.approximate import Approximation
from .core.holes import Observed
from .core.missing import Completion
from .core.namespace import Array, asarray_like, namespace_of, to_numpy
from .core.spectral import Spectral, Whitened
from .core.tensor import unfold
from .core.tucker import Tucker
from .core.units import wide_enough
from .data.labels import Labels, named_by_hand
from .data.put_labels import put_labels, to_xarray
from .data.samples import Samples, errors_on, ingest
from .data.source import Source, is_dask
from .data.take_labels import take_inputs
from .deferred import Deferred
from .guard import all_or_nothing
from .input_scores import InputScores
from .parameters import Parameters
from .spread import Spread, scalar_if_0d

__all__ = ["Approximating", "TensorRegressor", "lift"]


class TensorRegressor(
    Deferred, InputScores, Spread, MultiOutputMixin, RegressorMixin, Parameters, ABC
):
    """Regression from vectors to tensors with coefficients in Tucker form.

    A subclass says how data become a problem (`_fit_data`, `_add_batch`) and how the problem is
    solved (`_solve`).
    """

    tucker_: Tucker
    labels_: Labels | None = None
    _streams = True  # whether data may be beyond memory

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            NumPy, or any library that follows the array API standard (torch, cupy, ...); the fit
            is computed where the arrays live. Memory maps, HDF5 and Zarr arrays are read in blocks,
            Dask arrays are reduced on the active scheduler (see docs/streaming.md); of the kernel
            estimators those with landmarks do so. With ``kernel="precomputed"``, the Gram matrix
            (n_samples, n_samples).
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0; p = 0 are scalar targets.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.

        Returns
        -------
        self
        """
        return self._fit_data(ingest(self, X, y, sample_weight, stream=self._streams))

    @abstractmethod
    def _fit_data(self, data: Samples | Source, **options: Any) -> Any:
        """Fit to data that came through the door; `options` are those of `_solve`."""

    @abstractmethod
    def _solve(self, problem: Any, n_features: int) -> None:
        """Solve the problem and set the fitted attributes."""

    def _check_shape(self, n_features: int, output_shape: Sequence[int]) -> Any:
        """Raise where parameters do not suit data of this shape, which no solution has to tell."""

    def _wants_response_grams(self) -> bool:
        """Whether the Gram matrices of the raw outputs are needed."""
        return False

    def _set_coefficients(self, coef: Tucker, problem: Whitened | Spectral) -> None:
        """Set the attributes that predictions need, in the type and the units of the data."""
        xp, units = namespace_of(coef.core), problem.units
        dtype = getattr(xp, problem.dtype)
        intercept = problem.mean_y - coef.map_input(problem.mean_x[None, :])[0, ...]
        with np.errstate(over="ignore", invalid="ignore"):  # looked for below
            coef, intercept = units.coefficients(coef), intercept * units.y
            if problem.dtype == "float32" or not units.is_one:
                dtype = wide_enough(dtype, coef, intercept)
        self.tucker_ = coef.astype(dtype)
        self.intercept_ = scalar_if_0d(xp.astype(intercept, dtype))
        self.solver_ = problem.solver

    @property
    def coef_(self) -> Array:
        """Dense coefficients, of shape (n_features, d1, ..., dp), built when asked for.

        With `output_shape` they are as flat as the outputs, of shape (D, n_features), which is how
        scikit-learn's own tools (`RFE`, say) read them.
        """
        check_is_fitted(self)
        coef = self._dense_coef()
        if self.labels_ is None or not self.labels_.flat:
            return coef
        return namespace_of(coef).reshape(coef, (coef.shape[0], -1)).T

    def _dense_coef(self) -> Array:
        """The coefficients as a tensor; NaN for the outputs that the fit knows nothing of."""
        coef = self.tucker_.to_dense()
        if not self._knows_not_all():
            return coef
        xp = namespace_of(coef)
        return xp.where(xp.isnan(self.intercept_), xp.full_like(coef, math.nan), coef)

    def _knows_not_all(self) -> bool:
        """Whether some outputs were never observed, or had no weight: their intercept is NaN."""
        b = self.intercept_
        xp = namespace_of(self.tucker_.core)
        return math.isnan(b) if isinstance(b, float) else bool(xp.any(xp.isnan(b)))

    @property
    def core_(self) -> Array:
        """Core of the coefficients in Tucker form, of shape (R0, ..., Rp)."""
        check_is_fitted(self)
        return self.tucker_.core

    @property
    def factors_(self) -> list[Array]:
        """Factors of the coefficients, of shape (d_i, R_i), input mode first."""
        check_is_fitted(self)
        return self.tucker_.dense_factors()

    @property
    def n_parameters_(self) -> int:
        """Degrees of freedom of the coefficients (the intercept not counted)."""
        check_is_fitted(self)
        return self.tucker_.n_parameters

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the outputs, never building the dense coefficients.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        return_std : bool, default=False
            Return standard deviations, too (ridge and low-rank estimators), see docs/intervals.md.

        Returns
        -------
        array of shape (n_samples, d1, ..., dp)
            In the array library and on the device of `X`; a Dask array, not computed yet, where
            `X` is one. A DataArray, Dataset or DataFrame where the outputs of the fit were one,
            and of shape (n_samples, D) with `output_shape`. With `return_std` a pair of them.

        Examples
        --------
        >>> from holrr import RLS
        >>> X, Y = [[0.0], [1.0], [2.0]], [[5.0, 5.0], [6.0, 4.0], [7.0, 3.0]]
        >>> model = RLS(alpha=0).fit(X, Y)
        >>> model.predict([[3.0]]).round(6), round(model.score(X, Y), 6)
        (array([[8., 2.]]), 1.0)
        """
        check_is_fitted(self)
        if return_std:
            pair = self._predict_pair(take_inputs(self, X))
            return self._label(X, pair[0]), self._label(X, pair[1])
        return self._label(X, self._predict_array(take_inputs(self, X)))

    def _label(self, X: Any, out: Array) -> Any:
        """An array of the shape of predictions for `X` as what the outputs of the fit were."""
        return put_labels(self.labels_, X, out)

    def _predict_array(self, X: Array) -> Array:
        """Predictions without labels, for checked inputs or a Dask array."""
        if is_dask(X):
            from .data.dask import map_lazily

            return map_lazily(self, X, "_predict_array", np.shape(self.intercept_))
        with self._threads_for(X.shape[0]):
            return self._predict_checked(X)

    def _predict_checked(self, X: Array) -> Array:
        return self._read(X, self._map)

    def _map(self, F: Array) -> Array:
        """The outputs for features, of shape (n_samples, n_features), that were checked."""
        xp = namespace_of(F)
        dtype = getattr(xp, self._dtype_name())
        out = self.tucker_.beside(F).map_input(xp.astype(F, dtype, copy=False))
        intercept = self.intercept_
        host = np.asarray(intercept) if isinstance(intercept, float) else to_numpy(intercept)
        out += asarray_like(host, out, dtype=out.dtype)
        return out

    def _dtype_name(self) -> str:
        return "float32" if str(self.tucker_.core.dtype).endswith("float32") else "float64"

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination R2 of all outputs together.

        ``1 - sum (y - prediction)^2 / sum (y - mean)^2``, with sums over samples and outputs: an
        output counts as much as it varies. `holrr.metrics` has the average over the outputs and
        the R2 of each.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples, d1, ..., dp)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
            The same as scikit-learn's ``r2_score(..., multioutput="variance_weighted")`` on the
            flattened outputs. Outputs that the fit knows nothing of do not count, nor, with
            ``missing="fill"``, entries that are missing.
        """
        check_is_fitted(self)
        return errors_on(self, X, y, sample_weight).r2()

    def name_modes(self, **coordinates: Any) -> Any:
        """Name the output modes of a model that was fitted to arrays.

        Parameters
        ----------
        coordinates : dict
            For each output mode, in their order, its name and the labels of its entries, or None.

        Returns
        -------
        self
            Predictions stay arrays; `to_xarray` and the displays have the names.

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import RLS
        >>> model = RLS().fit(np.eye(4), np.ones((4, 2, 3)))
        >>> model.name_modes(station=["Lerwick", "Oxford"], month=None).to_xarray().coef.dims
        ('feature', 'station', 'month')
        """
        check_is_fitted(self)
        self.labels_ = named_by_hand(self.labels_, np.shape(self.intercept_), coordinates)
        return self

    def to_xarray(self) -> Any:
        """What the fit has found, as an xarray Dataset with names on everything.

        Returns
        -------
        Dataset
            ``coef`` (where there are coefficients of the inputs), ``intercept``, ``core``, a factor
            for each mode (``factor_`` and its name) and, for cross-validated estimators, the
            held-out errors ``mean_mse`` over penalties and ranks.
        """
        check_is_fitted(self)
        return to_xarray(self)

    def save(self, path: Any) -> None:
        """Save the estimator to a file that holds no code; `holrr.load` brings it back.

        Parameters
        ----------
        path : str or path
            Written atomically: a crash leaves the old file or the new one.

        Examples
        --------
        >>> from holrr import RLS, load
        >>> RLS(alpha=2.0).save("ridge.holrr")
        >>> load("ridge.holrr")
        RLS(alpha=2.0)
        """
        from .io import save

        save(self, path)


class Approximating(TensorRegressor):
    """Estimators that approximate a whitened tensor (see `core.spectral`).

    A subclass says how (`_approximate`), and what the result says of its rank (`_set_rank`).
    """

    @abstractmethod
    def _approximate(self, problem: Whitened, n_features: int, rotate: bool) -> Approximation:
        """The constrained tensor near ``problem.Z``; rotated, all its modes can be masked."""

    def _complete(self, observed: Observed, alpha: float, n_features: int) -> Completion:
        """The constrained fit to outputs of which some are missing, where a structure has one."""
        raise NotImplementedError(f"{type(self).__name__} does not fit outputs that have holes.")

    def _n_directions(self, n_features: int, output_shape: Sequence[int]) -> int:
        """How many input directions there can be."""
        return n_features

    def _set_rank(self, found: Approximation) -> None:
        """Set what the kind of model says of its rank."""

    def _solve(self, problem: Whitened, n_features: int, mask: np.ndarray | None = None) -> None:
        """Approximate, map back to coefficients and set the fitted attributes.

        `mask`, of shape (R0, ...), multiplies the core: a mixture of the fits of many ranks.
        """
        self._set_fit(problem, *self._masked(problem, n_features, mask))

    def _masked(
        self, problem: Whitened, n_features: int, mask: np.ndarray | None
    ) -> tuple[Approximation, float]:
        """The approximation, and the share of it that a mask has kept."""
        found = self._approximate(problem, n_features, mask is not None)
        return (found, 1.0) if mask is None else (found.masked(mask), float(mask.mean()))

    def _set_fit(self, problem: Whitened, found: Approximation, kept: float = 1.0) -> None:
        """Map an approximation, as `_masked` gives it, back to a fit's attributes."""
        units = problem.units
        self._set_coefficients(lift(found.tucker, problem), problem)
        self.objective_ = units.energy(problem.residual + found.error)
        self.lower_bound_ = units.energy(problem.residual + found.lower_bound)
        self.energy_ = units.energy(problem.norm)
        self.spectra_ = [units.energy(spectrum) for spectrum in found.spectra]
        self._set_rank(found)
        self._set_spread(problem, found.tucker, kept)


def lift(V: Tucker, problem: Whitened) -> Tucker:
    """From whitened coordinates of mode 0 to coefficients."""
    if V.factors[0] is not None:
        return Tucker(V.core, (problem.lift(V.factors[0]), *V.factors[1:]), V.leading)
    core = problem.lift(unfold(V.core, 0))
    core = namespace_of(core).reshape(core, (core.shape[0], *V.core.shape[1:]))
    return Tucker(core, V.factors, V.leading)
