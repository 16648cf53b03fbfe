"""A fixed number of seeded cases of every family; `tests/fuzz/run.py` runs more of them.

The environment variable ``HOLRR_FUZZ_CASES`` changes the number of cases of all families together,
and ``HOLRR_FUZZ_SEED`` the seed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import FAMILIES, SHARES, failure_of, generator, numbers_of_cases

CASES = int(os.environ.get("HOLRR_FUZZ_CASES", "260"))
SEED = int(os.environ.get("HOLRR_FUZZ_SEED", "0"))


@pytest.mark.parametrize("name", FAMILIES)
def test_random_cases(name, record_property):
    numbers = range(numbers_of_cases(CASES)[name])
    failures = [said for case in numbers if (said := failure_of(name, case, SEED)) is not None]
    record_property("cases", len(numbers))
    assert not failures, f"{len(failures)} of {len(numbers)} cases fail:\n" + "\n".join(failures)


def test_cases_are_reproducible_and_differ():
    draws = [generator("pairs", *case).integers(2**60) for case in [(0, 0), (0, 0), (1, 0), (0, 1)]]
    assert draws[0] == draws[1]
    assert len(set(draws)) == 3
    assert generator("sizes", 0, 0).integers(2**60) != draws[0]


def test_the_number_of_cases_is_divided_among_the_families():
    assert set(SHARES) <= set(FAMILIES)
    for total in (1, len(FAMILIES), 250, 20_000):
        counts = numbers_of_cases(total)
        assert sum(counts.values()) == total
        each = {name: n / SHARES.get(name, 1.0) for name, n in counts.items()}
        assert max(each.values()) - min(each.values()) <= 1 / min(SHARES.values())
    assert min(numbers_of_cases(250).values()) > 0


def test_a_failure_says_how_to_repeat_the_case(monkeypatch):
    def broken(rng):
        raise ValueError(f"some\nreason {rng.integers(10) >= 0}")

    monkeypatch.setitem(FAMILIES, "broken", broken)
    said = failure_of("broken", 17, 3)
    assert said.startswith("python tests/fuzz/run.py --family broken --case 17 --seed 3")
    assert said.endswith("ValueError: some reason True")
    monkeypatch.setitem(FAMILIES, "broken", lambda rng: None)
    assert failure_of("broken", 17, 3) is None


def test_the_command_line_prints_how_many_cases_ran():
    words = [sys.executable, str(Path(__file__).with_name("run.py")), "--cases", "6", "--seed", "1"]
    done = subprocess.run(
        [*words, "--family", "layouts", "--family", "bad_entries"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "layouts: 3 cases, 0 failures" in done.stdout
    assert done.stdout.splitlines()[-1] == "6 cases, 0 failures"
