"""Numbered cases of the families: each has a generator of its own and can be run again."""

from __future__ import annotations

import numpy as np
from families import FAMILIES

__all__ = ["FAMILIES", "SHARES", "failure_of", "generator", "numbers_of_cases"]


# Families whose cases take long have fewer of them, and those that take no time have more.
SHARES = {
    "pairs": 15.0,
    "sizes": 0.25,
    "selections": 0.25,
    "never_observed_outputs": 0.25,
    "damaged_files": 0.25,
    "command_lines": 0.25,
    "projections_onto_hulls": 3.0,
}


def generator(name: str, case: int, seed: int = 0) -> np.random.Generator:
    """The generator of a case, which depends on its family, its number and the seed only."""
    return np.random.default_rng([seed, case, *name.encode()])


def failure_of(name: str, case: int, seed: int = 0) -> str | None:
    """One line with the command that repeats a case and its error; None where it passes."""
    try:
        FAMILIES[name](generator(name, case, seed))
    except Exception as error:
        words = " ".join(str(error).split())
        again = f"python tests/fuzz/run.py --family {name} --case {case} --seed {seed}"
        return f"{again}  # {type(error).__name__}: {words[:300]}"
    return None


def numbers_of_cases(total: int) -> dict[str, int]:
    """How many cases each family has, in proportion to its share; some of every family."""
    shares = {name: SHARES.get(name, 1.0) for name in FAMILIES}
    ends = [total * sum(list(shares.values())[:k]) for k in range(len(shares) + 1)]
    bounds = [round(end / sum(shares.values())) for end in ends]
    return {name: bounds[k + 1] - bounds[k] for k, name in enumerate(FAMILIES)}
