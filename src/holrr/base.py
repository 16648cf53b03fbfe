"""Base class of all estimators: predictions, scores, coefficients, and saving to files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from .core.fit import Fit
from .core.leverage import noise_level, std_factor
from .core.namespace import Array, asarray_like, namespace_of, to_device_of, to_numpy
from .core.own_inputs import OwnCoefficients
from .core.sparse import dense_rows, is_sparse
from .core.state import PlainState
from .core.tensor import Tucker
from .core.threads import few_threads_for
from .data.arrays import comes_from, is_dask
from .data.inputs import whole_axes
from .data.labels import Grid, Labels, free, name_by_hand, same
from .data.relabel import relabel, to_dataset
from .data.unlabel import dims_of, has_dims
from .data.unusual import warn_of_unusual
from .data.validation import Names, score_errors, validate_inputs
from .io import save

__all__ = ["TensorRegressor", "scalar_if_0d"]

# Private fitted attributes; the names of the public ones end with an underscore.
_PRIVATE = ["_hat", "_noise", "_intervals", "_features", "_warm", "_output_weight", "_own"]
_PRIVATE += ["_input_mean", "_largest_leverage", "_row_residuals"]


class TensorRegressor(
    PlainState,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    MultiOutputMixin,
    RegressorMixin,
    BaseEstimator,
):
    """Base class of regressors with tensor outputs, whose coefficients are in Tucker form.

    A subclass defines `fit`, which validates the data, calls functions that return a `Fit`, and
    passes the `Fit` to `_assign`. `_assign` replaces all fitted attributes at once.
    """

    # With metadata routing, the sample dimension that is passed to scikit-learn's tools reaches
    # `fit`.
    __metadata_request__fit = {"sample_dim": True}  # noqa: RUF012 (scikit-learn's convention)

    tucker_: Tucker
    labels_: Labels | None = None
    _output_weight: np.ndarray | None = None  # output weights of the fit, (d1, ..., dp)
    _own: OwnCoefficients | None = None  # coefficients of own inputs
    _largest_leverage: float | None = None  # that of a training sample that is left out
    scale_outputs: Any = None
    # Whether the coefficients of different outputs depend on each other.
    _shares_directions = True

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters, with type and size of tables and labelled arrays."""
        params = self.get_params(deep=False).items()
        shown = type(self)(**{name: _abbreviated(value) for name, value in params})
        return BaseEstimator.__repr__(shown, N_CHAR_MAX)

    # ------------------------------------------------------------ fitted attributes

    def _assign(self, fit: Fit, names: Names, **attributes: Any) -> Any:
        """Replace all fitted attributes by the attributes of a fit.

        Parameters
        ----------
        fit : Fit
            Result of the fit.
        names : Names
            Names of features and outputs.
        attributes : dict
            Further attributes. Attributes whose value is None are not set.
        """
        fitted = {
            "tucker_": fit.tucker,
            "intercept_": scalar_if_0d(fit.intercept),
            "solver_": fit.solver,
            "objective_": fit.objective,
            "lower_bound_": fit.lower_bound,
            "energy_": None if math.isnan(fit.energy) else fit.energy,
            "spectra_": fit.spectra,
            "_hat": fit.hat,
            "_noise": None if fit.rss_root is None else (fit.rss_root, fit.weight),
            "_output_weight": fit.output_weight,
            "_own": fit.own,
            **names.attributes(),
            **attributes,
        }
        return self._replace_fitted({k: value for k, value in fitted.items() if value is not None})

    def _replace_fitted(self, fitted: dict[str, Any]) -> Any:
        """Replace all fitted attributes at once."""
        state = self.__dict__
        for name in [n for n in state if n.endswith("_") or n in _PRIVATE]:
            del state[name]
        state.update(fitted)
        return self

    def _state_for_file(self, state: dict[str, Any]) -> dict[str, Any]:
        found = super()._state_for_file(state)
        names = _names_from_labels(found)
        if names is not None and same(names, found.get("feature_names_in_")):
            found["feature_names_in_"] = "labels_"  # one name for each cell of a map is long
        return found

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if isinstance(vars(self).get("feature_names_in_"), str):
            self.feature_names_in_ = _names_from_labels(vars(self))

    def __sklearn_is_fitted__(self) -> bool:
        return "tucker_" in vars(self)

    @property
    def coef_(self) -> Array:
        """Dense coefficients, computed on access.

        Their shape is (n_features, d1, ..., dp). If `X` had shape (n_samples, m1, ..., mq), the
        coefficients have shape (m1, ..., mq, d1, ..., dp). If `X` had several blocks, they are a
        dict of such arrays. With `output_shape` they have shape (D, n_features), as tools of
        scikit-learn such as `RFE` expect. Coefficients of inputs that are missing in every sample
        are NaN.
        """
        check_is_fitted(self)
        return self._arranged(self._dense_coef())

    def _arranged(self, coef: Array) -> Any:
        """Return coefficients of shape (n_used, d1, ..., dp) in the shape of `coef_`."""
        if self.labels_ is None:
            return coef
        if self.labels_.flat:
            coef = self._all_columns(coef)
            return namespace_of(coef).reshape(coef, (coef.shape[0], -1)).T
        blocks = whole_axes(coef, self.labels_, self.n_features_in_)
        if len(blocks) == 1:
            return blocks[0]
        return {grid.name: A for grid, A in zip(self.labels_.inputs, blocks, strict=True)}

    @property
    def own_coef_(self) -> Array:
        """Coefficients of own inputs, with the shape of `coef_`.

        They are part of `coef_`, and zero if an input is not an own input of an output. Available
        if the model uses own inputs.
        """
        check_is_fitted(self)
        if self._own is None or not self._own.is_shared:
            raise AttributeError(
                f"own_coef_ is available only with own inputs, and this {type(self).__name__} "
                f"uses no own inputs. Set the parameter own, and fit again."
            )
        core = self.tucker_.core
        own = namespace_of(core).reshape(self._own.to_dense(core), tuple(self.tucker_.shape))
        return self._arranged(own)

    def _all_columns(self, values: Array) -> Array:
        """Return rows for all columns of the inputs, with NaN for columns that are not used."""
        if self.labels_ is None or self.labels_.used is None:
            return values
        grid = Grid(("feature",), (self.n_features_in_,))
        return whole_axes(values, Labels(inputs=(grid,), used=self.labels_.used), 0)[0]

    @property
    def intercept_(self) -> Any:
        """Intercept of each output.

        Its shape is (d1, ..., dp); for scalar targets it is a float. With `output_shape` it has
        shape (D,), and the predictions of a linear model are ``X @ coef_.T + intercept_`` as in
        scikit-learn.
        """
        check_is_fitted(self)
        return self._flat(self._intercept)

    @intercept_.setter
    def intercept_(self, value: Any) -> None:
        is_array = hasattr(value, "shape") and self._output_shape
        self.__dict__["intercept_"] = value.reshape(self._output_shape) if is_array else value

    @property
    def _intercept(self) -> Any:
        """Intercept of shape (d1, ..., dp), also with `output_shape`."""
        return vars(self)["intercept_"]

    @property
    def _output_shape(self) -> tuple[int, ...]:
        """Shape of the outputs of a sample, ``(d1, ..., dp)``, also with `output_shape`."""
        return tuple(self.tucker_.shape[1:])

    @property
    def _is_flat(self) -> bool:
        """Whether the user has flat outputs of shape (n_samples, D), as with `output_shape`."""
        return self.labels_ is not None and bool(self.labels_.flat)

    def _flat(self, values: Any) -> Any:
        """Return one number for each output, flat if the user has flat outputs."""
        if not self._is_flat:
            return values
        xp = namespace_of(self.tucker_.core)
        return xp.reshape(xp.asarray(values), (-1,))

    def _dense_coef(self) -> Array:
        """Return the coefficients as a tensor, with NaN for outputs that were never observed."""
        coef = self.tucker_.to_dense()
        if self._own is not None:
            coef = coef + namespace_of(coef).reshape(self._own.to_dense(coef), tuple(coef.shape))
        if not self._has_unknown_outputs():
            return coef
        xp = namespace_of(coef)
        return xp.where(xp.isnan(self._intercept), xp.full_like(coef, math.nan), coef)

    def _has_unknown_outputs(self) -> bool:
        """Return whether some outputs were never observed or have no weight (intercept NaN)."""
        b = self._intercept
        xp = namespace_of(self.tucker_.core)
        return math.isnan(b) if isinstance(b, float) else bool(xp.any(xp.isnan(b)))

    @property
    def output_scale_(self) -> Any:
        """Divisor of each output in the fit.

        Its shape is (d1, ..., dp). With `output_shape` it has shape (D,). Available with
        `scale_outputs`. `core_` and `factors_` describe the divided outputs.
        """
        check_is_fitted(self)
        if self.tucker_.scale is None:
            raise AttributeError(
                f"output_scale_ is available only with scale_outputs, and this "
                f"{type(self).__name__} was fitted without it."
            )
        return self._flat(scalar_if_0d(self.tucker_.scale))

    @property
    def core_(self) -> Array:
        """Core of the coefficients in Tucker form.

        Its shape is (R0, ..., Rp).
        """
        check_is_fitted(self)
        return self.tucker_.core

    @property
    def factors_(self) -> list[Array]:
        """Factors of the coefficients in Tucker form, input mode first.

        Their shapes are (d_i, R_i). The rows of the first factor are the features; inputs with
        modes are flattened.
        """
        check_is_fitted(self)
        first, *others = self.tucker_.dense_factors()
        return [first if self._has_dual_form else self._all_columns(first), *others]

    @property
    def _has_dual_form(self) -> bool:
        """Whether the rows of the first factor are samples, as in kernel estimators."""
        return hasattr(type(self), "dual_coef_")

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters of the coefficients, including own inputs.

        The intercept is not counted.
        """
        check_is_fitted(self)
        n_own = 0 if self._own is None else sum(v.size for v in self._own.values)
        return min(self.tucker_.n_parameters + n_own, math.prod(self.tucker_.shape))

    @property
    def noise_(self) -> Any:
        """Standard deviation of the noise of each output.

        Its shape is (d1, ..., dp). With `output_shape` it has shape (D,).
        """
        return self._flat(self._noise_level())

    def _noise_level(self) -> Any:
        """Return the noise of each output, of shape (d1, ..., dp)."""
        noise = vars(self).get("_noise")
        if noise is None:
            raise AttributeError(
                f"noise_ is not available: this {type(self).__name__} has no estimate of the "
                f"noise. Use a ridge or low-rank estimator."
            )
        if not isinstance(noise, tuple):
            return noise
        core = self.tucker_.core  # its device; the host solves small problems
        level = to_device_of(noise_level(self._hat, *noise), core)
        return scalar_if_0d(namespace_of(level).astype(level, core.dtype))

    @property
    def feature_importances_(self) -> Array:
        """Norm of the coefficients of each feature over all outputs, of shape (n_features,).

        Use it as ``RFE(model, importance_getter="feature_importances_")``. The first axis of
        `coef_` is the input mode, whereas tools of scikit-learn expect the features on the last
        axis. Scale features with different units to a common scale first. Available if `coef_`
        is available.
        """
        check_is_fitted(self)
        coef = self._all_columns(self._dense_coef())
        xp = namespace_of(coef)
        return _row_norms(xp.where(xp.isnan(coef), xp.zeros_like(coef), coef))

    # ------------------------------------------------------------ predictions

    def predict(self, X: Any, return_std: bool = False, *, check_inputs: bool = True) -> Any:
        """Predict the outputs of new samples.

        The predictions are computed from the core and the factors, without the dense coefficients.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs, in the format that they had in `fit`. Linear models also accept sparse matrices.
        return_std : bool, default=False
            Whether to also return the standard deviations of new observations. Available for ridge
            and low-rank estimators, see docs/intervals.md.
        check_inputs : bool, default=True
            Whether to warn (`holrr.diagnostics.UnusualInputWarning`) if most of at least five rows
            are unlike the training inputs, see docs/diagnostics.md.

        Returns
        -------
        mean : array of shape (n_samples, d1, ..., dp), or (n_samples, D) with `output_shape`
            Predictions, in the array library and on the device of `X`. If `X` is a Dask array, the
            predictions are a lazy Dask array. If `y` was a DataArray, Dataset or DataFrame in
            `fit`, the predictions have the same type.
        std : array with the shape of `mean`
            Standard deviation of a new observation of each output. Only with ``return_std=True``.

        Examples
        --------
        >>> from holrr import RLS
        >>> X, Y = [[0.0], [1.0], [2.0]], [[5.0, 5.0], [6.0, 4.0], [7.0, 3.0]]
        >>> model = RLS(alpha=0).fit(X, Y)
        >>> model.predict([[3.0]]).round(6), round(model.score(X, Y), 6)
        (array([[8., 2.]]), 1.0)
        """
        if "tucker_" not in vars(self):  # scikit-learn's check also computes the tags
            check_is_fitted(self)
        if return_std:
            self._check_noise()
        checked = validate_inputs(self, X, sparse=True)
        if check_inputs:
            warn_of_unusual(vars(self).get("_hat"), self._largest_leverage, checked)
        if is_dask(checked):
            shape = self._output_shape
            found = [self._lazily(checked, "_predict_array", shape)]
            found += [self._lazily(checked, "_std_array", shape)] if return_std else []
        else:
            found = self._evaluate(checked, return_std)
        if self.labels_ is not None:
            found = [relabel(self.labels_, X, A) for A in found]
        return tuple(found) if return_std else found[0]

    def _evaluate(self, X: Array, return_std: bool = False) -> list[Array]:
        """Return predictions for validated inputs and, with `return_std`, standard deviations."""
        tucker, means, factors = self.tucker_, [], []
        n_inputs, *outputs = tucker.shape
        if is_sparse(X):
            return self._evaluate_sparse(X, return_std)
        with few_threads_for(X.shape[0] * (n_inputs + tucker.rank[0] * math.prod(outputs))):
            for x, F in self._feature_blocks(X):
                T, xp = tucker.to_device_of(F), namespace_of(F)
                out = T.map_input(xp.astype(F, T.core.dtype, copy=False))
                out += self._intercept_like(out)
                if self._own is not None:
                    own = xp.reshape(self._own.times(x), tuple(out.shape))
                    out += xp.astype(own, out.dtype, copy=False)
                means.append(out)
                if return_std:
                    factors.append(self._std_factor(x, F))
        if not return_std:
            return [_concatenated(means)]
        return self._with_std(_concatenated(means), _concatenated(factors))

    def _evaluate_sparse(self, X: Any, return_std: bool) -> list[Array]:
        """Evaluate sparse inputs; the standard deviations need a few dense rows at a time."""
        tucker = self.tucker_.to_device_of(np.empty(0))
        mean = tucker.map_input(X.astype(tucker.core.dtype, copy=False))
        mean += self._intercept_like(mean)
        if self._own is not None:
            mean += (X @ self._own.matrix).toarray().reshape(mean.shape)
        if not return_std:
            return [mean]
        return self._with_std(mean, _concatenated([self._std_factor(x, x) for x in dense_rows(X)]))

    def _with_std(self, mean: Array, factor: Array) -> list[Array]:
        """Return predictions and standard deviations, which are the noise times `factor`."""
        xp, noise = namespace_of(mean), to_numpy(self._noise_level())
        noise = asarray_like(noise, mean, dtype=mean.dtype)
        factor = xp.astype(factor, mean.dtype, copy=False)
        return [mean, xp.reshape(factor, (-1, *(1,) * noise.ndim)) * noise]

    def _intercept_like(self, like: Array) -> Any:
        """Return the intercept in the library, on the device and with the type of an array."""
        b = self._intercept
        if isinstance(b, float) or (type(b) is type(like) is np.ndarray):
            return b
        return asarray_like(to_numpy(b), like, like.dtype)

    def _predict_array(self, X: Array) -> Array:
        """Return predictions for validated inputs, without labels."""
        return self._evaluate(X)[0]

    def _std_array(self, X: Array) -> Array:
        """Return standard deviations for validated inputs, without labels."""
        return self._evaluate(X, return_std=True)[1]

    def _lazily(self, X: Any, method: str, shape: tuple[int, ...]) -> Any:
        """Apply a method to each chunk of a Dask array, as a lazy Dask array."""
        from .streaming.dask import map_lazily

        return map_lazily(self, X, method, shape)

    def _feature_blocks(self, X: Array) -> Iterable[tuple[Array, Array]]:
        """Return pairs of a block of validated inputs and the features of the linear model."""
        return [(X, X)]

    def _std_factor(self, X: Array, F: Array) -> Array:
        """Return ``sqrt(1 + 1/n + h(x))`` of each sample, from inputs and features."""
        return std_factor(self._hat, F, own=self._own)

    def _check_noise(self) -> None:
        if "_noise" in vars(self):
            return
        why = "this estimator does not estimate the noise. Use a ridge or low-rank estimator."
        if "_hat" in vars(self):
            why = (
                "the moments of the fit lack the sums of squares of each output (`squares`). "
                "Compute them with Moments.from_arrays or from_batches."
            )
        raise ValueError(f"return_std=True needs the noise of each output: {why}")

    def transform(self, X: Any) -> Array:
        """Project the inputs onto the input factor: the R0 scores that predictions depend on.

        The scores are ``X @ factors_[0]``, in the units of `X` and not centred. Kernel estimators
        use the kernel values with `X_fit_` in place of `X`. Predictions are `core_` multiplied by
        the scores along its first mode and by the output factors along the other modes, plus
        `intercept_`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs, in the format that they had in `fit`.

        Returns
        -------
        array of shape (n_samples, R0)
            Scores of the samples. If `X` is a Dask array, they are a lazy Dask array; if `X` is an
            xarray object, they are a DataArray. If the input mode is not reduced, as in `RLS`, the
            scores are the inputs (or kernel values) themselves or, if this takes less memory, their
            R0 coordinates in the span of the training inputs. Directions that the core does not
            use have scores of zero.

        Examples
        --------
        >>> from holrr import HOLRR
        >>> from holrr.datasets import make_tensor_regression
        >>> X, Y = make_tensor_regression(50, 6, (4, 3), rank=2, snr=9, random_state=0)
        >>> HOLRR(rank=2).fit(X, Y).transform(X).shape  # two numbers that 12 outputs depend on
        (50, 2)
        """
        check_is_fitted(self)
        scores = self._score_array(validate_inputs(self, X, sparse=True))
        if self.labels_ is None or not has_dims(X):
            return scores
        grid = Grid((free("component", dims_of(X)),), tuple(scores.shape[1:]), name="score")
        labels = replace(self.labels_, kind="dataarray", flat=False, outputs=grid)
        return relabel(labels, X, scores)

    def _score_array(self, X: Array) -> Array:
        """Return scores for validated inputs or a Dask array, without labels."""
        if is_dask(X):
            return self._lazily(X, "_score_array", self.tucker_.rank[:1])
        return _concatenated([self._scores(F) for _, F in self._feature_blocks(X)])

    def _scores(self, F: Array) -> Array:
        """Return the scores of samples from their features."""
        here = np.empty(0) if is_sparse(F) else F
        tucker, xp = self.tucker_.to_device_of(here), namespace_of(here)
        dtype = tucker.core.dtype
        F = F.astype(dtype, copy=False) if is_sparse(F) else xp.astype(F, dtype, copy=False)
        if tucker.factors[0] is None:
            return F
        norms = _row_norms(tucker.core)
        used = norms > 1e3 * xp.finfo(norms.dtype).eps * xp.max(norms)
        return F @ xp.where(used, tucker.factors[0], xp.zeros_like(tucker.factors[0]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_squared = getattr(self, "loss", "squared") == "squared"
        tags.input_tags.sparse = not self._has_dual_form and is_squared
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.tucker_.rank[0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R2 of all outputs together.

        R2 is ``1 - sum v w (y - prediction)^2 / sum v w (y - mean)^2``, with sums over samples and
        outputs. The weights w are the sample weights, and the weights v are the `output_weight` of
        the fit, as in the objective and in `held_out_mse_`. With `scale_outputs`, R2 is that of the
        divided outputs: the weights v are also divided by the squares of `output_scale_`.
        `holrr.metrics` computes the R2 of each output, the average R2, and R2 with other weights.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs, in the format that they had in `fit`.
        y : array of shape (n_samples, d1, ..., dp)
            Observed outputs.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples.

        Returns
        -------
        float
            R2. Without `output_weight` and `scale_outputs` it equals
            ``r2_score(..., multioutput="variance_weighted")`` of scikit-learn on the flattened
            outputs. Outputs that were never observed in the fit, outputs without weight and, with
            ``missing="ignore"``, missing entries of y are left out.
        """
        check_is_fitted(self)
        errors = score_errors(self, X, y, sample_weight)
        return errors.r2(output_weight=self._output_weight)

    @property
    def predict_interval(self) -> Any:
        """Prediction intervals, available for searches over ridge and low-rank models."""
        raise AttributeError(
            f"{type(self).__name__} has no predict_interval, since prediction intervals need the "
            f"held-out residuals of a search. Use HOLRRCV, LRRCV, RLSCV or their kernel versions, "
            f"or predict(X, return_std=True) for the standard deviations of a single fit."
        )

    # ------------------------------------------------------------ labels and files

    def name_modes(self, **coordinates: Any) -> Any:
        """Name the output modes of a model that was fitted to arrays.

        Parameters
        ----------
        coordinates : dict
            Name of each output mode, in order, with the labels of its entries, or None for a mode
            without labels.

        Returns
        -------
        self
            The same estimator. Predictions remain arrays; `to_dataset` and the plots use the names.

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import RLS
        >>> model = RLS().fit(np.eye(4), np.ones((4, 2, 3)))
        >>> model.name_modes(station=["Lerwick", "Oxford"], month=None).to_dataset().coef.dims
        ('feature', 'station', 'month')
        """
        check_is_fitted(self)
        self.labels_ = name_by_hand(self.labels_, self._output_shape, coordinates)
        return self

    def to_dataset(self) -> Any:
        """Convert the fitted model to a labelled xarray Dataset.

        ``to_netcdf`` and ``to_zarr`` of the Dataset write files that programs in any language
        read, without this library. See docs/labels.md.

        Returns
        -------
        Dataset
            Dataset with the variables ``coef`` (unless the kernel is nonlinear), ``intercept``,
            ``noise`` (if the model estimates it), ``core``, one factor for each mode (``factor_``
            and the name of the mode) and, for searches, the held-out errors ``mean_mse`` over
            penalties and ranks, if the model does not come from a file. Periods and dates with time
            zones among the labels become text. Attributes are text.
        """
        check_is_fitted(self)
        return to_dataset(self)

    def save(self, path: Any) -> None:
        """Save the estimator to a file, which `holrr.load` reads.

        The file contains arrays and parameters, but no code. See docs/file_format.md.

        Parameters
        ----------
        path : str or path
            Path of the file. The file is written atomically: after a crash it has either its old
            or its new content.

        Examples
        --------
        >>> from holrr import RLS, load
        >>> RLS(alpha=2.0).save("ridge.holrr")
        >>> load("ridge.holrr")
        RLS(alpha=2.0)
        """
        save(self, path)


@dataclass(frozen=True)
class _Text:
    """A value whose text is given."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _abbreviated(value: Any) -> Any:
    """Return a value of which tables and labelled arrays are replaced by short texts."""
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(_abbreviated(entry) for entry in value)
    if type(value) is dict:
        return {key: _abbreviated(entry) for key, entry in value.items()}
    name = type(value).__name__
    if comes_from(value, "xarray") and hasattr(value, "sizes"):
        return _Text(f"<{name} ({', '.join(f'{dim}: {n}' for dim, n in value.sizes.items())})>")
    if comes_from(value, "pandas") and hasattr(value, "shape"):
        return _Text(f"<{name} of shape {value.shape}>")
    return value


def scalar_if_0d(a: Array) -> Any:
    """Return a float for an array without axes, and other arrays unchanged."""
    return float(a) if a.ndim == 0 else a


def _names_from_labels(state: Mapping[str, Any]) -> np.ndarray | None:
    """Return the names of the features that labels of inputs give."""
    labels = state.get("labels_")
    names = [name for grid in labels.inputs for name in grid.entries()] if labels else []
    return np.array(names, dtype=object) if names else None


def _concatenated(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else namespace_of(parts[0]).concat(parts, axis=0)


def _row_norms(A: Array) -> Array:
    """Return the norm of each slice along the first mode."""
    rows = namespace_of(A).reshape(A, (A.shape[0], math.prod(A.shape[1:])))
    return namespace_of(A).linalg.vector_norm(rows, axis=1)
