"""Run an experiment, which computes a tidy table from a frozen config.

An experiment is a list of units. Each unit computes some rows of the table, and depends only on the
config and on its own name. The table is therefore the same for any order of the units, any number
of processes, and after interruptions.
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
    """Definition of an experiment.

    Parameters
    ----------
    name : str
        Name on the command line and in file names.
    config : type
        Frozen dataclass of the settings, with the class methods ``quick`` and ``full``.
    units : callable
        Function from a config to the list of its units, tuples of strings and numbers.
    run_unit : callable
        Function from a config and a unit to rows of the table.
    serial : bool
        Whether the units must not run in parallel, because they measure time.
    """

    name: str
    config: type
    units: Callable[[Any], list[Unit]]
    run_unit: Callable[[Any, Unit], Table]
    serial: bool = False


def seed_for(seed: int, *where: str | int) -> int:
    """Return the seed of one part of an experiment, independent of the seeds of other parts.

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
    """Compute the table of an experiment.

    Parameters
    ----------
    experiment : Experiment
        Definition of the experiment.
    config : object
        Settings, an instance of ``experiment.config``.
    n_jobs : int, default=1
        Number of processes, as in joblib. The table does not depend on it.
    store : Store, optional
        Store of finished units, which are not computed again.
    progress : callable, optional
        Context manager with a title and a number of units as arguments, whose value is a function
        that counts units.

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
    """Yield units with their rows, each as soon as it is computed."""
    if experiment.serial or n_jobs == 1 or len(units) < 2:
        yield from (_run_unit(experiment, config, unit) for unit in units)
        return
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    yield from parallel(delayed(_run_unit)(experiment, config, unit) for unit in units)


def _run_unit(experiment: Experiment, config: Any, unit: Unit) -> tuple[Unit, Table]:
    # One thread: the order of sums, and with it the last digits, must not depend on the number of
    # processes, and methods must be timed under equal conditions.
    with threadpool_limits(1), warnings.catch_warnings():
        # The ends of grids and the numbers of iterations are settings of the experiment.
        warnings.filterwarnings("ignore", message="The best penalty")
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        return unit, experiment.run_unit(config, unit)
