"""Whitened problems: the reduction to an approximation holds for every way to build them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import reference
from holrr import Moments
from holrr.core.spectral import (
    keeps_digits,
    spectral_from_arrays,
    spectral_from_moments,
    spectral_from_samples,
    whiten_arrays,
    whiten_moments,
)
from problems import problems, toy


def builds(problem, w=None):
    """The same problem, built in every possible way."""
    X, Y, alpha, icpt = problem.X, problem.Y, problem.alpha, problem.fit_intercept
    m = Moments.from_arrays(X, Y, w)
    yield whiten_arrays(X, Y, w, alpha, fit_intercept=icpt)
    yield whiten_arrays(X, Y, w, alpha, solver="svd", fit_intercept=icpt)
    yield whiten_arrays(X, Y, w, alpha, solver="eigh", fit_intercept=icpt)
    yield whiten_moments(m.centred(icpt), alpha)
    yield spectral_from_samples(X, Y, w, min_alpha=alpha, fit_intercept=icpt).at(alpha)
    yield spectral_from_arrays(X, Y, w, fit_intercept=icpt).at(alpha)
    yield spectral_from_moments(m if icpt else m.about_zero()).at(alpha)


@given(problems(), st.booleans())
def test_reduction_holds_for_every_way_to_build_the_problem(problem, weighted):
    """``objective(lift(V)) = residual + ||V - Z||^2``, and Z has the norm of the reference."""
    w = np.random.default_rng(0).uniform(0.2, 2, len(problem.X)) if weighted else None
    X, Y = reference.centre(problem.X, problem.Y, problem.fit_intercept, w)[:2]
    if weighted:
        X, Y = np.sqrt(w)[:, None] * X, np.sqrt(w).reshape(-1, *[1] * problem.p) * Y
    _, Z, r = reference.whiten(X, Y, problem.alpha)
    scale = np.sum(problem.Y**2) + np.finfo(float).tiny
    for white in builds(problem, w):
        assert_allclose(white.residual, r, rtol=1e-8, atol=1e-9 * scale)
        assert_allclose(white.norm, np.sum(Z**2), rtol=1e-8, atol=1e-9 * scale)
        V = np.random.default_rng(1).normal(size=white.Z.shape)
        W = white.lift(V.reshape(len(V), -1)).reshape(X.shape[1], *Y.shape[1:])
        if np.abs(X).max() > 1e-8:  # else nothing can be lifted: there is no input
            expected = white.residual + np.sum((V - white.Z) ** 2)
            found = reference.objective(X, Y, W, problem.alpha)
            assert_allclose(found, expected, rtol=1e-7, atol=1e-8 * scale)
        rank = np.linalg.matrix_rank(X, tol=1e-8)
        assert max(rank, 1) == max(white.input_rank(), 1)


@given(problems(alphas=(0.0,), degenerate=False), st.lists(st.floats(1e-3, 1e3), max_size=4))
def test_one_decomposition_gives_the_problems_of_all_penalties(problem, alphas):
    X, Y, icpt = problem.X, problem.Y, problem.fit_intercept
    spectral = spectral_from_arrays(X, Y, fit_intercept=icpt)
    for alpha in [0.0, *alphas]:
        path, alone = spectral.at(alpha), whiten_arrays(X, Y, None, alpha, fit_intercept=icpt)
        assert_allclose(path.residual, alone.residual, rtol=1e-7, atol=1e-9 * np.sum(Y**2))
        W = [b.lift(b.Z.reshape(b.Z.shape[0], -1)) for b in (path, alone)]
        assert_allclose(*W, rtol=1e-5, atol=1e-6 * (1e-12 + np.abs(W[0]).max()))


def test_singular_values_are_those_of_the_centred_inputs():
    X, Y = toy()
    s = np.linalg.svd(X - X.mean(0), compute_uv=False)
    assert_allclose(spectral_from_arrays(X, Y).s, s, rtol=1e-10)
    assert_allclose(spectral_from_moments(Moments.from_arrays(X, Y)).s, s, rtol=1e-10)


def test_directions_without_variance_are_dropped():
    X, Y = toy(d0=5)
    X[:, 3], X[:, 4] = 0.0, X[:, 0]
    assert spectral_from_arrays(X, Y).s.shape == (3,)
    assert spectral_from_moments(Moments.from_arrays(X, Y)).s.shape == (3,)


def test_constant_inputs_explain_nothing():
    X, Y = toy()
    X[:] = 7.0
    for alpha in (0.0, 1.0):
        for white in (
            whiten_arrays(X, Y, None, alpha),
            whiten_moments(Moments.from_arrays(X, Y), alpha),
        ):
            assert white.norm == pytest.approx(0, abs=1e-20)
            assert_allclose(white.residual, np.sum((Y - Y.mean(0)) ** 2), rtol=1e-12)


def test_whitening_in_every_library(xp):
    X, Y = toy()
    expected = whiten_arrays(X, Y, None, 0.5)
    for solver in ("auto", "cholesky", "eigh", "svd"):
        white = whiten_arrays(xp.asarray(X), xp.asarray(Y), None, 0.5, solver=solver)
        assert xp.owns(white.Z)
        assert_allclose(white.residual, expected.residual, rtol=1e-10)
        flat = xp.asarray(xp.to_numpy(white.Z).reshape(white.Z.shape[0], -1))
        W = xp.to_numpy(white.lift(flat))
        assert_allclose(W, expected.lift(expected.Z.reshape(len(expected.Z), -1)), rtol=1e-8)


def test_dropped_directions_need_a_penalty_to_keep_digits():
    """How small a dropped direction was is not known."""
    assert keeps_digits(np.array([1.0, 0.5, 0.1]), 0.0, 3, "float64")
    assert not keeps_digits(np.array([1.0, 0.5]), 0.0, 3, "float64")
    assert keeps_digits(np.array([1.0, 0.5]), 1e-3, 3, "float64")
    assert not keeps_digits(np.array([1.0, 0.5]), 1e-5, 3, "float32")
