"""Fits with X'Y beyond the memory budget equal those in memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from holrr import HOLRR, LRR, RLS
from holrr.streaming import memory_budget
from problems import on_disk, toy

TINY = 2**11


ESTIMATORS = [
    RLS(),
    RLS(alpha=0, fit_intercept=False),
    LRR(rank=2),
    HOLRR(rank=2),
    HOLRR(rank=None, alpha=0.1),
    HOLRR(rank=2, refine=True),
    HOLRR(rank=2, subspaces="response"),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("shape", [(70,), (9, 11), (5, 4, 6), (2, 1, 60)])
def test_a_fit_by_parts_of_the_outputs_equals_the_fit_in_memory(estimator, shape, tmp_path):
    X, Y = toy(n=60, d0=4, shape=shape)
    expected = estimator.fit(X, Y)
    coef, objective, bound = expected.coef_, expected.objective_, expected.lower_bound_
    with memory_budget(TINY):
        found = estimator.fit(X, on_disk(tmp_path, "Y", Y))
    np.testing.assert_allclose(found.coef_, coef, rtol=1e-9, atol=1e-9)
    assert found.objective_ == pytest.approx(objective, rel=1e-9)
    assert found.lower_bound_ == pytest.approx(bound, rel=1e-9)


def test_the_type_of_the_coefficients_is_the_wider_of_inputs_and_outputs(tmp_path):
    X, Y = toy(n=60, d0=4, shape=(9, 11))
    X = X.astype(np.float32)
    with memory_budget(TINY):
        found = HOLRR(rank=2).fit(X, on_disk(tmp_path, "Y", Y))
    assert found.coef_.dtype == HOLRR(rank=2).fit(X, Y).coef_.dtype == np.float64


def test_collinear_inputs_and_ranks_by_energy_are_fitted_by_parts(tmp_path):
    X, Y = toy(n=60, d0=4, shape=(9, 11))
    X = np.hstack([X, X[:, :2]])
    model = HOLRR(rank=(0.99, 0.9, 3), alpha=0)
    expected = model.fit(X, Y)
    rank, coef = expected.rank_, expected.coef_
    with memory_budget(TINY):
        found = model.fit(X, on_disk(tmp_path, "Y", Y))
    assert found.rank_ == rank
    np.testing.assert_allclose(found.coef_, coef, rtol=1e-8, atol=1e-8)


def test_a_fit_by_parts_takes_less_memory_than_the_coefficients(tmp_path):
    rng = np.random.default_rng(0)
    X, d0, shape, budget = rng.normal(size=(60, 40)), 40, (300, 200), 2**22
    Y = np.lib.format.open_memmap(tmp_path / "Y.npy", "w+", shape=(60, *shape))  # 29 MB
    for i in range(60):
        Y[i] = np.outer(X[i, 0] * np.arange(300), np.ones(200)) + rng.normal(size=shape)
    assert 8 * d0 * 300 * 200 > 4 * budget
    tracemalloc.start()
    with memory_budget(budget):
        model = HOLRR(rank=(3, 3, 3)).fit(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * budget
    np.testing.assert_allclose(
        model.coef_, HOLRR(rank=(3, 3, 3)).fit(X, np.array(Y)).coef_, atol=1e-9
    )


def test_coefficients_of_77_megabytes_are_those_of_a_fit_in_memory(tmp_path):
    """The tensor that the fit approximates is in a file, and is read in parts of 64 MB."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(45, 40)), rng.normal(size=(600, 400)).astype(np.float32)
    Y = np.stack([np.roll(noise, i, axis=0) for i in range(45)])
    Y += (X[:, :1] * np.arange(600, dtype=np.float32))[:, :, None]
    model = HOLRR(rank=(3, 3, 3), refine=True)
    expected = model.fit(X, Y).coef_[:, ::50, ::50]
    with memory_budget(2**24):
        found = model.fit(X, on_disk(tmp_path, "Y", Y)).coef_[:, ::50, ::50]
    np.testing.assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())
