"""Alternating refinement of the directions of the input modes.

A fit with `input_rank` predicts with ``X x_1 P_1' ... x_q P_q'``. If the coefficients and all bases
except one are fixed, the objective is quadratic in this basis. An iteration updates each basis in
turn: it sets the basis to the minimum, makes it orthonormal, and refits the coefficients. An
iteration that does not lower the objective is discarded, so the objective never increases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.fit import Fit
from ..core.input_map import InputMap
from ..core.moments import CentredMoments
from ..core.namespace import asarray_like, fix_signs, to_numpy
from ..core.tensor import unfold
from ..data.validation import Samples

__all__ = ["refine_inputs"]


def refine_inputs(
    features: InputMap,
    data: Samples | CentredMoments,
    options: Any,
    solve: Callable[[Any, Any], Fit],
) -> tuple[InputMap, int]:
    """Refine the bases of the input modes by alternating updates.

    Parameters
    ----------
    features : InputMap
        Map from inputs to features, with the initial bases.
    data : Samples or CentredMoments
        Data with these inputs; moments about the centres of the fit.
    options : LinearOptions
        Options of a fit to the features. The refinement stops after `max_iter` iterations, or when
        an iteration lowers the objective by at most the share `tol` of it.
    solve : callable
        Function from data and options to a fit.

    Returns
    -------
    features : InputMap
        Map with the refined bases.
    n_rounds : int
        Number of iterations.
    """
    best, n_rounds = solve(features.of(data), options), 0
    reduced = [
        (block, k)
        for block, bases in enumerate(features.bases)
        if bases is not None
        for k, U in enumerate(bases)
        if U.shape[1] < U.shape[0]
    ]
    while reduced and n_rounds < options.structure.max_iter:
        n_rounds += 1
        tried, fit = features, best
        for block, k in reduced:
            tried = _updated(tried, fit, block, k, data, options)
            fit = solve(tried.of(data), options)
        gain = best.objective - fit.objective
        if not gain > 0:
            break
        best, features = fit, tried
        if gain <= options.structure.tol * abs(best.objective):
            break
    return features, n_rounds


def _moments(data: Samples | CentredMoments, fit_intercept: bool) -> CentredMoments:
    """Return moments about the centres of the fit."""
    if isinstance(data, CentredMoments):
        return data
    return CentredMoments.from_checked(data.X, data.Y, data.w).centred(fit_intercept)


def _updated(
    features: InputMap,
    fit: Fit,
    block: int,
    k: int,
    data: Samples | CentredMoments,
    options: Any,
) -> InputMap:
    """Return the map with the optimal basis of one mode for fixed coefficients, orthonormalised."""
    bases, shape = features.bases[block], features.space.shapes[block]
    assert bases is not None
    ranks = tuple(U.shape[1] for U in bases)
    whole = tuple(asarray_like(np.eye(shape[k]), U) if j == k else U for j, U in enumerate(bases))
    wide = replace(features, bases=_with(features.bases, block, whole))
    m = _moments(wide.of(data), options.fit_intercept)
    start, stop = _place(wide, block)
    W = to_numpy(fit.tucker.to_dense()).astype(float)
    W = W.reshape(W.shape[0], -1)
    own = _place(features, block)
    # Coefficients of the block with mode k first: (r_k, others, D).
    H = np.moveaxis(W[slice(*own)].reshape(*ranks, -1), k, 0).reshape(ranks[k], -1, W.shape[1])
    sizes = tuple(shape[k] if j == k else r for j, r in enumerate(ranks))
    order = np.moveaxis(np.arange(start, stop).reshape(sizes), k, 0).reshape(shape[k], -1)
    Sxx, Sxy = to_numpy(m.Sxx), to_numpy(unfold(m.Sxy, 0))
    others = np.r_[0:start, stop : Sxx.shape[0]]
    target = Sxy[order.ravel()]
    if others.size:
        rest = np.delete(W, np.arange(*own), axis=0)
        target = target - Sxx[np.ix_(order.ravel(), others)] @ rest
    S = Sxx[np.ix_(order.ravel(), order.ravel())]
    mk, b = order.shape
    S = S.reshape(mk, b, mk, b)
    K = np.einsum("abd,ced->abce", H, H)
    normal = np.einsum("ibje,abce->iajc", S, K)
    ridge = np.einsum("abcb->ac", K)
    normal += options.alpha * np.einsum("ij,ac->iajc", np.eye(mk), ridge)
    right = np.einsum("ibd,abd->ia", target.reshape(mk, b, -1), H)
    size = mk * ranks[k]
    solved = np.linalg.lstsq(_symmetric(normal.reshape(size, size)), right.ravel(), rcond=None)[0]
    basis = np.linalg.qr(solved.reshape(mk, ranks[k]))[0]
    basis = asarray_like(fix_signs(basis), bases[k])
    changed = tuple(basis if j == k else U for j, U in enumerate(bases))
    return replace(features, bases=_with(features.bases, block, changed))


def _with(bases: tuple, block: int, own: tuple) -> tuple:
    return (*bases[:block], own, *bases[block + 1 :])


def _place(features: InputMap, block: int) -> tuple[int, int]:
    """Return the start and the stop of the features of a block."""
    sizes = [
        features.space.columns(b).size if r is None else math.prod(r)
        for b, r in enumerate(features.ranks)
    ]
    return sum(sizes[:block]), sum(sizes[: block + 1])


def _symmetric(A: np.ndarray) -> np.ndarray:
    return (A + A.T) / 2
