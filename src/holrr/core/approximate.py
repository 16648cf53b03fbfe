"""Structures of coefficients, and approximations of the whitened tensor Z that have them.

A structure (full rank, low matrix rank, low multilinear rank) is a record with the rank that the
user asked for and one operation: it approximates the whitened tensor `Z` of a problem by a tensor
`V` of that rank. Linear models, kernels, searches and fits with missing outputs all use the same
records.

`hosvd` projects every mode onto its leading singular vectors: optimal for one mode (Eckart and
Young), within a factor of p + 1 of the optimum for p + 1 modes. `hooi` continues from there by
alternating least squares and never increases the error. Both return energies that bound the
distance from the optimum.

References
----------
L. De Lathauwer, B. De Moor, J. Vandewalle (2000). A multilinear singular value decomposition.
SIAM Journal on Matrix Analysis and Applications 21(4), 1253-1278.

L. De Lathauwer, B. De Moor, J. Vandewalle (2000). On the best rank-1 and rank-(R1, ..., RN)
approximation of higher-order tensors. SIAM Journal on Matrix Analysis and Applications 21(4),
1324-1342.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from .majorise import majorise
from .namespace import (
    FULL_SPECTRUM_LIMIT,
    HOST_LIMIT,
    Array,
    all_to_device_of,
    all_to_numpy,
    asarray_like,
    device_of,
    eigh,
    eigh_top,
    fix_signs,
    is_numpy_array,
    namespace_of,
    on_host,
    squared_norm,
    symmetrise,
    to_numpy,
)
from .spectral import Whitened
from .tensor import (
    Tucker,
    gram,
    multi_mode_product,
    unfold,
)

__all__ = ["Approximation", "FullRank", "MatrixRank", "MultilinearRank", "RankSpec", "Structure"]
__all__ += ["Whole", "check_matrix_rank", "check_rank", "hooi", "hosvd", "leading_pairs"]
__all__ += ["safe_scale"]

# The rank of one mode: a number of directions, or a share of the mode's energy.
RankSpec = int | float

# Smallest number of rows for which an accelerator uses subspace iteration: it is then faster than a
# full decomposition.
_ITERATED_ROWS = 512
_TRIES, _ROUNDS, _OVERSAMPLING = 2, 3, 8
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Approximation:
    """A Tucker tensor V near Z, with bounds on their distance.

    Parameters
    ----------
    tucker : Tucker
        V, with orthonormal factors.
    error : float
        ``||Z - V||^2``.
    tails : tuple of p + 1 floats
        Energy of each unfolding of Z beyond the rank of its mode. The error of every tensor of
        these ranks is at least ``max(tails)``, and that of the truncated HOSVD is at most
        ``sum(tails)``.
    spectra : tuple of p + 1 arrays
        Leading squared singular values of each unfolding of Z, as far as they were needed: all of
        them for small modes, none for modes that were not decomposed.
    n_iter : int
        Number of rounds of alternating least squares, or of completion, after the first fit.
    share : float
        Degrees of freedom, divided by those of a single fit of this rank. It differs from 1 for a
        mixture.
    converged : bool
        Whether the rounds of a completion have converged.
    """

    tucker: Tucker
    error: float
    tails: tuple[float, ...]
    spectra: tuple[np.ndarray, ...]
    n_iter: int = 0
    share: float = 1.0
    converged: bool = True

    @property
    def lower_bound(self) -> float:
        """Lower bound on the error of all tensors of the same multilinear rank."""
        return max(self.tails, default=0.0)


@dataclass(frozen=True, eq=False)
class _Mode:
    """One mode of Z, with an orthonormal basis of the directions to keep (None keeps all)."""

    basis: Array | None
    spectrum: np.ndarray
    tail: float


@dataclass(frozen=True, eq=False)
class Whole:
    """Statistics of a tensor of which only the leading rows of the input mode are formed."""

    spectrum: np.ndarray  # squared singular values of the input mode: at least those of the rows
    grams: tuple[Array, ...]  # Gram matrices of the output modes, (d_i, d_i)


class HasRank(Protocol):
    """A record that knows the numerical rank of the inputs, such as `Factor`."""

    def input_rank(self) -> int:
        """Return the number of input directions that the data support."""


@np.errstate(over="ignore")  # if squares overflow, only the bounds become infinite
def hosvd(
    Z: Array,
    rank: Sequence[RankSpec],
    *,
    inputs: HasRank | None = None,
    output_grams: Sequence[Array] | None = None,
    modes: Sequence[int] | None = None,
    rotate: bool = False,
    norm: float | None = None,
    whole: Whole | None = None,
) -> Approximation:
    """Compute a truncated higher-order singular value decomposition (HOSVD).

    Parameters
    ----------
    Z : array of shape (r, d1, ..., dp)
    rank : sequence of p + 1 ints or floats
        Number of directions to keep in each mode, or the share of its energy.
    inputs : Factor, optional
        Its ``input_rank()`` is the number of input directions that the data support. It is computed
        only if the input mode of Z does not have the requested rank numerically.
    output_grams : sequence of p arrays of shape (d_i, d_i), optional
        Matrices whose leading eigenvectors the output modes are projected onto. The default is the
        leading singular vectors of Z.
    modes : sequence of int, optional
        Modes to project; all modes by default. Other modes are unchanged.
    rotate : bool
        Whether long modes that are kept in full are also expressed in their singular directions,
        so that every projected mode is in leading directions.
    norm : float, optional
        ``||Z||^2``, if it is known.
    whole : Whole, optional
        Statistics of a larger tensor, which is approximated in place of `Z`. `Z` then contains the
        leading rows of the larger tensor, as many as the rank of the input mode, and `norm` must be
        the squared norm of the larger tensor.

    Returns
    -------
    Approximation
    """
    norm = float(squared_norm(Z)) if norm is None else norm
    scale = 1.0 if 1e-230 < norm < 1e230 else safe_scale(Z)
    T, total = (Z, norm) if scale == 1.0 else (Z / scale, float(squared_norm(Z / scale)))
    wanted = range(Z.ndim) if modes is None else modes
    grams = {} if whole is None and is_numpy_array(T) else _known_grams(T, wanted, whole)
    found = [_Mode(None, np.empty(0), 0.0)] * Z.ndim
    for mode, R in enumerate(rank):
        if mode in wanted and (mode > 0 or whole is None):
            found[mode] = _mode(
                T, mode, R, inputs if mode == 0 else None, rotate, total, grams.get(mode)
            )
    if whole is not None:
        found[0] = _leading_rows(T, whole.spectrum, total)
    bases = [m.basis for m in found]
    if not is_numpy_array(Z):
        bases = all_to_device_of(bases, Z)
    if output_grams is not None:
        ranks = [Z.shape[i] if U is None else U.shape[1] for i, U in enumerate(bases)]
        pairs = zip(output_grams, ranks[1:], strict=True)
        bases[1:] = [
            None if R == G.shape[0] > FULL_SPECTRUM_LIMIT and not rotate else eigh_top(G, R)[1]
            for G, R in pairs
        ]
    return _project(
        Z,
        bases,
        leading=tuple(i for i, U in enumerate(bases) if U is not None),
        tails=tuple(m.tail * scale * scale for m in found),
        spectra=tuple(m.spectrum * scale * scale for m in found),
        norm=norm,
    )


def hooi(
    Z: Array,
    start: Approximation,
    *,
    residual: float = 0.0,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> Approximation:
    """Refine an approximation by higher-order orthogonal iteration (HOOI).

    HOOI is alternating least squares over the subspaces of the modes. Each step replaces one basis
    by the best one given the others, so the error never increases.

    Parameters
    ----------
    Z : array of shape (r, d1, ..., dp)
    start : Approximation
        Initial approximation, whose ranks are kept.
    residual : float
        Constant that the objective adds to ``||Z - V||^2``.
    max_iter : int
        Largest number of rounds.
    tol : float
        Stop when a round lowers the objective by at most this fraction of the objective.
    """
    best, bases = start, list(start.tucker.factors)
    for n_iter in range(1, max_iter + 1):
        for mode, U in enumerate(bases):
            if U is not None:
                reduced = multi_mode_product(Z, bases, skip=mode, transposed=True)
                bases[mode] = _leading(reduced, mode, U.shape[1])[1]
        new = _project(Z, bases, (), start.tails, start.spectra, n_iter)
        gain = best.error - new.error
        # Rounding errors can exceed a tiny gain, so the better of the two approximations is kept.
        best = new if gain >= 0 else replace(best, n_iter=n_iter)
        if gain <= tol * (residual + best.error):
            break
    return best


def _project(
    Z: Array,
    bases: Sequence[Array | None],
    leading: tuple[int, ...],
    tails: tuple[float, ...],
    spectra: tuple[np.ndarray, ...],
    n_iter: int = 0,
    norm: float | None = None,
) -> Approximation:
    """Return the nearest tensor to Z with the given subspaces (Theorem 1 of the HOLRR paper)."""
    core = multi_mode_product(Z, bases, transposed=True)
    error = (float(squared_norm(Z)) if norm is None else norm) - float(squared_norm(core))
    # The difference has rounding errors; its exact value is at least max(tails).
    error = max(error, *tails, 0.0) if not math.isnan(error) else math.inf
    return Approximation(Tucker(core, tuple(bases), leading), error, tails, spectra, n_iter)


def _known_grams(Z: Array, modes: Iterable[int], whole: Whole | None) -> dict[int, Array]:
    """Return the known Gram matrices; for an accelerator, those of short modes on the host."""
    known = {} if whole is None else dict(enumerate(whole.grams, start=1))
    if on_host(Z):
        return known
    needed = [mode for mode in modes if mode in known or whole is None]
    short = [mode for mode in needed if Z.shape[mode] <= HOST_LIMIT]
    grams = all_to_numpy([known[mode] if mode in known else gram(Z, mode) for mode in short])
    return {**known, **dict(zip(short, grams, strict=True))}


def _leading_rows(Z: Array, spectrum: np.ndarray, norm: float) -> _Mode:
    """Return the input mode of a tensor that contains the leading rows of a larger tensor."""
    R = Z.shape[0]
    eye = namespace_of(Z).eye(R, dtype=Z.dtype, device=device_of(Z))
    return _Mode(eye, spectrum, max(norm - float(spectrum[:R].sum()), 0.0))


def _mode(
    Z: Array,
    mode: int,
    R: RankSpec,
    inputs: HasRank | None,
    rotate: bool,
    norm: float,
    G: Array | None,
) -> _Mode:
    """Return the spectrum and leading basis of one mode of Z, with Gram matrix `G` if known."""
    size = Z.shape[mode]
    everything = not isinstance(R, float) and size <= R
    long = size > FULL_SPECTRUM_LIMIT and not rotate
    if everything and long and (mode > 0 or inputs is None):
        return _Mode(None, np.empty(0), 0.0)
    # No share of the energy takes more directions than an unfolding has columns.
    columns = size if G is not None else max(1, math.prod(Z.shape) // max(size, 1))
    lam, U = _leading(Z, mode, min(size, columns) if isinstance(R, float) else min(R, size), G)
    R = _rank_of_share(lam, R) if isinstance(R, float) else min(R, size)
    if inputs is not None and R > _numerical_rank(lam):
        R = max(1, min(R, inputs.input_rank()))
    known = lam.size == size
    tail = float(lam[R:].sum()) if known else norm - float(lam[:R].sum())
    return _Mode(U[:, :R], lam, max(tail, 0.0) if R < size else 0.0)


def _leading(T: Array, mode: int, k: int, G: Array | None = None) -> tuple[np.ndarray, Array]:
    """Return squared singular values (at least k) and k left singular vectors of an unfolding.

    They are computed from the Gram matrix of the shorter side. A subspace matters only in
    proportion to its energy, and a Gram matrix contains energies to full precision.
    """
    n = T.shape[mode]
    rest = math.prod(T.shape) // max(n, 1)
    if G is not None or n <= max(rest, FULL_SPECTRUM_LIMIT):
        G = gram(T, mode) if G is None else G
        lam, U = eigh_top(G, k) if is_numpy_array(G) else leading_pairs(G, k)
        return np.maximum(lam, 0.0), U
    A = unfold(T, mode)
    lam, V = leading_pairs(A.T @ A, min(k, rest))
    lam = np.maximum(lam, 0.0)
    if lam.size == rest:  # all nonzero values are known
        lam = np.concatenate([lam, np.zeros(n - rest)])
    return lam, _orthonormal(A @ V, k)


def _orthonormal(A: Array, k: int) -> Array:
    """Return `k` orthonormal columns that begin with the orthogonal columns of `A`."""
    xp = namespace_of(A)
    missing = k - A.shape[1]
    if missing > 0:
        eye = xp.eye(A.shape[0], missing, dtype=A.dtype, device=device_of(A))
        A = xp.concat([A, eye], axis=1)
    Q, R = xp.linalg.qr(A)
    d = xp.linalg.diagonal(R)  # Householder signs are arbitrary: keep those of A
    return Q * xp.where(d < 0, -xp.ones_like(d), xp.ones_like(d))


def _rank_of_share(lam: np.ndarray, share: float) -> int:
    """Return the smallest rank that contains the given share of the energy."""
    energy = np.cumsum(lam)
    if energy[-1] <= 0:
        return 1
    return int(np.searchsorted(energy, share * energy[-1] * (1 - 1e-12))) + 1


def _numerical_rank(lam: np.ndarray) -> int:
    return int((lam > lam.max(initial=0.0) * np.finfo(float).eps * lam.size).sum())


def safe_scale(Z: Array) -> float:
    """Return a divisor for Z, 1.0 unless the squares of Z would overflow or underflow."""
    xp = namespace_of(Z)
    largest = float(xp.max(xp.abs(Z)))
    return largest if largest > 0 and not 1e-120 < largest < 1e120 else 1.0


# ---------------------------------------------------------------- leading eigenpairs


def leading_pairs(A: Array, k: int) -> tuple[np.ndarray, Array]:
    """Return at least `k` leading eigenvalues (on the host) and `k` eigenvectors of `A`.

    The result is that of `eigh_top`. An accelerator multiplies matrices a hundred times faster
    than it decomposes them. So a few rounds of subspace iteration are tried first, and their result
    is kept if the residuals are rounding errors. A matrix whose spectrum has no gap is decomposed
    in full.

    Parameters
    ----------
    A : array of shape (n, n)
        Positive semidefinite.
    k : int
    """
    found = None
    if A.shape[0] >= _ITERATED_ROWS and 8 * (k + _OVERSAMPLING) <= A.shape[0] and not on_host(A):
        found = _iterated(A, k)
    return eigh_top(A, k) if found is None else found


def _iterated(A: Array, k: int) -> tuple[np.ndarray, Array] | None:
    """Return the eigenpairs by subspace iteration, or None if it does not converge."""
    xp, n = namespace_of(A), A.shape[0]
    scale = float(xp.max(xp.linalg.diagonal(A)))
    if not 0 < scale < np.inf:
        return None
    A = A / scale
    start = np.random.default_rng(0).standard_normal((n, k + _OVERSAMPLING))
    Q = asarray_like(start, A, dtype=A.dtype)
    for _ in range(_TRIES):
        for _ in range(_ROUNDS):
            Q, _ = xp.linalg.qr(A @ (A @ Q))
        lam, V = eigh(symmetrise(Q.T @ (A @ Q)))
        lam, U = lam[:k], Q @ V[:, :k]
        if float(squared_norm(A @ U - U * lam)) ** 0.5 <= 32 * _EPS * float(lam[0]):
            return scale * to_numpy(lam), fix_signs(U)
    return None


# ---------------------------------------------------------------- outputs that are never observed

# Number of rounds of completion from each start, before the best start is continued.
_TRIAL = 10
# Rounding error of the objective, relative to its size.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class _Completed:
    """One round of completion."""

    found: Approximation
    objective: float
    imputed: np.ndarray  # columns of V that replace the unknown columns of Z, (r, n_never)


def _approximate_known(
    problem: Whitened,
    rank: Sequence[RankSpec],
    max_iter: int,
    tol: float,
) -> Approximation:
    """Approximate the known columns of Z by a tensor V of low multilinear rank.

    The objective is the squared distance of V and Z over the known columns, plus a constant:
    outputs that are never observed do not enter it. The unknown columns of Z are replaced by those
    of V, iteratively (`majorise`).

    Parameters
    ----------
    problem : Whitened
        A problem with `never`.
    rank : sequence of p + 1 ints or floats
        As in `hosvd`. The energies of a mode come from inner products of its slices, over the
        outputs that are known in both slices.
    max_iter, tol
        As in `majorise`.
    """
    scale = safe_scale(problem.Z)
    Z, never = np.asarray(problem.Z) / scale, problem.never
    assert never is not None
    known, residual = ~never, problem.residual / scale / scale
    ranks = tuple(_share_of_known(Z, known, mode, R) for mode, R in enumerate(rank))
    tails = tuple(_known_tail(Z, known, mode, R) for mode, R in enumerate(ranks))
    best, n_iter, converged = _complete(Z, known, ranks, problem.factor, residual, max_iter, tol)
    spectra = hosvd(_filled(Z, known, best.imputed), ranks).spectra
    found = replace(best.found, spectra=spectra)
    V = found.tucker
    error = float(squared_norm((Z - V.to_dense())[:, known]))
    return replace(
        found,
        tucker=Tucker(scale * V.core, V.factors, V.leading),
        error=max(error, *tails) * scale * scale,
        tails=tuple(tail * scale * scale for tail in tails),
        spectra=tuple(lam * scale * scale for lam in found.spectra),
        n_iter=n_iter - 1,
        converged=converged,
    )


def _complete(
    Z: np.ndarray,
    known: np.ndarray,
    rank: tuple[int, ...],
    inputs: HasRank,
    residual: float,
    max_iter: int,
    tol: float,
) -> tuple[_Completed, int, bool]:
    """Complete Z from several starts, and continue the best one to convergence.

    The starts are the present values of the unknown columns of Z, means of slices, and the result
    of these means at output ranks that are larger by one.
    """
    slack = _ROUNDING * (residual + float(squared_norm(Z[:, known])))

    def rounds(
        rank: tuple[int, ...], guess: np.ndarray, before: _Completed | None, max_iter: int
    ) -> tuple[_Completed, int, bool]:
        def fit(imputed: np.ndarray, before: _Completed | None) -> _Completed:
            T = _filled(Z, known, imputed)
            if before is None:
                found = hosvd(T, rank, inputs=inputs)
            else:
                start = replace(before.found, error=math.inf, tails=(0.0,) * T.ndim)
                found = hooi(T, start, max_iter=1)
            V = found.tucker.to_dense()
            error = float(squared_norm((Z - V)[:, known]))
            return _Completed(found, residual + error, V[:, ~known])

        return majorise(fit, guess, before=before, max_iter=max_iter, tol=tol, slack=slack)

    trial, means = min(_TRIAL, max_iter), _slice_means(Z, known)[:, ~known]
    larger = (rank[0], *(min(R + 1, d) for R, d in zip(rank[1:], Z.shape[1:], strict=True)))
    wide = rounds(larger, means, None, trial)[0].imputed
    trials = [rounds(rank, guess, None, trial) for guess in (Z[:, ~known], means, wide)]
    found, n_iter, converged = min(trials, key=lambda one: one[0].objective)
    if converged or n_iter >= max_iter:
        return found, n_iter, converged
    found, more, converged = rounds(rank, found.imputed, found, max_iter - n_iter)
    return found, n_iter + more, converged


def _filled(Z: np.ndarray, known: np.ndarray, imputed: np.ndarray) -> np.ndarray:
    """Return `Z` with `imputed` in the unknown columns."""
    T = Z.copy()
    T[:, ~known] = imputed
    return T


def _slice_means(Z: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the mean of the known outputs in the slices of each output, averaged over modes."""
    sums, p = np.zeros((1,) * Z.ndim), known.ndim
    known_Z = np.where(known, Z, 0.0)
    for mode in range(p):
        others = tuple(k for k in range(p) if k != mode)
        count = np.maximum(known.sum(axis=others, keepdims=True), 1)
        sums = sums + known_Z.sum(axis=tuple(k + 1 for k in others), keepdims=True) / count
    return np.broadcast_to(sums / p, Z.shape)


def _known_tail(Z: np.ndarray, known: np.ndarray, mode: int, R: int) -> float:
    """Return the energy beyond rank R of the columns of an unfolding that are fully known.

    Every approximation contains these columns, so the energy is a lower bound on its error.
    """
    if mode == 0:
        A = Z[:, known]
    else:
        whole = known.all(axis=mode - 1)
        A = np.moveaxis(Z, mode, 0)[:, :, whole].reshape(Z.shape[mode], -1)
    return _mode(A, 0, R, None, False, float(squared_norm(A)), None).tail if A.size else 0.0


def _share_of_known(Z: np.ndarray, known: np.ndarray, mode: int, R: RankSpec) -> int:
    """Return the rank for a share of the energy of a mode."""
    if not isinstance(R, float):
        return min(R, Z.shape[mode])
    G = gram(np.where(known, Z, 0.0), mode)
    if mode > 0:  # inner products of two slices are sums over outputs known in both
        both = gram(known.astype(float), mode - 1)
        G = G * (known.size / known.shape[mode - 1] / np.maximum(both, 1.0))
    return _rank_of_share(np.maximum(eigh_top(symmetrise(G), len(G))[0], 0.0), R)


# ---------------------------------------------------------------- structures


@dataclass(frozen=True)
class FullRank:
    """All tensors: ridge regression."""

    needs_response_grams = False

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """Return an empty tuple, since no mode is reduced."""
        return ()

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Return the number of input directions of Z that `approximate` reads; None for all."""
        return None

    def approximate(
        self, problem: Whitened, n_inputs: int, *, rotate: bool = False
    ) -> Approximation:
        """Return `Z` itself."""
        return hosvd(problem.Z, problem.Z.shape, modes=())


@dataclass(frozen=True)
class MatrixRank:
    """Tensors whose unfolding, inputs by all outputs, has a low rank.

    Parameters
    ----------
    rank : int, float or None
        As in `check_matrix_rank`.
    max_directions : int, optional
        Upper bound on the number of input directions, besides the number of inputs.
    """

    rank: Any = None
    max_directions: int | None = None

    needs_response_grams = False

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """Check the rank of the input mode and return it."""
        most = n_inputs if self.max_directions is None else min(n_inputs, self.max_directions)
        return (check_matrix_rank(self.rank, most),)

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Return the number of input directions of Z that `approximate` reads; None for all."""
        (rank,) = self.check(n_inputs, output_shape)
        return None if isinstance(rank, float) else rank

    def approximate(
        self, problem: Whitened, n_inputs: int, *, rotate: bool = False
    ) -> Approximation:
        """Return the nearest tensor to Z of this rank (Eckart and Young).

        Parameters
        ----------
        problem : Whitened
        n_inputs : int
            Number of inputs, which bounds the rank.
        rotate : bool
            As in `hosvd`.
        """
        outputs = problem.Z.shape[1:]
        rank = (*self.check(n_inputs, outputs), *outputs)
        return hosvd(problem.Z, rank, modes=(0,), rotate=rotate, **problem.known())

    def update(self, problem: Whitened, before: Approximation | None) -> Approximation:
        """Return an approximation that is no farther from Z than a projection onto `before`."""
        return self.approximate(problem, problem.Z.shape[0])


@dataclass(frozen=True)
class MultilinearRank:
    """Tensors of low multilinear rank: Algorithm 1 of the HOLRR paper and its variants.

    Parameters
    ----------
    rank : int, float, tuple or None
        As in `check_rank`.
    subspaces : {"fitted", "response"}
        Source of the output subspaces: Z, or the outputs.
    refine : bool
        Whether the truncated HOSVD is refined by HOOI, for at most `max_iter` rounds.
    max_iter, tol
        As in `hooi`.
    max_directions : int, optional
        Upper bound on the number of input directions, besides the number of inputs.
    """

    rank: Any = None
    subspaces: str = "fitted"
    refine: bool = False
    max_iter: int = 100
    tol: float = 1e-6
    max_directions: int | None = None

    @property
    def needs_response_grams(self) -> bool:
        """Whether the Gram matrices of the raw outputs are needed."""
        return self.subspaces == "response"

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """Check the rank of each mode, input mode first, and return it."""
        first, *others = check_rank(self.rank, (n_inputs, *output_shape))
        if self.max_directions is not None and not isinstance(first, float):
            first = min(first, self.max_directions)
        return (first, *others)

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Return the number of input directions of Z that `approximate` reads; None for all."""
        rank = self.check(n_inputs, output_shape)[0]
        return None if self.refine or isinstance(rank, float) else rank

    def approximate(
        self, problem: Whitened, n_inputs: int, *, rotate: bool = False
    ) -> Approximation:
        """Return the truncated HOSVD of Z, refined by HOOI with `refine`.

        If outputs are never observed, Z is completed iteratively, and the result is always refined.

        Parameters
        ----------
        problem : Whitened
        n_inputs : int
            Number of inputs, which bounds the rank of the input mode.
        rotate : bool
            As in `hosvd`.
        """
        rank = self.check(n_inputs, problem.Z.shape[1:])
        if problem.never is not None:
            return _approximate_known(problem, rank, self.max_iter, self.tol)
        grams = problem.response_grams if self.subspaces == "response" else None
        found = hosvd(problem.Z, rank, output_grams=grams, rotate=rotate, **problem.known())
        if self.refine:
            rounds: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
            found = hooi(problem.Z, found, residual=problem.residual, **rounds)
        return found

    def update(self, problem: Whitened, before: Approximation | None) -> Approximation:
        """Return a truncated HOSVD, or one sweep of HOOI from the bases of `before`."""
        if before is None:
            return hosvd(problem.Z, self.rank, inputs=problem.factor)
        # The bounds of `before` belong to another Z.
        start = replace(before, error=math.inf, tails=(0.0,) * problem.Z.ndim)
        return hooi(problem.Z, start, max_iter=1)


class Structure(Protocol):
    """A constraint on the coefficients, as a record that approximates Z.

    `FullRank`, `MatrixRank`, `MultilinearRank` and `mixture.Mixture` are structures. CONTRIBUTING
    shows how to write another one.
    """

    @property
    def needs_response_grams(self) -> bool:
        """Whether the Gram matrices of the raw outputs are needed."""

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """Check the rank of each reduced mode, input mode first, and return it."""

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Return the number of input directions of Z that `approximate` reads; None for all."""

    def approximate(
        self, problem: Whitened, n_inputs: int, *, rotate: bool = False
    ) -> Approximation:
        """Return a tensor of this structure near Z; `rotate` as in `hosvd`."""


# ---------------------------------------------------------------- the parameter `rank`


def check_rank(rank: Any, shape: Sequence[int]) -> tuple[RankSpec, ...]:
    """Check the parameter `rank` of an estimator, and return one entry for each mode.

    Parameters
    ----------
    rank : None, int, float or sequence
        None for full rank; an int for every mode, capped at each mode's size; a float in (0, 1) for
        the smallest ranks that contain this share of each mode's energy; or a sequence with such an
        entry for each mode, input mode first.
    shape : sequence of int
        ``(n_features, d1, ..., dp)``.

    Examples
    --------
    >>> check_rank(3, (10, 2)), check_rank((None, 0.9), (10, 2)), check_rank(0.9, (10, 2))
    ((3, 2), (10, 0.9), (0.9, 0.9))
    """
    if rank is None:
        return tuple(shape)
    if isinstance(rank, Integral) and not isinstance(rank, bool):
        if rank < 1:
            raise ValueError(f"rank must be at least 1; got rank={rank}.")
        return tuple(min(int(rank), d) for d in shape)
    if isinstance(rank, Real) and not isinstance(rank, bool):
        return (_check_share(rank, "rank"),) * len(shape)
    if isinstance(rank, (str, bytes, bool)) or not isinstance(rank, (Sequence, np.ndarray)):
        raise TypeError(
            f"rank must be None, an int, a share in (0, 1), or a tuple with an entry for each mode;"
            f" got {rank!r}."
        )
    if len(rank) != len(shape):
        raise ValueError(
            f"rank must have {len(shape)} entries, one for the input mode and one for each of the "
            f"{len(shape) - 1} output modes of y; got rank={tuple(rank)}, which has {len(rank)}."
        )
    pairs = zip(rank, shape, strict=True)
    return tuple(_check_rank_entry(R, mode, d) for mode, (R, d) in enumerate(pairs))


def check_matrix_rank(rank: Any, size: int) -> RankSpec:
    """Check the rank of a matrix: None, an int (capped at `size`) or a share of the energy."""
    if isinstance(rank, (Sequence, np.ndarray)) and not isinstance(rank, (str, bytes)):
        raise TypeError(
            f"rank of LRR and KernelLRR must be one number; got {rank!r}. HOLRR and KernelHOLRR "
            f"have a rank for every mode."
        )
    if isinstance(rank, Integral) and not isinstance(rank, bool) and int(rank) > size:
        return size
    return _check_rank_entry(rank, 0, size)


def _check_rank_entry(R: Any, mode: int, size: int) -> RankSpec:
    name = f"rank[{mode}] ({'input mode' if mode == 0 else f'output mode {mode}'})"
    if R is None:
        return size
    if isinstance(R, Integral) and not isinstance(R, bool):
        if not 1 <= int(R) <= size:
            raise ValueError(f"{name} must be from 1 to the mode's size {size}; got {R}.")
        return int(R)
    if isinstance(R, Real) and not isinstance(R, bool):
        return _check_share(R, name)
    raise TypeError(f"{name} must be an int, a float in (0, 1) or None; got {R!r}.")


def _check_share(R: Any, name: str) -> float:
    if not 0 < float(R) < 1:
        raise ValueError(
            f"{name} as a float is a share of the mode's energy and must lie strictly between 0 "
            f"and 1; got {R}."
        )
    return float(R)
