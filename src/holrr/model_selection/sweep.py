"""The error surfaces of all folds and candidates, in parallel where asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from joblib import Parallel, cpu_count, delayed, effective_n_jobs

from ..core.threads import limit_threads
from .folds import Folds
from .surface import error_surface

__all__ = ["Sweep", "sweep"]


@dataclass(frozen=True, eq=False)
class Sweep:
    """The surfaces of all folds.

    Parameters
    ----------
    fold_mse : array of shape (n_folds, *candidates, n_alphas, R0, ..., Rp)
    null_mse : float
        Mean over the folds of the error of predicting the training mean (or zero, where there is
        no intercept).
    """

    fold_mse: np.ndarray
    null_mse: float


def sweep(
    folds: Folds,
    alphas: np.ndarray,
    caps: tuple[int, ...],
    *,
    subspaces: str = "fitted",
    n_jobs: int | None = None,
    tick: Callable[[], object] = lambda: None,
) -> Sweep:
    """Error surfaces of all folds and candidates.

    Parameters
    ----------
    folds : Folds
    alphas : array of shape (n_alphas,)
    caps : tuple of int
        The largest rank of each mode that is cut. The input rank of the result goes no further
        than what some fold supports.
    subspaces : {"fitted", "response"}
    n_jobs : int, optional
        Number of threads.
    tick : callable
        Called after each fold, candidate and penalty.
    """
    folds.prepare()
    tasks = list(np.ndindex(folds.n_folds, *folds.candidates))
    fold_mse = np.empty((folds.n_folds, *folds.candidates, len(alphas), *caps))

    def run(task: tuple[int, ...]) -> tuple[int, float]:
        problem, held_out = folds.problem(*task)
        error_surface(
            problem, held_out, alphas, caps, subspaces=subspaces, out=fold_mse[task], tick=tick
        )
        return problem.s.shape[0], held_out.yy / held_out.size

    n_threads = min(effective_n_jobs(n_jobs), len(tasks))
    with limit_threads(cpu_count() // n_threads):  # for each of the folds that run at a time
        done = Parallel(n_jobs=n_threads, require="sharedmem")(delayed(run)(t) for t in tasks)
    if caps:
        supported = max(r for r, _ in done)
        axis = fold_mse.ndim - len(caps)
        fold_mse = fold_mse[(slice(None),) * axis + (slice(supported),)]
    return Sweep(fold_mse, float(np.mean([null for _, null in done])))
