"""Run many random cases, or one of them again.

    python tests/fuzz/run.py --cases 20000 --seed 0 --jobs 2
    python tests/fuzz/run.py --family sources --case 17 --seed 0

The first command divides the cases among the families, prints the number of cases and failures of
each, and exits with 1 where a case fails. The second one shows the traceback of a case.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from joblib import Parallel, delayed

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "model_selection"), str(TESTS / "fuzz")]

from cases import FAMILIES, failure_of, generator, numbers_of_cases  # noqa: E402

# Failures of a family that are printed.
MAX_PRINTED = 8


def parse(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=1000, help="number of cases in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--family", action="append", choices=list(FAMILIES), help="only these")
    parser.add_argument("--case", type=int, help="run this case of one family again")
    found = parser.parse_args(words)
    if found.case is not None and len(found.family or ()) != 1:
        parser.error("--case needs one --family")
    return found


def said_of(name: str, case: int, seed: int) -> str | None:
    """The failure of a case, without warnings, which a new process would print."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return failure_of(name, case, seed)


def main(words: list[str] | None = None) -> int:
    options = parse(words)
    if options.case is not None:
        (name,) = options.family
        FAMILIES[name](generator(name, options.case, options.seed))
        print(f"{name}: case {options.case} passes")
        return 0
    for name in set(FAMILIES) - set(options.family or FAMILIES):
        del FAMILIES[name]
    n_failures = 0
    for name, n_cases in numbers_of_cases(options.cases).items():
        numbers = range(options.first, options.first + n_cases)
        said = Parallel(options.jobs)(delayed(said_of)(name, k, options.seed) for k in numbers)
        failures = [words for words in said if words is not None]
        print(f"{name}: {n_cases} cases, {len(failures)} failures", flush=True)
        for words in failures[:MAX_PRINTED]:
            print(f"  {words}")
        n_failures += len(failures)
    print(f"{options.cases} cases, {n_failures} failures")
    return 1 if n_failures else 0


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit(main())
