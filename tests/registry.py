"""Every public estimator, once or more, with parameters for the tests that all of them share.

These are in test_common.py, test_state.py, test_blocks.py, test_arrays.py and test_bad_input.py;
tests/fuzz draws from the rows, too.

To add an estimator, add a row: a test fails where a public one has none. A test with the argument
``row`` runs for every row, and with the mark ``rows`` for those that have the named attributes.
Tests of code that all estimators share, such as the validation of data, run for the rows that
represent a family (`Row.representative`). What an estimator can do follows from the estimator
(`Row.batches`, ...) where possible, and is a field otherwise. Where a shared check cannot hold,
name the check and the reason in ``exempt``, or in ``failing_checks`` for those of scikit-learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import PredefinedSplit

import holrr
from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    MLMTNC,
    RLS,
    RLSCV,
    KernelHOLRR,
    KernelHOLRRCV,
    KernelLRR,
    KernelLRRCV,
    KernelRLS,
    KernelRLSCV,
    TraceNormRegression,
)


@dataclass(frozen=True)
class Row:
    """One estimator with parameters that suit outputs of every order."""

    estimator: BaseEstimator
    # Linear in the inputs, with coefficients `coef_` for them.
    linear: bool = True
    # `objective_` is the squared error with the penalty ``alpha ||W||^2``.
    ridge: bool = True
    # Fits memory maps and Dask arrays in chunks.
    streams: bool = True
    # Shifted inputs are the same problem, with another intercept.
    shifts: bool = True
    # Represents its family in tests of code that all estimators share.
    representative: bool = False
    # How much two computations of the same fit may differ, relative to the largest entry.
    tol: float = 1e-9
    # Name of a shared check -> why it cannot hold.
    exempt: Mapping[str, str] = field(default_factory=dict)
    # Name of one of scikit-learn's checks -> why it is impossible.
    failing_checks: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return " ".join(repr(self.estimator).split())

    def make(self, **params: Any) -> Any:
        """A fresh estimator."""
        return clone(self.estimator).set_params(**params)

    @cached_property
    def params(self) -> dict[str, Any]:
        return self.estimator.get_params()

    @property
    def batches(self) -> bool:
        """Has partial_fit."""
        return hasattr(self.estimator, "partial_fit") and not self.robust

    @property
    def takes_moments(self) -> bool:
        return hasattr(self.estimator, "fit_moments") and not self.robust

    @property
    def takes_fold_moments(self) -> bool:
        return hasattr(self.estimator, "fit_fold_moments") and not self.robust

    @property
    def robust(self) -> bool:
        """Finds weights of the samples, which must be in memory."""
        return self.params.get("loss") == "huber"

    @property
    def searches(self) -> bool:
        """Chooses among candidates."""
        return "cv" in self.params

    @property
    def has_noise(self) -> bool:
        """Estimates the noise of each output."""
        return not type(self.estimator).__name__.startswith(("TraceNorm", "MLMT"))

    @property
    def has_intervals(self) -> bool:
        """Has prediction intervals."""
        return self.has_noise and self.searches

    @property
    def has_intercept(self) -> bool:
        return self.params["fit_intercept"]

    @property
    def takes_missing(self) -> bool:
        """Fits the observed entries of outputs with missing ones, with ``missing="ignore"``."""
        return "missing" in self.params and self.params.get("subspaces") != "response"

    @property
    def takes_sparse(self) -> bool:
        """Fits sparse inputs and predicts for them."""
        return bool(self.estimator.__sklearn_tags__().input_tags.sparse)

    @property
    def refuses_sparse(self) -> bool:
        """Says what to do with sparse inputs."""
        return not self.takes_sparse

    @property
    def weighs_outputs(self) -> bool:
        """Has the parameter `output_weight`."""
        return "output_weight" in self.params

    @property
    def runs_in_parallel(self) -> bool:
        """Has the parameter `n_jobs`."""
        return "n_jobs" in self.params

    def pinned(self, X: np.ndarray, labels: np.ndarray | None = None) -> dict[str, Any]:
        """Parameters by which folds and landmarks do not depend on the order of the samples."""
        found: dict[str, Any] = {}
        if self.searches and labels is not None:
            found["cv"] = PredefinedSplit(labels)
        if self.params.get("landmarks") is not None:
            found["landmarks"] = X[: self.params["landmarks"]].copy()
        return found

    def scaled(self, scale: float, shape: tuple[int, ...]) -> dict[str, Any]:
        """Parameters by which outputs times `scale` are the same problem.

        A trace norm grows as the outputs do. The penalty of MLMT-NC is on factors whose product is
        the tensor of the given shape, input mode first.
        """
        grow = {"penalty": 1.0, "beta": 2.0 - 2.0 / n_factors(shape)}
        found = {}
        for name, power in grow.items():
            factor = abs(scale) ** power
            if name in self.params:
                found[name] = factor * self.params[name]
        return found

    def near(self, found: Any, expected: Any, factor: float = 1.0) -> None:
        """Assert that two arrays are equal up to rounding and the tolerance of the solver."""
        expected, tol = np.asarray(expected), factor * self.tol
        atol = 0.1 * tol * np.abs(expected).max(initial=0.0)
        assert_allclose(found, expected, rtol=tol, atol=atol)

    def same_fit(self, found: Any, expected: Any, X: np.ndarray, factor: float = 1.0) -> None:
        """Assert that two models of the same data are equal, with all their attributes."""
        other = X[::-1] * 1.1 + 0.2
        for inputs in (X, other):
            self.near(found.predict(inputs), expected.predict(inputs), factor)
        if self.linear:
            self.near(found.coef_, expected.coef_, factor)
            scale = np.abs(expected.predict(X)).max()
            at = 10 * factor * self.tol
            assert_allclose(found.intercept_, expected.intercept_, rtol=at, atol=at * scale)
        same_certificate(found, expected, factor * self.tol)
        assert getattr(found, "rank_", None) == getattr(expected, "rank_", None)


def n_factors(shape: tuple[int, ...]) -> int:
    """Core and factors of MLMT-NC; output modes of size one have none."""
    return 2 + sum(d > 1 for d in shape[1:])


def certificate(model: Any) -> dict[str, float]:
    """Objective and bound, of those estimators that have them."""
    names = ("objective_", "lower_bound_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def same_certificate(
    found: Any, expected: Any, tol: float, scale: float = 1.0, floor: float = 0.0
) -> None:
    """Assert that objective and bound are equal up to the factor `scale`."""
    found, expected = certificate(found), certificate(expected)
    assert found.keys() == expected.keys()
    for name in expected:
        near = tol * abs(scale * expected["objective_"]) + floor
        assert_allclose(found[name], scale * expected[name], rtol=tol, atol=near)


ONE_SAMPLE = "one sample cannot be divided into folds"
SEARCH = {"test_single_sample_is_predicted_by_itself": ONE_SAMPLE}
ALPHAS = [0.1, 1.0, 10.0]
GRID = {"alphas": ALPHAS, "cv": 3}
SEED = {"random_state": 0}
SCORES = {
    "check_sample_weight_equivalence_on_dense_data": "its input scores are the kernel values with "
    "all samples; test_integer_weights_equal_repeated_samples compares the predictions"
}
ONE_OF_SEVERAL = (
    "robust weights come from residuals of samples that are left out, with all of their weight, "
    "and not one of several equal samples; linear/test_robust.py compares the weights"
)
OUTPUT_SCALES = "robust weights have a scale for each output, not for each direction of outputs"
ROBUST_MEAN = "the mean has robust weights; linear/test_robust.py compares it with these"
ROBUST = {
    "test_objective_is_that_of_a_sum_over_samples": "the sum has robust weights; "
    "linear/test_robust.py compares it with these",
    "test_rotation_of_an_output_mode_rotates_predictions": OUTPUT_SCALES,
    "test_sizes_above_internal_limits_give_equal_fits": OUTPUT_SCALES,
    "test_integer_weights_equal_repeated_samples": ONE_OF_SEVERAL,
    "test_integer_weights_with_fewer_samples_than_features": ONE_OF_SEVERAL,
    "test_default_grids_count_what_carries_weight": ONE_OF_SEVERAL,
    "test_std_with_integer_weights_is_that_of_repeated_samples": ONE_OF_SEVERAL,
    "test_constant_inputs_predict_the_mean": ROBUST_MEAN,
    "test_constant_inputs_with_weights_predict_the_weighted_mean": ROBUST_MEAN,
}
NO_BATCHES = dict.fromkeys(
    (
        "check_fit_score_takes_y",
        "check_n_features_in_after_fitting",
        "check_estimators_partial_fit_n_features",
    ),
    "partial_fit keeps moments, from which robust weights cannot be found",
)

ROWS = [
    Row(RLS()),
    Row(RLS(alpha=0, fit_intercept=False)),
    Row(LRR(rank=2, alpha=0.5)),
    Row(HOLRR(rank=2, alpha=0.5), representative=True),
    Row(HOLRR(rank=2, alpha=0.5, subspaces="response")),
    Row(HOLRR(rank=2, alpha=0.5, refine=True)),
    Row(RLSCV(**GRID), exempt=SEARCH),
    Row(LRRCV(**GRID), exempt=SEARCH),
    Row(HOLRRCV(**GRID, selection="min"), exempt=SEARCH),
    Row(
        HOLRRCV(**GRID, selection="1se"),
        exempt={
            **SEARCH,
            "test_fewer_samples_than_features": "three folds of two samples are too few",
        },
    ),
    Row(HOLRRCV(**GRID), ridge=False, exempt=SEARCH, representative=True),
    Row(
        HOLRR(rank=2, alpha=0.5, loss="huber"),
        streams=False,
        exempt=ROBUST,
        failing_checks={
            **NO_BATCHES,
            "check_sample_weight_equivalence_on_dense_data": ONE_OF_SEVERAL,
        },
    ),
    Row(
        HOLRRCV(**GRID, loss="huber"),
        ridge=False,
        streams=False,
        exempt={**SEARCH, **ROBUST},
        failing_checks={"check_sample_weight_equivalence_on_dense_data": ONE_OF_SEVERAL},
    ),
    Row(
        KernelRLS(kernel="rbf", gamma=0.1, alpha=0.1, **SEED),
        linear=False,
        streams=False,
        failing_checks=SCORES,
    ),
    Row(
        KernelLRR(rank=2, kernel="poly", gamma=0.1, **SEED),
        linear=False,
        streams=False,
        shifts=False,
    ),
    Row(KernelHOLRR(rank=2, alpha=0.5, **SEED), streams=False, representative=True),
    Row(
        KernelHOLRR(rank=2, kernel="rbf", gamma=0.1, alpha=0.1, refine=True, **SEED),
        linear=False,
        streams=False,
    ),
    Row(
        KernelHOLRR(rank=2, kernel="rbf", gamma=0.1, alpha=0.1, subspaces="response", **SEED),
        linear=False,
        streams=False,
    ),
    Row(
        KernelHOLRR(rank=2, kernel="rbf", gamma=0.1, alpha=0.1, landmarks=20, **SEED),
        linear=False,
        representative=True,
    ),
    Row(
        KernelRLSCV(**GRID, gammas=[0.1, 1.0], **SEED),
        linear=False,
        streams=False,
        exempt=SEARCH,
        failing_checks=SCORES,
    ),
    Row(KernelLRRCV(**GRID, gammas=[0.1], **SEED), linear=False, streams=False, exempt=SEARCH),
    Row(
        KernelHOLRRCV(**GRID, gammas=[0.1, 1.0], **SEED),
        linear=False,
        streams=False,
        exempt=SEARCH,
        representative=True,
    ),
    Row(
        KernelHOLRRCV(**GRID, gammas=[0.1], landmarks=20, **SEED),
        linear=False,
        exempt=SEARCH,
        failing_checks={
            "check_sample_weight_equivalence_on_dense_data": "others are drawn of repeated samples"
        },
    ),
    Row(TraceNormRegression(penalty=1.0, tol=1e-8), ridge=False, tol=1e-7, representative=True),
    Row(MLMTNC(rank=2, beta=0.1, tol=1e-10, random_state=0), ridge=False, tol=1e-7),
]

PUBLIC = [
    cls
    for cls in (getattr(holrr, name) for name in holrr.__all__)
    if isinstance(cls, type) and issubclass(cls, BaseEstimator)
]

# Another value for every parameter, or several where not all estimators take the first.
ALTERNATIVES: dict[str, tuple[Any, ...]] = {
    "alpha": (0.03,),
    "alpha_per_output": (True, False),
    "alphas": ([0.5, 5.0],),
    "beta": (0.5,),
    "blocks": ([[0, 1], [2, 3, 4]],),
    "center_kernel": (False,),
    "coef0": (0.5,),
    "cv": (2, 3),
    "degree": (2,),
    "fit_intercept": (False, True),
    "gamma": (0.4,),
    "gammas": ([0.3, 0.5],),
    "init": ("random",),
    "input_alpha": (0.1,),  # without input ranks it has no effect
    "kernel": ("laplacian",),
    "kernel_params": ({},),
    "loss": ("huber",),
    "landmarks": (5, np.random.default_rng(7).normal(size=(6, 5))),
    "max_iter": (2,),
    "max_rank": (1,),
    "missing": ("ignore",),
    "mode_weights": ((1.0, 0.5, 2.0),),
    "n_init": (2,),
    "n_jobs": (2,),
    "output_weight": ([[1.0, 2.0, 0.5], None],),
    "own": (np.arange(60).reshape(5, 12) % 4 == 0,),
    "own_alpha": (0.1,),  # without own inputs it has no effect
    "penalty": (4.0,),
    "random_state": (3,),
    "rank": (1,),
    "refine": (True, False),
    "scale_outputs": ("std",),
    "selection": ("min", "1se", "auto"),
    "subspaces": ("response", "fitted"),
    "tol": (1e-2,),
}

# Parameters without another value.
WITHOUT_ALTERNATIVE = {
    "input_rank": "it needs inputs with modes; test_tensor_inputs.py has them",
    "input_shape": "it gives inputs modes; test_tensor_inputs.py has them",
    "output_shape": "it needs flat outputs; test_labels.py has them",
    "verbose": "it only prints",
    "warm_start": "it starts from the last fit on purpose",
}
