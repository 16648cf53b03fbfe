"""Numbered cases of the families: each has a generator of its own and can be run again."""

from __future__ import annotations

import numpy as np
from families import FAMILIES

__all__ = ["FAMILIES", "failure_of", "generator", "numbers_of_cases"]


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
    """How many cases each family has, as evenly as possible."""
    each, more = divmod(total, len(FAMILIES))
    return {name: each + (k < more) for k, name in enumerate(FAMILIES)}
