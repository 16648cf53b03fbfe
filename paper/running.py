"""Run an experiment: a frozen config in, a tidy table out.

An experiment is a list of units, each of which gives some rows of the table and depends on
nothing but the config and its own name. So units can run in any order, on any number of
processes, today or after an interruption, and the table is the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from .progress import Progress, silent
from .store import Store
from .tables import Table

__all__ = ["Experiment", "Unit", "run", "seed_for"]

Unit = tuple[Any, ...]


@dataclass(frozen=True)
class Experiment:
    """What there is to compute, and how.

    Parameters
    ----------
    name : str
        Name on the command line and of the files.
    config : type
        Frozen dataclass of the settings, with the class methods ``quick`` and ``full``.
    units : callable
        From a config to the list of its units, tuples of strings and numbers.
    run_unit : callable
        From a config and a unit to rows of the table.
    serial : bool
        Whether the units must not run side by side, because they measure time.
    """

    name: str
    config: type
    units: Callable[[Any], list[Unit]]
    run_unit: Callable[[Any, Unit], Table]
    serial: bool = False


def seed_for(seed: int, *where: str | int) -> int:
    """Seed of one place in an experiment, independent of every other place's.

    Examples
    --------
    >>> seed_for(0, "meteo", 3) == seed_for(0, "meteo", 3) != seed_for(0, "meteo", 4)
    True
    """
    key = tuple(crc32(w.encode()) if isinstance(w, str) else w for w in where)
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=key)
    return int(sequence.generate_state(1)[0])


def run(
    experiment: Experiment,
    config: Any,
    *,
    n_jobs: int = 1,
    store: Store | None = None,
    progress: Progress = silent,
) -> Table:
    """The table of an experiment.

    Parameters
    ----------
    experiment : Experiment
    config : object
        Settings, an instance of ``experiment.config``.
    n_jobs : int, default=1
        Number of processes, as joblib counts them; the table does not depend on it.
    store : Store, optional
        Where finished units are kept. Those already there are not computed again.
    progress : callable, optional
        Context manager from a title and a number of units to a function that counts one unit.

    Returns
    -------
    list of dict
        Rows in the order of the units.
    """
    units = experiment.units(config)
    done: dict[Unit, Table] = store.load() if store is not None else {}
    waiting = [unit for unit in units if unit not in done]
    with progress(experiment.name, len(units)) as advance:
        advance(len(units) - len(waiting))
        for unit, rows in _computed(experiment, config, waiting, n_jobs):
            if store is not None:
                store.append(unit, rows)
            done[unit] = rows
            advance(1)
    return [row for unit in units for row in done[unit]]


def _computed(
    experiment: Experiment, config: Any, units: list[Unit], n_jobs: int
) -> Iterator[tuple[Unit, Table]]:
    """Units with their rows, each as soon as it is there."""
    if experiment.serial or n_jobs == 1 or len(units) < 2:
        yield from (_run_unit(experiment, config, unit) for unit in units)
        return
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    yield from parallel(delayed(_run_unit)(experiment, config, unit) for unit in units)


def _run_unit(experiment: Experiment, config: Any, unit: Unit) -> tuple[Unit, Table]:
    # One thread: sums in another order would differ in their last digits with the number of
    # processes, and two methods are timed on equal terms.
    with threadpool_limits(1), warnings.catch_warnings():
        # Grids end somewhere, and iterations too: part of the settings here, and no news.
        warnings.filterwarnings("ignore", message="The best penalty")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        return unit, experiment.run_unit(config, unit)
