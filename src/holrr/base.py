"""Base class of all estimators: predictions, scores, coefficients, and saving to files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from .calls import name_calls, nearest
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

if TYPE_CHECKING:
    from os import PathLike

    from xarray import DataArray

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
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    labels_: Labels | None = None
    _output_weight: np.ndarray | None = None  # output weights of the fit, (d1, ..., dp)
    _own: OwnCoefficients | None = None  # coefficients of own inputs
    _largest_leverage: float | None = None  # that of a training sample that is left out
    scale_outputs: Any
    # Whether the coefficients of different outputs depend on each other.
    _shares_directions = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let errors of wrong arguments name the subclass."""
        super().__init_subclass__(**kwargs)
        name_calls(cls)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        # Tables and labelled arrays are shown by type and size.
        params = self.get_params(deep=False).items()
        shown = type(self)(**{name: _abbreviated(value) for name, value in params})
        return BaseEstimator.__repr__(shown, N_CHAR_MAX)

    # ------------------------------------------------------------ fitted attributes
    # Their texts are in `docstrings`: help() shows them once, with all other attributes.

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
            self.__dict__["feature_names_in_"] = _names_from_labels(vars(self))

    def __sklearn_is_fitted__(self) -> bool:
        return "tucker_" in vars(self)

    @property
    def coef_(self) -> Array:
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
        check_is_fitted(self)
        if self.tucker_.scale is None:
            raise AttributeError(
                f"output_scale_ is available only with scale_outputs, and this "
                f"{type(self).__name__} was fitted without it."
            )
        return self._flat(scalar_if_0d(self.tucker_.scale))

    @property
    def core_(self) -> Array:
        check_is_fitted(self)
        return self.tucker_.core

    @property
    def factors_(self) -> list[Array]:
        check_is_fitted(self)
        first, *others = self.tucker_.dense_factors()
        return [first if self._has_dual_form else self._all_columns(first), *others]

    @property
    def _has_dual_form(self) -> bool:
        """Whether the rows of the first factor are samples, as in kernel estimators."""
        return hasattr(type(self), "dual_coef_")

    @property
    def n_parameters_(self) -> int:
        check_is_fitted(self)
        n_own = 0 if self._own is None else sum(v.size for v in self._own.values)
        return min(self.tucker_.n_parameters + n_own, math.prod(self.tucker_.shape))

    @property
    def noise_(self) -> Any:
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
        check_is_fitted(self)
        coef = self._all_columns(self._dense_coef())
        xp = namespace_of(coef)
        return _row_norms(xp.where(xp.isnan(coef), xp.zeros_like(coef), coef))

    # ------------------------------------------------------------ predictions

    # Predictions have the type of the outputs in `fit`, which is usually that of the inputs. Of a
    # DataFrame it is not, since outputs with several modes are no table.
    @overload
    def predict(
        self, X: NDArray[Any], return_std: Literal[False] = False, *, check_inputs: bool = True
    ) -> NDArray[Any]: ...
    @overload
    def predict(
        self, X: NDArray[Any], return_std: Literal[True], *, check_inputs: bool = True
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def predict(
        self, X: DataArray, return_std: Literal[False] = False, *, check_inputs: bool = True
    ) -> DataArray: ...
    @overload
    def predict(
        self, X: DataArray, return_std: Literal[True], *, check_inputs: bool = True
    ) -> tuple[DataArray, DataArray]: ...
    @overload
    def predict(self, X: Any, return_std: bool = False, *, check_inputs: bool = True) -> Any: ...
    def predict(self, X: Any, return_std: bool = False, *, check_inputs: bool = True) -> Any:
        """Predict the outputs of new samples.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs, in the format that they had in `fit`.
        return_std : bool, default=False
            Whether to also return standard deviations, see docs/intervals.md.
        check_inputs : bool, default=True
            Whether to warn if most of at least five rows are unlike the training inputs.

        Returns
        -------
        array of shape (n_samples, d1, ..., dp), or (n_samples, D) with `output_shape`
            Predictions, of the type of `y` in `fit` if it was a DataFrame or an xarray object, and
            otherwise of the type of `X`. With `return_std`, also the standard deviations.

        Examples
        --------
        >>> from holrr import LRR
        >>> X, Y = [[0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [3.0, 6.0]]
        >>> model = LRR(rank=1, alpha=0).fit(X, Y)
        >>> model.predict([[2.0, 4.0]]).round(6), model.transform(X).shape, model.score(X, Y)
        (array([[ 5., 10.]]), (2, 1), 1.0)
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

        The scores are ``X @ factors_[0]`` (for kernel models, of the kernel values), not centred,
        of shape (n_samples, R0). If the input mode is not reduced, as in `RLS`, they are the inputs
        or coordinates of them. Directions that the core does not use have scores of zero.
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

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the coefficient of determination R2 of all outputs together.

        ``scoring="r2"`` of scikit-learn differs: it is the mean of the R2 of each output, and needs
        flat outputs. The scorer ``holrr.metrics.scorers["r2_pooled"]`` agrees, unless the fit has
        `output_weight` or `scale_outputs`. Without `scoring`, scikit-learn uses this method.

        R2 is ``1 - sum v w (y - prediction)^2 / sum v w (y - mean)^2`` over samples and observed
        outputs, with weights w (`sample_weight`) and v (`output_weight` and `scale_outputs`).
        """
        check_is_fitted(self)
        errors = score_errors(self, X, y, sample_weight)
        return errors.r2(output_weight=self._output_weight)

    # ------------------------------------------------------------ methods of scikit-learn

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters, those of nested estimators too with `deep`."""
        return dict(super().get_params(deep))

    def set_params(self, **params: Any) -> Self:
        """Set parameters, and return the estimator."""
        names = self._get_param_names()
        for name in params:
            if name.partition("__")[0] not in names:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {type(self).__name__}. "
                    f"{nearest(name, names)}"
                )
        super().set_params(**params)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit the model, and return the scores of `transform`."""
        return super().fit_transform(X, y, **fit_params)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the scores of `transform`."""
        return super().get_feature_names_out(input_features)

    def set_output(
        self, *, transform: Literal["default", "pandas", "polars"] | None = None
    ) -> Self:
        """Set the container of the scores of `transform`."""
        super().set_output(transform=transform)
        return self

    def get_metadata_routing(self) -> Any:
        """Return the metadata routing of scikit-learn."""
        return super().get_metadata_routing()

    @property
    def predict_interval(self) -> Any:
        """Prediction intervals, available for searches over ridge and low-rank models."""
        raise AttributeError(
            f"{type(self).__name__} has no predict_interval, since prediction intervals need the "
            f"held-out residuals of a search. Use HOLRRCV, LRRCV, RLSCV or their kernel versions, "
            f"or predict(X, return_std=True) for the standard deviations of a single fit."
        )

    # ------------------------------------------------------------ labels and files

    def name_modes(self, **coordinates: Any) -> Self:
        """Name the output modes of a model that was fitted to arrays.

        The arguments are the names, in order, with the labels of the entries or None.

        Examples
        --------
        >>> from holrr import RLS
        >>> model = RLS().fit([[0.0], [1.0]], [[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]])
        >>> model.name_modes(station=["Lerwick"], month=None).to_dataset().coef.dims
        ('feature', 'station', 'month')
        """
        check_is_fitted(self)
        self.labels_ = name_by_hand(self.labels_, self._output_shape, coordinates)
        return self

    def to_dataset(self) -> Any:
        """Convert the fitted model to an xarray Dataset, which programs in any language can read.

        It has coefficients, intercept, noise, core, factors and the held-out errors of a search;
        ``to_netcdf`` and ``to_zarr`` write it to a file. See docs/labels.md.
        """
        check_is_fitted(self)
        return to_dataset(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Save the estimator to a file without code (docs/file_format.md), which `load` reads.

        Examples
        --------
        >>> from holrr import RLS, load
        >>> RLS(alpha=2.0).save("ridge.holrr")
        >>> load("ridge.holrr")
        RLS(alpha=2.0)
        """
        save(self, path)


name_calls(TensorRegressor)


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
