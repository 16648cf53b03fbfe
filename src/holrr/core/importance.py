r"""Importance of inputs: variable importance in projection (VIP) and selectivity ratio.

A linear model predicts ``P = Xc W`` from centred inputs Xc, with coefficients W of shape (d, D) for
D flattened outputs. With ``W = L Q'`` and orthonormal columns of Q, the predictions are
``T Q'`` with scores ``T = Xc L``. Both measures follow from the second moments of inputs and
scores, which a `Projection` holds.

The singular directions of the predictions are those of T: with eigenvalues :math:`\sigma_a^2` and
eigenvectors :math:`v_a` of ``T'T``, component a of the predictions has the input weights
:math:`w_a = L v_a` and the share :math:`\sigma_a^2 / \sum_b \sigma_b^2` of their variance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .namespace import to_numpy
from .own_inputs import OwnCoefficients
from .tensor import Tucker

__all__ = ["Projection", "explained_share", "project", "ratio_of", "split_coefficients", "vip"]

# Tolerance for rounding errors in shares of variance.
_ROUNDING = 64 * float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Projection:
    """Second moments of centred inputs X and scores ``T = X L``.

    Parameters
    ----------
    L : array of shape (d, R)
        Input weights of the scores.
    Q : array of shape (D, R)
        Orthonormal output directions; the coefficients are ``L Q'``.
    scores : array of shape (R, R)
        ``T'T``.
    cross : array of shape (d, R)
        ``X'T``.
    squares : array of shape (d,)
        Sum of squares of each input.
    """

    L: np.ndarray
    Q: np.ndarray
    scores: np.ndarray
    cross: np.ndarray
    squares: np.ndarray

    @property
    def energy(self) -> float:
        """Sum of squares of the predictions about their means."""
        return float(np.trace(self.scores))


def split_coefficients(
    tucker: Tucker,
    own: OwnCoefficients | None = None,
    output_weight: np.ndarray | None = None,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Factorise the coefficients of weighted outputs as ``L Q'``, with orthonormal columns of Q.

    Parameters
    ----------
    tucker : Tucker
        Coefficients, of shape (d, d1, ..., dp).
    own : OwnCoefficients, optional
        Coefficients of own inputs, which are added.
    output_weight : array of shape (d1, ..., dp), optional
        Weights of the outputs in sums of squares.
    known : array of bool, of shape (d1, ..., dp), optional
        Outputs to use; all by default. The coefficients of other outputs are replaced by zero.

    Returns
    -------
    L : array of shape (d, R)
    Q : array of shape (D, R)
        With orthonormal columns.

    Examples
    --------
    >>> T = Tucker(np.array([[2.0, 0.0]]), (np.array([[1.0], [3.0]]), None))
    >>> L, Q = split_coefficients(T)
    >>> L.shape, np.allclose(L @ Q.T, T.to_dense())
    ((2, 1), True)
    """
    first = tucker.factors[0]
    if first is None or own is not None:
        U, C = None, to_numpy(tucker.to_dense()).astype(np.float64)
    else:
        U, C = to_numpy(first).astype(np.float64), to_numpy(tucker.expanded()).astype(np.float64)
    C = C.reshape(C.shape[0], math.prod(C.shape[1:]))
    if own is not None:
        C = C + own.matrix.toarray()
    if output_weight is not None:
        C = C * np.sqrt(output_weight.reshape(-1))
    if known is not None:
        C = np.where(known.reshape(-1), C, 0.0)
    Q, R = np.linalg.qr(C.T)
    return (R.T if U is None else U @ R.T), Q


def project(
    blocks: Iterable[tuple[np.ndarray, np.ndarray]], L: np.ndarray, Q: np.ndarray, mean: np.ndarray
) -> Projection:
    """Return second moments of inputs and scores, from one pass over the samples.

    Parameters
    ----------
    blocks : iterable of pairs of arrays
        Inputs of some samples, of shape (n, d), and their weights, of shape (n,).
    L, Q : arrays
        As `split_coefficients` returns them.
    mean : array of shape (d,)
        Centre of the inputs.
    """
    d, R = L.shape
    scores, cross, squares = np.zeros((R, R)), np.zeros((d, R)), np.zeros(d)
    weight = 0.0
    for X, w in blocks:
        Xc = np.sqrt(w)[:, None] * (X - mean)
        T = Xc @ L
        scores += T.T @ T
        cross += Xc.T @ T
        squares += np.einsum("ij,ij->j", Xc, Xc)
        weight += float(w.sum())
    # Rounding errors of a constant input do not count as variance.
    varies = squares > weight * (8 * np.finfo(float).eps * mean) ** 2
    if not (varies & L.any(axis=1)).any():
        scores = np.zeros((R, R))
    squares = np.where(varies, squares, 0.0)
    return Projection(L, Q, scores, np.where(varies[:, None], cross, 0.0), squares)


def vip(projection: Projection, *, standardize: bool = False) -> np.ndarray:
    r"""Return the variable importance in projection (VIP) of each input, of shape (d,).

    .. math:: \mathrm{VIP}_j^2 = d \sum_a \frac{\sigma_a^2}{\sum_b \sigma_b^2}
        \frac{w_{ja}^2}{\|w_a\|^2}

    The sum is over the components a of the predictions, with their input weights :math:`w_a` and
    their variances :math:`\sigma_a^2`. The mean of the squares is one.

    Parameters
    ----------
    projection : Projection
        Projection of predictions that are not constant.
    standardize : bool
        Whether to express the inputs in units of their standard deviations.

    Examples
    --------
    For one output, the importances are proportional to the absolute coefficients:

    >>> X, b = np.eye(3), np.array([[1.0], [2.0], [2.0]])
    >>> vip(project([(X, np.ones(3))], b, np.ones((1, 1)), np.zeros(3))) / np.sqrt(3)
    array([0.33333333, 0.66666667, 0.66666667])
    """
    variance, V = np.linalg.eigh(projection.scores)
    variance = np.maximum(variance, 0.0)
    weights = projection.L @ V
    if standardize:
        weights = weights * np.sqrt(projection.squares)[:, None]
    norms = np.einsum("ja,ja->a", weights, weights)
    share = np.where(norms > 0, variance, 0.0)
    # Squares of unit vectors times the shares of their components.
    squares = weights**2 @ (share / np.where(norms > 0, norms, 1.0)) / share.sum()
    return np.sqrt(len(squares) * squares)


def explained_share(projection: Projection, average: str | None = "pooled") -> np.ndarray:
    r"""Return the share of the variance of each input that the prediction of an output explains.

    The prediction of an output is also called its target-projected score. The share is the squared
    correlation :math:`r_{jk}^2` of input j and the prediction of output k. The share pooled over
    outputs is the mean with the variances of the predictions as weights,

    .. math:: E_j = \frac{\sum_k \|p_k\|^2 r_{jk}^2}{\sum_k \|p_k\|^2}
        = \frac{\|x_j^\top P\|^2}{\|x_j\|^2 \|P\|^2} .

    Parameters
    ----------
    projection : Projection
        Projection of predictions that are not constant.
    average : {"pooled", "uniform"} or None
        "pooled" is the mean over outputs with the variances of their predictions as weights.
        "uniform" is the unweighted mean over the outputs whose predictions vary. None returns the
        share of each output.

    Returns
    -------
    array of shape (d,), or (d, D) without an average
        Zero for inputs and outputs that do not vary.
    """
    B, s = projection.cross, projection.squares
    known = np.where(s > 0, s, 1.0)
    if average == "pooled":
        return np.minimum(np.einsum("jr,jr->j", B, B) / known / projection.energy, 1.0)
    size = np.einsum("kr,rs,ks->k", projection.Q, projection.scores, projection.Q)
    varies = size > _ROUNDING * projection.energy
    r2 = (B @ projection.Q.T) ** 2 / known[:, None] / np.where(varies, size, 1.0)
    r2 = np.where(varies, np.minimum(r2, 1.0), 0.0)
    return r2 if average is None else r2.sum(axis=1) / max(int(varies.sum()), 1)


def ratio_of(share: np.ndarray) -> np.ndarray:
    """Return ``share / (1 - share)``, explained over residual variance; infinite for a share of 1.

    >>> ratio_of(np.array([0.0, 0.5, 1.0]))
    array([ 0.,  1., inf])
    """
    left = np.where(1.0 - share < _ROUNDING, 0.0, 1.0 - share)
    return np.divide(share, left, out=np.full_like(share, np.inf), where=left != 0)
