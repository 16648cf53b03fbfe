"""The skeleton of the estimators that are linear in the inputs: they need moments only."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from ..base import Approximating, TensorRegressor
from ..core.finite import BadEntryError
from ..core.namespace import Array, beside, to_numpy
from ..core.samples import whiten_arrays
from ..core.spectral import SOLVERS, Whitened, check_moments, whiten_moments
from ..core.threads import few_threads_for
from ..data.moments import Moments
from ..data.samples import Samples, forget_names
from ..data.source import Source
from ..data.wide import whiten_source
from ..guard import all_or_nothing
from .holes import (
    check_no_infinity,
    check_unobserved,
    complete_samples,
    has_holes,
    observe,
    output_weights,
    set_completion,
    unscale_fit,
    weighted,
    without_unobserved,
)

__all__ = ["LinearApproximating", "LinearTensorRegressor", "output_constraints"]
__all__ += ["refuse_output_weight"]


output_constraints: dict[str, list[Any]] = {
    "missing": [StrOptions({"raise", "fill"})],
    "output_weight": ["array-like", None],
}


class LinearTensorRegressor(TensorRegressor):
    """Estimators that are linear in the inputs and so need the data only through their moments.

    A subclass says what its problem is, from samples, from a source and from moments.
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
    }

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_moments(self, moments: Moments) -> Any:
        """Fit the model to moments, gathered here or elsewhere.

        Parameters
        ----------
        moments : Moments

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import RLS, Moments
        >>> here, there = (Moments.from_arrays(np.eye(4), np.ones((4, 3, 2))) for _ in range(2))
        >>> RLS().fit_moments(here + there).coef_.shape
        (4, 3, 2)
        """
        if not isinstance(moments, Moments):
            raise TypeError(f"moments must be a Moments object; got {type(moments).__name__}.")
        forget_names(self, moments.output_shape)
        self.n_features_in_ = moments.n_features
        return self._fit_moments(moments)

    # ------------------------------------------------------------ what a kind of model adds

    @abstractmethod
    def _problem_of_samples(self, data: Samples) -> Any:
        """What `_solve` wants, from samples in memory."""

    @abstractmethod
    def _problem_of_moments(self, moments: Moments) -> Any:
        """What `_solve` wants, from moments."""

    @abstractmethod
    def _problem_of_source(self, source: Source) -> Any:
        """What `_solve` wants, from data beyond memory."""

    # ------------------------------------------------------------ from data to fitted attributes

    def _fit_data(self, data: Samples | Source, **options: Any) -> Any:
        with few_threads_for(data.work if isinstance(data, Samples) else math.inf):
            if isinstance(data, Samples):
                problem = self._problem_of_samples(data.at_hand().in_units())
            else:
                problem = self._problem_of_source(data)
            self._forget()
            with few_threads_for(data.n_features**2 * math.prod(data.output_shape)):
                self._solve(problem, data.n_features, **options)
        if isinstance(data, Samples):  # a small problem may have been solved elsewhere
            self.tucker_ = self.tucker_.beside(data.X)
            if not isinstance(self.intercept_, float):
                self.intercept_ = beside(self.intercept_, data.X)
        return self

    def _add_batch(self, data: Samples | Source, seen: Moments | None, **known: Any) -> Any:
        grams = self._wants_response_grams() if seen is None else seen.response_grams is not None
        with few_threads_for(data.work if isinstance(data, Samples) else math.inf):
            moments = data.moments(grams)
            moments = moments if seen is None else seen + moments
        self._check_moments(moments)
        return self._put_off({"moments_": moments, **known})

    def _solve_later(self) -> Any:
        return self._fit_moments(self.moments_)

    def _check_moments(self, moments: Moments) -> None:
        """Raise what is wrong with moments, or with parameters for them, before any solution."""
        if self._wants_response_grams() and moments.response_grams is None:
            raise ValueError(
                "subspaces='response' needs moments that were gathered with response_grams=True."
            )
        check_moments(moments, getattr(self, "solver", "auto"))
        self._check_shape(moments.n_features, moments.output_shape)

    def _fit_moments(self, moments: Moments, *, keep: bool = True, **options: Any) -> Any:
        """Fit to moments, which are kept for later batches unless nobody will add any."""
        self._check_moments(moments)
        with few_threads_for(moments.n_features * math.prod(moments.Sxy.shape)):
            problem = self._problem_of_moments(moments)
            self._forget()
            self._solve(problem, moments.n_features, **options)
        if keep:
            self.moments_ = moments
        return self


class LinearApproximating(Approximating, LinearTensorRegressor):
    """Linear estimators that approximate the whitened tensor of one penalty."""

    _parameter_constraints: dict = {  # noqa: RUF012
        "solver": [StrOptions(set(SOLVERS))],
        **output_constraints,
    }

    missing: str = "raise"
    output_weight: Any = None

    def _fit_data(self, data: Samples | Source, **options: Any) -> Any:
        if not isinstance(data, Samples):
            refuse_output_weight(self, "data beyond memory")
            return super()._fit_data(data, **options)
        weights = output_weights(self, data.output_shape)
        self._fit_samples(weighted(data, weights), **options)
        unscale_fit(self, weights)
        return self

    def _fit_samples(
        self, data: Samples, mask: Array | None = None, pilot: LinearApproximating | None = None
    ) -> None:
        """Fit to samples in memory, of which outputs may be missing.

        Where there is a `mask`, as in `_solve`, the holes are filled by the model `pilot`.
        """
        if self.missing == "raise":
            super()._fit_data(data, mask=mask)
            return
        n_dropped, given = 0, data
        if has_holes(data):
            data, n_dropped = observe(data)
        if has_holes(data):
            data = data.in_units()
            try:
                found = complete_samples(self if pilot is None else pilot, data)
            except BadEntryError:
                check_no_infinity(given)  # its place among all samples, dropped ones included
                raise
            self._forget()
            set_completion(self, found)
            if mask is not None:
                filled = found.filled().at(data.units.alpha(float(self.alpha)))
                self._solve(replace(filled, units=data.units), data.n_features, mask)
                self.n_iter_, self.lower_bound_ = found.n_iter, math.nan
        else:
            super()._fit_data(data, mask=mask)
        self.n_iter_ = getattr(self, "n_iter_", 1)
        self.n_dropped_ = n_dropped

    def _add_batch(self, data: Samples | Source, seen: Moments | None, **known: Any) -> Any:
        """As above; outputs that no batch has any entry of are not part of the problem."""
        never: Any = False
        if self.missing == "fill" and isinstance(data, Samples) and has_holes(data):
            data, never = without_unobserved(self, data)
        if seen is not None:
            before = vars(self).get("_fitted_never")  # which the intercept tells of a fit
            nan = np.isnan(to_numpy(self.intercept_)) if before is None else before
            check_unobserved(never, nan)
        return super()._add_batch(data, seen, _fitted_never=never)

    def _solve_later(self) -> Any:
        never = self._fitted_never
        super()._solve_later()
        if np.any(never):
            self.intercept_ = np.where(never, np.nan, self.intercept_)
            self.noise_ = np.where(never, np.nan, self.noise_)

    def _check_moments(self, moments: Moments) -> None:
        refuse_output_weight(self, "moments")
        super()._check_moments(moments)

    def _problem_of_samples(self, data: Samples) -> Whitened:
        problem = whiten_arrays(
            data.X,
            data.Y,
            data.w,
            data.units.alpha(float(self.alpha)),
            solver=self.solver,
            fit_intercept=self.fit_intercept,
            response_grams=self._wants_response_grams(),
        )
        return problem if data.units.is_one else replace(problem, units=data.units)

    def _problem_of_source(self, source: Source) -> Whitened:
        return whiten_source(
            source,
            float(self.alpha),
            solver=self.solver,
            fit_intercept=self.fit_intercept,
            response_grams=self._wants_response_grams(),
        )

    def _problem_of_moments(self, moments: Moments) -> Whitened:
        centred = moments.centred(self.fit_intercept)
        return whiten_moments(centred, float(self.alpha), solver=self.solver)


def refuse_output_weight(estimator: Any, what: str) -> None:
    """Sums of squares over all outputs cannot be weighted any more."""
    if estimator.output_weight is not None:
        raise ValueError(
            f"output_weight needs samples in memory, and cannot be used with {what}; scale y by "
            f"the square roots of the weights before, and the predictions back."
        )
