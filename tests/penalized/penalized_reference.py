"""Naive objectives and solvers of the penalised problems, which share no code with the package."""

from __future__ import annotations

import numpy as np
import pytest

import reference


def nuclear(T, mode):
    return np.linalg.svd(reference.unfold(T, mode), compute_uv=False).sum()


def penalised_modes(shape, weights):
    """Modes and weights that count: output modes of size one do not."""
    return [(i, w) for i, w in enumerate(weights) if i == 0 or shape[i] > 1]


def trace_norm_objective(X, Y, W, penalty, alpha=0.0, weights=None, intercept=0.0):
    """``1/2 ||XW + c - Y||^2 + alpha/2 ||W||^2 + penalty sum_i w_i ||W_(i)||_*``."""
    weights = np.ones(W.ndim) if weights is None else weights
    loss = np.sum((np.tensordot(X, W, 1) + intercept - Y) ** 2) + alpha * np.sum(W**2)
    return loss / 2 + penalty * sum(w * nuclear(W, i) for i, w in penalised_modes(W.shape, weights))


def solve_with_cvxpy(X, Y, penalty, alpha=0.0, weights=None):
    """Minimiser and minimum by an interior point method."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy, the independent convex solver, is missing")
    shape = (X.shape[1], *Y.shape[1:])
    weights = np.ones(len(shape)) if weights is None else weights
    w = cp.Variable(int(np.prod(shape)))
    places = np.arange(w.size).reshape(shape)
    norms = 0.0
    for mode, weight in penalised_modes(shape, weights):
        at = reference.unfold(places, mode)
        unfolded = cp.reshape(w[at.ravel()], at.shape, order="C")
        norms = norms + weight * (cp.norm(w, 2) if 1 in at.shape else cp.normNuc(unfolded))
    A = np.kron(X, np.eye(int(np.prod(shape[1:]))))
    loss = 0.5 * cp.sum_squares(A @ w - Y.ravel()) + 0.5 * alpha * cp.sum_squares(w)
    problem = cp.Problem(cp.Minimize(loss + penalty * norms))
    problem.solve(solver="CLARABEL")
    return w.value.reshape(shape), problem.value


def mlmtnc_objective(X, Y, core, factors, beta, intercept=0.0):
    """``||XW + c - Y||^2 + beta (||G||^2 + sum_i ||A_i||^2)``, modes of size one without factor."""
    W = reference.tucker_to_dense(core, factors)
    squares = np.sum(core**2) + np.sum(factors[0] ** 2)
    squares += sum(np.sum(A**2) for A in factors[1:] if A.shape[0] > 1)
    return np.sum((np.tensordot(X, W, 1) + intercept - Y) ** 2) + beta * squares
