"""All folds of all candidates, in parallel where asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs

from ..core.namespace import Array, asarray_like, device_of, is_numpy_array, namespace_of, to_numpy
from ..core.spectral import Spectral
from ..core.threads import limit_threads
from .folds import Folds
from .held_out import HeldOut
from .surface import error_surface, prepare_paths, rank_path

__all__ = ["Errors", "RankErrors", "Sweep", "over_folds", "sweep"]

# What fills in the held-out errors of one fold: ``errors(problem, held_out, out, tick)``.
Errors = Callable[[Spectral, HeldOut, Array, Callable[[], object]], object]


@dataclass(frozen=True, eq=False)
class Sweep:
    """The held-out errors of all folds and candidates.

    The null model predicts the training mean, or zero where there is no intercept.
    """

    fold_mse: Array  # (n_folds, *candidates, *shape); of data on an accelerator, there
    null_mse: float  # mean over the folds
    n_supported: int  # the most input directions that a training fold supports
    ridge_mse: float = math.nan  # the least of ridge regression, where it was looked for

    def joined(self, other: Sweep, axis: int, *, before: bool) -> Sweep:
        """With the errors of more candidates along an axis (that of the mean), before or after."""
        pair = (other, self) if before else (self, other)
        xp = namespace_of(self.fold_mse)
        both = xp.concat([part.fold_mse for part in pair], axis=1 + axis)
        return replace(self, fold_mse=both, ridge_mse=min(self.ridge_mse, other.ridge_mse))

    def only(self, mask: np.ndarray) -> Sweep:
        """The same with NaN for the ranks, of the shape of the mask, that are no candidates."""
        errors = self.fold_mse
        if is_numpy_array(errors):
            errors[..., ~mask] = np.nan
        else:
            xp, nan = namespace_of(errors), namespace_of(errors).full_like(errors, math.nan)
            errors = xp.where(asarray_like(mask, errors), errors, nan)
        return replace(self, fold_mse=errors)

    def profile(self, axis: int) -> tuple[np.ndarray, np.ndarray]:
        """The least error along an axis of `mean_mse`, and those of the folds at the least."""
        xp = namespace_of(self.fold_mse)
        mean = xp.moveaxis(self._mean, axis, 0)
        mean = xp.reshape(mean, (mean.shape[0], -1))
        least = _least_of_rows(mean)
        best = int(np.argmin(least))
        folds = xp.moveaxis(self.fold_mse, 1 + axis, 1)[:, best, ...]
        place = int(np.nanargmin(to_numpy(mean[best, :])))
        return least, to_numpy(xp.reshape(folds, (folds.shape[0], -1))[:, place])

    @cached_property
    def _mean(self) -> Array:
        return namespace_of(self.fold_mse).mean(self.fold_mse, axis=0)

    @cached_property
    def mean_mse(self) -> np.ndarray:
        """Mean over the folds."""
        return to_numpy(self._mean)

    @cached_property
    def std_mse(self) -> np.ndarray:
        """Standard deviation over the folds, with no copy of the size of all folds."""
        xp, std = namespace_of(self._mean), namespace_of(self._mean).zeros_like(self._mean)
        for index in np.ndindex(*std.shape[:1]):
            part, mean = self.fold_mse[(slice(None), *index, ...)], self._mean[(*index, ...)]
            peak = float(np.fmax.reduce(self.mean_mse[index], axis=None, initial=0.0))
            # No square overflows or vanishes.
            unit = peak if 0 < peak < math.inf and not 1e-120 < peak < 1e120 else 1.0
            out = std[(*index, ...)]
            for fold in range(part.shape[0]):
                with np.errstate(invalid="ignore"):  # infinite less infinite
                    away = (
                        part[fold, ...] / unit - mean / unit
                        if unit != 1.0
                        else part[fold, ...] - mean
                    )
                away *= away
                out += away
            out /= part.shape[0]
            out[...] = unit * xp.sqrt(out)
        return to_numpy(std)


def _least_of_rows(A: Array) -> np.ndarray:
    """The smallest entry of each row of a matrix, NaN aside."""
    if is_numpy_array(A):
        return np.fmin.reduce(A, axis=1)
    xp = namespace_of(A)
    return to_numpy(xp.min(xp.where(xp.isnan(A), xp.full_like(A, math.inf), A), axis=1))


def sweep(
    folds: Folds,
    errors: Errors,
    shape: tuple[int, ...],
    *,
    ridge_alphas: Sequence[float] = (),
    n_jobs: int | None = None,
    tick: Callable[[], object] = lambda: None,
    home: Array | None = None,
) -> Sweep:
    """Held-out errors of all folds and candidates.

    Parameters
    ----------
    folds : Folds
    errors : callable
        Fills in the errors, of the given shape, of one fold, and calls `tick` after each step.
    shape : tuple of int
    ridge_alphas : sequence of floats
        Penalties of ridge regression, whose error is found beside the others.
    n_jobs : int, optional
        Number of folds that are worked on at a time.
    home : array, optional
        What the errors shall lie beside; in arrays of NumPy by default.
    """
    shape = folds.n_folds, *folds.candidates, *shape
    fold_mse: Array = np.empty(shape)
    if home is not None:
        xp = namespace_of(home)
        fold_mse = xp.empty(shape, dtype=xp.float64, device=device_of(home))

    def run(fold: int, candidate: tuple[int, ...]) -> tuple[float, int, np.ndarray]:
        problem, held_out = folds.kept_problem(fold, *candidate)
        errors(problem, held_out, fold_mse[(fold, *candidate, ...)], tick)
        ridge = np.empty(0)
        if len(ridge_alphas):
            ridge = error_surface(problem, held_out, ridge_alphas, ())
        return held_out.yy / held_out.size, problem.s.shape[0], ridge

    done: list[tuple[float, int, np.ndarray]] = []
    for candidate in np.ndindex(*folds.candidates):
        folds.prepare(*candidate)
        if home is not None and folds.keeps_all and isinstance(errors, RankErrors):
            errors.prepare(folds, candidate)
        done += over_folds(folds, partial(run, candidate=candidate), n_jobs)
    nulls, supported, ridge = zip(*done, strict=True)
    ridge_mse = math.nan
    if len(ridge_alphas):
        by_fold = np.reshape(ridge, (-1, folds.n_folds, len(ridge_alphas)))
        ridge_mse = float(by_fold.mean(axis=1).min())
    return Sweep(fold_mse, float(np.mean(nulls)), max(supported), ridge_mse)


def over_folds(folds: Folds, run: Callable[[int], Any], n_jobs: int | None) -> list[Any]:
    """What `run` returns for each fold; some of them at a time, which share the threads."""
    n = min(effective_n_jobs(n_jobs), folds.n_folds)
    with limit_threads(cpu_count() // n):
        return Parallel(n_jobs=n, require="sharedmem")(
            delayed(run)(fold) for fold in range(folds.n_folds)
        )


@dataclass(frozen=True, eq=False)
class RankErrors:
    """The errors of all ranks up to the caps, for all penalties (see `error_surface`)."""

    alphas: np.ndarray
    caps: tuple[int, ...]
    subspaces: str = "fitted"

    def __call__(
        self, problem: Spectral, held_out: HeldOut, out: Array, tick: Callable[[], object]
    ) -> None:
        options = {"subspaces": self.subspaces, "out": out, "tick": tick}
        error_surface(problem, held_out, self.alphas, self.caps, **options)

    def prepare(self, folds: Folds, candidate: tuple[int, ...]) -> None:
        """Find the bases of all folds together, which takes all cores and one wait."""
        pairs = [folds.kept_problem(fold, *candidate) for fold in range(folds.n_folds)]
        paths = [rank_path(*pair, self.caps, self.subspaces) for pair in pairs]
        prepare_paths(paths, list(map(float, self.alphas)))
