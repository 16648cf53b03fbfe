"""The fuzzer: every family of random cases for some seconds, with seeds that can be run again.

About a minute in all by default. Longer, or one case again::

    HOLRR_FUZZ_SECONDS=600 python -m pytest tests/fuzz -n 0 -s
    HOLRR_FUZZ_CASE=sources:17 python -m pytest tests/fuzz -n 0
"""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from families import FAMILIES

SECONDS = float(os.environ.get("HOLRR_FUZZ_SECONDS", "60"))
CASE = os.environ.get("HOLRR_FUZZ_CASE", "")
# Failures of a family that are told; more of them are hardly news.
ENOUGH = 8


def seed_of(name: str, case: int) -> np.random.Generator:
    return np.random.default_rng([case, *name.encode()])


def what_fails(name: str, case: int) -> str | None:
    """One line on the case; None where all is well."""
    try:
        FAMILIES[name](seed_of(name, case))
    except Exception as error:
        words = " ".join(str(error).split())
        return f"HOLRR_FUZZ_CASE={name}:{case}  {type(error).__name__}: {words[:300]}"
    return None


@pytest.mark.parametrize("name", FAMILIES)
def test_random_cases(name, capsys, record_property):
    """A bounded time, so a machine that is slow or busy sees fewer cases, but the same ones."""
    wanted, _, case = CASE.partition(":")
    if wanted:
        if wanted != name:
            pytest.skip("another case is asked for")
        FAMILIES[name](seed_of(name, int(case)))
        return
    end, count, failures = time.monotonic() + SECONDS / len(FAMILIES), 0, []
    while time.monotonic() < end and len(failures) < ENOUGH:
        told = what_fails(name, count)
        failures += [told] if told else []
        count += 1
    record_property("cases", count)
    with capsys.disabled():
        print(f"\n{name}: {count} cases, {len(failures)} failures")
    assert count > 0
    assert not failures, "\n".join(failures)
