"""Structures of coefficients, and approximations of the whitened tensor Z that have them.

A structure (full rank, low matrix rank, low multilinear rank) is a record with the rank that the
user asked for and one operation: it approximates the whitened tensor `Z` of a problem by a tensor
`V` of that rank. Linear models, kernels, searches and fits with missing outputs all use the same
records.

`hosvd` projects every mode onto its leading singular vectors: optimal for one mode (Eckart and
Young), within a factor of p + 1 of the optimum for p + 1 modes. `hooi` goes on from there by
alternating least squares and never gets worse. Both come with the energies that certify how far
from the optimum they can be.

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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
    chunk_mode,
    chunks,
    gram,
    multi_mode_product,
    sum_of_squares,
    unfold,
)

__all__ = ["Approximation", "FullRank", "MatrixRank", "MultilinearRank", "RankSpec", "Structure"]
__all__ += ["Whole", "bases_from_grams", "check_matrix_rank", "check_rank", "hooi", "hosvd"]
__all__ += ["leading_pairs", "safe_scale"]

# The rank of one mode: a number of directions, or a share of the mode's energy.
RankSpec = int | float

# From this many rows on, subspace iteration on an accelerator beats a full decomposition.
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
        Energy of each unfolding of Z beyond the rank of its mode. No tensor of these ranks comes
        nearer to Z than ``max(tails)``, and the truncated HOSVD is no farther than ``sum(tails)``.
    spectra : tuple of p + 1 arrays
        Leading squared singular values of each unfolding of Z, as far as they were needed: all of
        them for small modes, none for modes that were not looked at.
    n_iter : int
        Rounds of alternating least squares, or of completion, after the first fit.
    share : float
        Degrees of freedom over those of a fit of this rank; a mixture has others.
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
    """One mode of Z, and an orthonormal basis of what is kept of it (None: all of it, as it is)."""

    basis: Array | None
    spectrum: np.ndarray
    tail: float


@dataclass(frozen=True, eq=False)
class Whole:
    """What is known of a tensor of which only the leading rows of the input mode are formed."""

    spectrum: np.ndarray  # squared singular values of the input mode: at least those of the rows
    grams: tuple[Array, ...]  # Gram matrices of the output modes, (d_i, d_i)


@np.errstate(over="ignore")  # where squares overflow, the certificate is infinite, no more
def hosvd(
    Z: Array,
    rank: Sequence[RankSpec],
    *,
    input_rank: Callable[[], int] | None = None,
    output_bases: Sequence[Callable[[int, bool], Array | None]] | None = None,
    modes: Sequence[int] | None = None,
    rotate: bool = False,
    norm: float | None = None,
    whole: Whole | None = None,
) -> Approximation:
    """Truncated higher-order singular value decomposition.

    Parameters
    ----------
    Z : array of shape (r, d1, ..., dp)
    rank : sequence of p + 1 ints or floats
        Number of directions to keep of each mode, or the share of its energy.
    input_rank : callable, optional
        Gives the number of input directions that the data support. It is asked only where the
        input mode of Z does not itself have the wanted rank.
    output_bases : sequence of p callables, optional
        Each gives the basis, (d_i, R_i), onto which output mode i is projected, for a rank R_i
        and `rotate`.
        By default that of the leading singular vectors of Z.
    modes : sequence of int, optional
        The modes to project; all by default. The others are left as they are.
    rotate : bool
        Whether long modes that are kept in full are expressed in their singular directions, too,
        so that every projected mode is in leading directions.
    norm : float, optional
        ``||Z||^2``, where it is known.
    whole : Whole, optional
        Where `Z` has as many rows as the rank of the input mode, the leading ones of a larger
        tensor, which is approximated: what is known of it. Its `norm` must be known, too.

    Returns
    -------
    Approximation
    """
    norm = sum_of_squares(Z) if norm is None else norm
    scale = 1.0 if 1e-230 < norm < 1e230 else safe_scale(Z)
    T, total = (Z, norm) if scale == 1.0 else (Z / scale, sum_of_squares(Z / scale))
    wanted = range(Z.ndim) if modes is None else modes
    grams = {} if whole is None and is_numpy_array(T) else _known_grams(T, wanted, whole)
    found = [_Mode(None, np.empty(0), 0.0)] * Z.ndim
    for mode, R in enumerate(rank):
        if mode in wanted and (mode > 0 or whole is None):
            supported = input_rank if mode == 0 else None
            found[mode] = _mode(T, mode, R, supported, rotate, total, grams.get(mode))
    if whole is not None:
        found[0] = _leading_rows(T, whole.spectrum, total)
    bases = [m.basis for m in found]
    if not is_numpy_array(Z):
        bases = all_to_device_of(bases, Z)
    if output_bases is not None:
        ranks = [Z.shape[i] if U is None else U.shape[1] for i, U in enumerate(bases)]
        bases[1:] = [basis(R, rotate) for basis, R in zip(output_bases, ranks[1:], strict=True)]
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
    """Higher-order orthogonal iteration: alternating least squares over the modes' subspaces.

    Each step replaces one basis by the best one given the others, so the error never increases.

    Parameters
    ----------
    Z : array of shape (r, d1, ..., dp)
    start : Approximation
        Where to start from; its ranks are kept.
    residual : float
        What the objective has beside ``||Z - V||^2``.
    max_iter : int
        Largest number of rounds.
    tol : float
        Stop when a round lowers the objective by no more than this share of it.
    """
    best, bases = start, list(start.tucker.factors)
    for n_iter in range(1, max_iter + 1):
        for mode, U in enumerate(bases):
            if U is not None:
                reduced = multi_mode_product(Z, bases, skip=mode, transposed=True)
                bases[mode] = _leading(reduced, mode, U.shape[1])[1]
        new = _project(Z, bases, (), start.tails, start.spectra, n_iter)
        gain = best.error - new.error
        # Rounding can undo a vanishing gain: the better of the two is kept.
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
    """The nearest tensor to Z with the given subspaces (Theorem 1 of the HOLRR paper)."""
    core = multi_mode_product(Z, bases, transposed=True)
    error = (sum_of_squares(Z) if norm is None else norm) - float(squared_norm(core))
    # The difference is rounded; max(tails) is a bound that it cannot truly fall below.
    error = max(error, *tails, 0.0) if not math.isnan(error) else math.inf
    return Approximation(Tucker(core, tuple(bases), leading), error, tails, spectra, n_iter)


def _known_grams(Z: Array, modes: Iterable[int], whole: Whole | None) -> dict[int, Array]:
    """Gram matrices that are known, or those of short modes on an accelerator, in one transfer."""
    known = {} if whole is None else dict(enumerate(whole.grams, start=1))
    if on_host(Z):
        return known
    needed = [mode for mode in modes if mode in known or whole is None]
    short = [mode for mode in needed if Z.shape[mode] <= HOST_LIMIT]
    grams = all_to_numpy([known[mode] if mode in known else gram(Z, mode) for mode in short])
    return {**known, **dict(zip(short, grams, strict=True))}


def _leading_rows(Z: Array, spectrum: np.ndarray, norm: float) -> _Mode:
    """The input mode of a tensor whose rows are the leading ones of a larger one."""
    R = Z.shape[0]
    eye = namespace_of(Z).eye(R, dtype=Z.dtype, device=device_of(Z))
    return _Mode(eye, spectrum, max(norm - float(spectrum[:R].sum()), 0.0))


def _mode(
    Z: Array,
    mode: int,
    R: RankSpec,
    input_rank: Callable[[], int] | None,
    rotate: bool,
    norm: float,
    G: Array | None,
) -> _Mode:
    """Spectrum and leading basis of one mode of Z, of which norm and Gram matrix may be known."""
    size = Z.shape[mode]
    everything = not isinstance(R, float) and size <= R
    long = size > FULL_SPECTRUM_LIMIT and not rotate
    if everything and long and (mode > 0 or input_rank is None):
        return _Mode(None, np.empty(0), 0.0)
    # No share of the energy takes more directions than an unfolding has columns.
    columns = size if G is not None else max(1, math.prod(Z.shape) // max(size, 1))
    lam, U = _leading(Z, mode, min(size, columns) if isinstance(R, float) else min(R, size), G)
    R = _rank_of_share(lam, R) if isinstance(R, float) else min(R, size)
    if input_rank is not None and R > _numerical_rank(lam):
        R = max(1, min(R, input_rank()))
    known = lam.size == size
    tail = float(lam[R:].sum()) if known else norm - float(lam[:R].sum())
    return _Mode(U[:, :R], lam, max(tail, 0.0) if R < size else 0.0)


def _leading(T: Array, mode: int, k: int, G: Array | None = None) -> tuple[np.ndarray, Array]:
    """Squared singular values (at least k) and k left singular vectors of an unfolding.

    Through the Gram matrix of the shorter side: a subspace only matters to the extent of its
    energy, and energies are what a Gram matrix holds to full precision.
    """
    n = T.shape[mode]
    rest = math.prod(T.shape) // max(n, 1)
    if G is not None or n <= max(rest, FULL_SPECTRUM_LIMIT):
        G = gram(T, mode) if G is None else G
        lam, U = eigh_top(G, k) if is_numpy_array(G) else leading_pairs(G, k)
        return np.maximum(lam, 0.0), U
    rows = lambda: (unfold(chunk, mode) for _, chunk in chunks(T, mode))  # noqa: E731
    lam, V = leading_pairs(sum(A.T @ A for A in rows()), min(k, rest))
    lam = np.maximum(lam, 0.0)
    if lam.size == rest:  # all of them, and the others are zero
        lam = np.concatenate([lam, np.zeros(n - rest)])
    return lam, _orthonormal(namespace_of(T).concat([A @ V for A in rows()]), k)


def _orthonormal(A: Array, k: int) -> Array:
    """`k` orthonormal columns that begin with those of `A`, which are orthogonal already."""
    xp = namespace_of(A)
    missing = k - A.shape[1]
    if missing > 0:
        eye = xp.eye(A.shape[0], missing, dtype=A.dtype, device=device_of(A))
        A = xp.concat([A, eye], axis=1)
    Q, R = xp.linalg.qr(A)
    d = xp.linalg.diagonal(R)  # Householder signs are arbitrary: keep those of A
    return Q * xp.where(d < 0, -xp.ones_like(d), xp.ones_like(d))


def _rank_of_share(lam: np.ndarray, share: float) -> int:
    """Smallest rank that holds the given share of the energy."""
    energy = np.cumsum(lam)
    if energy[-1] <= 0:
        return 1
    return int(np.searchsorted(energy, share * energy[-1] * (1 - 1e-12))) + 1


def _numerical_rank(lam: np.ndarray) -> int:
    return int((lam > lam.max(initial=0.0) * np.finfo(float).eps * lam.size).sum())


def safe_scale(Z: Array) -> float:
    """A number to divide Z by before squaring; one unless squares would overflow or vanish."""
    xp = namespace_of(Z)
    largest = max(float(xp.max(xp.abs(chunk))) for _, chunk in chunks(Z, chunk_mode(Z)))
    return largest if largest > 0 and not 1e-120 < largest < 1e120 else 1.0


def bases_from_grams(grams: Sequence[Array]) -> list[Callable[[int, bool], Array | None]]:
    """For each Gram matrix the function from a rank to its leading eigenvectors."""

    def basis(G: Array, R: int, rotate: bool) -> Array | None:
        everything = R == G.shape[0] > FULL_SPECTRUM_LIMIT and not rotate
        return None if everything else eigh_top(G, R)[1]

    return [partial(basis, G) for G in grams]


# ---------------------------------------------------------------- leading eigenpairs


def leading_pairs(A: Array, k: int) -> tuple[np.ndarray, Array]:
    """At least `k` leading eigenvalues (on the host) and `k` eigenvectors, as `eigh_top` returns.

    An accelerator multiplies matrices a hundred times faster than it decomposes them. So a few
    rounds of subspace iteration are tried first and kept where the residuals are those of rounding;
    a spectrum without a gap is decomposed in full.

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
    """The pairs by subspace iteration; None where it does not converge."""
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

# Rounds of completion from each start, before the best of them is taken to its end.
_TRIAL = 10
# Rounding of the objective, as a share of it.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class _Completed:
    """One round of completion."""

    found: Approximation
    objective: float
    imputed: np.ndarray  # columns of V in place of those of Z that are not known, (r, n_never)


def _approximate_known(
    problem: Whitened,
    rank: Sequence[RankSpec],
    max_iter: int,
    tol: float,
) -> Approximation:
    """A tensor V of low multilinear rank near the known columns of Z.

    An output that is never observed has no part in the objective, which is the squared distance of
    V and Z over the known columns, plus a constant. The other columns of Z are completed by those
    of V in rounds (`majorise`).

    Parameters
    ----------
    problem : Whitened
        With `never`.
    rank : sequence of p + 1 ints or floats
        A share of the energy of a mode is found from the inner products of its slices, over the
        outputs that are known in both.
    max_iter, tol
        As in `majorise`.
    """
    scale = safe_scale(problem.Z)
    Z, never = np.asarray(problem.Z) / scale, problem.never
    assert never is not None
    known, residual = ~never, problem.residual / scale / scale
    ranks = tuple(_share_of_known(Z, known, mode, R) for mode, R in enumerate(rank))
    tails = tuple(_known_tail(Z, known, mode, R) for mode, R in enumerate(ranks))
    best, n_iter, converged = _complete(
        Z, known, ranks, problem.input_rank, residual, max_iter, tol
    )
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
    input_rank: Callable[[], int],
    residual: float,
    max_iter: int,
    tol: float,
) -> tuple[_Completed, int, bool]:
    """Rounds of completion from several starts, of which the best is taken to its end.

    The starts are what Z holds in the columns that are not known, means of slices, and what these
    lead to at output ranks that are larger by one.
    """
    slack = _ROUNDING * (residual + float(squared_norm(Z[:, known])))

    def rounds(
        rank: tuple[int, ...], guess: np.ndarray, before: _Completed | None, max_iter: int
    ) -> tuple[_Completed, int, bool]:
        def fit(imputed: np.ndarray, before: _Completed | None) -> _Completed:
            T = _filled(Z, known, imputed)
            if before is None:
                found = hosvd(T, rank, input_rank=input_rank)
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
    """`Z` with other values in the columns that are not known."""
    T = Z.copy()
    T[:, ~known] = imputed
    return T


def _slice_means(Z: np.ndarray, known: np.ndarray) -> np.ndarray:
    """For each output the average over the modes of the mean of the known outputs in its slice."""
    sums, p = np.zeros((1,) * Z.ndim), known.ndim
    known_Z = np.where(known, Z, 0.0)
    for mode in range(p):
        others = tuple(k for k in range(p) if k != mode)
        count = np.maximum(known.sum(axis=others, keepdims=True), 1)
        sums = sums + known_Z.sum(axis=tuple(k + 1 for k in others), keepdims=True) / count
    return np.broadcast_to(sums / p, Z.shape)


def _known_tail(Z: np.ndarray, known: np.ndarray, mode: int, R: int) -> float:
    """Energy beyond rank R of the columns of an unfolding that are known throughout.

    They are part of every approximation, so that none comes nearer.
    """
    if mode == 0:
        A = Z[:, known]
    else:
        whole = known.all(axis=mode - 1)
        A = np.moveaxis(Z, mode, 0)[:, :, whole].reshape(Z.shape[mode], -1)
    return _mode(A, 0, R, None, False, float(squared_norm(A)), None).tail if A.size else 0.0


def _share_of_known(Z: np.ndarray, known: np.ndarray, mode: int, R: RankSpec) -> int:
    """The rank that a share of the energy of a mode means."""
    if not isinstance(R, float):
        return min(R, Z.shape[mode])
    G = gram(np.where(known, Z, 0.0), mode)
    if mode > 0:  # inner products of two slices are sums over what both have
        both = gram(known.astype(float), mode - 1)
        G = G * (known.size / known.shape[mode - 1] / np.maximum(both, 1.0))
    return _rank_of_share(np.maximum(eigh_top(symmetrise(G), len(G))[0], 0.0), R)


# ---------------------------------------------------------------- structures


@dataclass(frozen=True)
class FullRank:
    """All tensors: ridge regression."""

    needs_response_grams = False

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """The rank of each mode that is reduced: none."""
        return ()

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Number of input directions of Z that `approximate` reads; None for all."""
        return None

    def approximate(
        self, problem: Whitened, n_inputs: int, *, rotate: bool = False
    ) -> Approximation:
        """`Z` itself."""
        return hosvd(problem.Z, problem.Z.shape, modes=())


@dataclass(frozen=True)
class MatrixRank:
    """Tensors whose unfolding, inputs by all outputs, has a low rank.

    Parameters
    ----------
    rank : int, float or None
        As in `check_matrix_rank`.
    max_directions : int, optional
        Largest number of input directions, where it is below the number of inputs.
    """

    rank: Any = None
    max_directions: int | None = None

    needs_response_grams = False

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """The rank of the input mode, checked."""
        most = n_inputs if self.max_directions is None else min(n_inputs, self.max_directions)
        return (check_matrix_rank(self.rank, most),)

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Number of input directions of Z that `approximate` reads; None for all."""
        (rank,) = self.check(n_inputs, output_shape)
        return None if isinstance(rank, float) else rank

    def approximate(
        self, problem: Whitened, n_inputs: int, *, rotate: bool = False
    ) -> Approximation:
        """The nearest tensor to Z of this rank (Eckart and Young).

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
        """An approximation that is no farther from Z than the bases of `before` allow."""
        return self.approximate(problem, problem.Z.shape[0])


@dataclass(frozen=True)
class MultilinearRank:
    """Tensors of low multilinear rank: Algorithm 1 of the HOLRR paper and its variants.

    Parameters
    ----------
    rank : int, float, tuple or None
        As in `check_rank`.
    subspaces : {"fitted", "response"}
        Where the output subspaces come from: Z, or the outputs themselves.
    refine : bool
        Whether the truncated HOSVD is refined by HOOI, for at most `max_iter` rounds.
    max_iter, tol
        As in `hooi`.
    max_directions : int, optional
        Largest number of input directions, where it is below the number of inputs.
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
        """The rank of each mode, checked, input mode first."""
        first, *others = check_rank(self.rank, (n_inputs, *output_shape))
        if self.max_directions is not None and not isinstance(first, float):
            first = min(first, self.max_directions)
        return (first, *others)

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Number of input directions of Z that `approximate` reads; None for all."""
        rank = self.check(n_inputs, output_shape)[0]
        return None if self.refine or isinstance(rank, float) else rank

    def approximate(
        self, problem: Whitened, n_inputs: int, *, rotate: bool = False
    ) -> Approximation:
        """The truncated HOSVD of Z, refined where that is asked for.

        Where outputs are never observed, Z is completed in rounds, and the result is always
        refined.

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
        bases = None
        if self.subspaces == "response":
            assert problem.response_grams is not None
            bases = bases_from_grams(problem.response_grams)
        options = {"output_bases": bases, "rotate": rotate, **problem.known()}
        found = hosvd(problem.Z, rank, **options)
        if self.refine:
            rounds: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol}
            found = hooi(problem.Z, found, residual=problem.residual, **rounds)
        return found

    def update(self, problem: Whitened, before: Approximation | None) -> Approximation:
        """A truncated HOSVD first, then one sweep of HOOI from the bases of `before`."""
        if before is None:
            return hosvd(problem.Z, self.rank, input_rank=problem.input_rank)
        # The certificate of `before` belongs to another Z.
        start = replace(before, error=math.inf, tails=(0.0,) * problem.Z.ndim)
        return hooi(problem.Z, start, max_iter=1)


class Structure(Protocol):
    """The constraint on coefficients, as a record that can approximate Z.

    `FullRank`, `MatrixRank` and `MultilinearRank` are structures, and `mixture.Mixture` is one.
    CONTRIBUTING shows another.
    """

    @property
    def needs_response_grams(self) -> bool:
        """Whether the Gram matrices of the raw outputs are needed."""

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """The rank of each mode that is reduced, checked; input mode first."""

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Number of input directions of Z that `approximate` reads; None for all."""

    def approximate(
        self, problem: Whitened, n_inputs: int, *, rotate: bool = False
    ) -> Approximation:
        """A tensor of this structure near Z; with `rotate` in leading directions of all modes."""


# ---------------------------------------------------------------- ranks as a user writes them


def check_rank(rank: Any, shape: Sequence[int]) -> tuple[RankSpec, ...]:
    """A rank as the user wrote it, as one entry a mode of a tensor of the given shape.

    Parameters
    ----------
    rank : None, int, float or sequence
        None for full rank; an int for every mode, capped at each mode's size; a float in (0, 1) for
        the smallest ranks that hold that share of each mode's energy; or a sequence with such an
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
            f"{len(shape) - 1} output modes of y; got rank={tuple(rank)} with {len(rank)}."
        )
    pairs = zip(rank, shape, strict=True)
    return tuple(_check_rank_entry(R, mode, d) for mode, (R, d) in enumerate(pairs))


def check_matrix_rank(rank: Any, size: int) -> RankSpec:
    """The rank of a matrix as the user wrote it: None, an int (capped at `size`) or a share."""
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
