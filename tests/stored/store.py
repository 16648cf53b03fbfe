"""Store the results of seeded calls of holrr, with which `compare.py` compares other code.

    python tests/stored/store.py                      # new results of the stored cases
    python tests/stored/store.py --draw --total 3000  # new cases
    python tests/stored/store.py --drop 17 --total 3000 --seed 1  # a new case in place of another

The environment variable PYTHONPATH decides which holrr is run. The file `results.npz` contains all
cases as data, their results, the versions of the packages and the seconds of each case.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from compare import FILE, compare, load, show, with_shapes
from draw import ESTIMATORS, assign, build, known_defects, pairs_of
from evaluate import evaluate, shortened
from precise import precise_results

import holrr

__all__ = ["is_steady", "quick_cases"]

PACKAGES = ["numpy", "scipy", "scikit-learn", "pandas", "xarray", "dask", "threadpoolctl"]
# Share of cases whose fit raises an error, and seconds of the slowest case that is kept.
MOST_ERRORS, MOST_SECONDS = 0.05, 2.0
# Number of changes of the rounding, and share of the tolerances by which results may change.
N_NUDGES, MARGIN = 2, 0.1
# Number and seconds of the cases that the tests run.
QUICK, QUICK_SECONDS = 300, 0.06


def drawn(count: int, seed: int, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Draw cases that combine features, mostly such that can be fitted."""
    rng = np.random.default_rng(seed)
    counts: dict[Any, int] = {}
    bad: set[Any] = set()
    for case in before:
        slots = dict(feature.split("=") for feature in case["features"])
        for pair in pairs_of(slots):
            counts[case["estimator"], pair] = counts.get((case["estimator"], pair), 0) + 1
    names = list(ESTIMATORS)
    share = np.array([ESTIMATORS[name] for name in names], float)
    found, n_errors = [], 0
    while len(found) < count:
        name = names[int(rng.choice(len(names), p=share / share.sum()))]
        slots = assign(rng, name, counts, bad)
        case = build(rng, name, slots)
        start = time.perf_counter()
        results = evaluate(case)
        failed = "fit" in results
        slow = time.perf_counter() - start > MOST_SECONDS
        if failed:
            for a, b in combinations(slots.items(), 2):
                pair = dict([a, b])
                key = name, pairs_of(pair)[0]
                if key not in bad and "fit" in evaluate(build(rng, name, pair)):
                    bad.add(key)
        for pair in pairs_of(slots):
            counts[name, pair] = counts.get((name, pair), 0) + 1
        if slow or (failed and n_errors >= MOST_ERRORS * (len(found) + 20)):
            continue
        if not is_steady(case, results):
            continue
        n_errors += failed
        found.append(case)
        show(len(found), count, "cases drawn")
    return found


def is_steady(case: dict[str, Any], results: dict[str, Any]) -> bool:
    """Whether the results of a case do not depend on rounding: its conditioning is good enough."""
    first = case | {"number": 0, "results": with_shapes(results)}
    for nudge in range(1, N_NUDGES + 1):
        other = evaluate(case, nudge)
        second = case | {"number": 0, "results": with_shapes(other)}
        if compare(first, other, MARGIN) or compare(second, results, MARGIN):
            return False
    return True


def steady(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for done, case in enumerate(cases, 1):
        found += [case] if is_steady(case, evaluate(case)) else []
        show(done, len(cases), f"cases checked, {len(found)} kept")
    return found


def quick_cases(cases: list[dict[str, Any]]) -> list[int]:
    """Choose quick cases that together have as many pairs of features as possible."""
    usable = {c["number"]: c for c in cases if c["seconds"] <= QUICK_SECONDS}
    pairs = {
        k: {(c["estimator"], p) for p in pairs_of(dict(f.split("=") for f in c["features"]))}
        for k, c in usable.items()
    }
    covered: set[Any] = set()
    chosen: list[int] = []
    used: dict[str, int] = {}
    while usable and len(chosen) < QUICK:
        # Estimators in turn, so that all are there.
        names = sorted({c["estimator"] for c in usable.values()})
        name = min(names, key=lambda n: used.get(n, 0) / ESTIMATORS[n])
        best = max(
            (k for k, c in usable.items() if c["estimator"] == name),
            key=lambda k: (len(pairs[k] - covered), -usable[k]["seconds"], -k),
        )
        covered |= pairs[best]
        used[name] = used.get(name, 0) + 1
        chosen.append(best)
        del usable[best]
    return sorted(chosen)


def save(cases: list[dict[str, Any]], path: Path) -> None:
    """Evaluate the cases, and write them with their results."""
    values: list[np.ndarray] = []
    place = 0
    for done, case in enumerate(cases, 1):
        case["number"] = done
        case["defects"] = known_defects(case)
        start = time.perf_counter()
        results = evaluate(case)
        case["seconds"] = round(time.perf_counter() - start, 4)
        case["results"] = {}
        for name, value in results.items():
            short = shortened(value)
            if isinstance(short, str):
                case["results"][name] = short
                continue
            case["results"][name] = [place, short.size, list(np.shape(value))]
            values.append(short)
            place += short.size
        show(done, len(cases), "results")
    about = {
        "holrr": holrr.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "quick": quick_cases(cases),
        "precise": precise_results(),
    }
    text = json.dumps({"about": about, "cases": cases}).encode()
    np.savez_compressed(path, text=np.frombuffer(text, np.uint8), values=np.concatenate(values))
    print(f"{len(cases)} cases, {path.stat().st_size / 1e6:.1f} MB in {path}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draw", action="store_true", help="start without the stored cases")
    parser.add_argument("--drop", type=int, nargs="+", default=[], help="numbers of cases to drop")
    parser.add_argument("--steady", action="store_true", help="drop cases that rounding changes")
    parser.add_argument("--total", type=int, default=0, help="draw cases up to this number")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    print(f"holrr of {Path(holrr.__file__).parent}", file=sys.stderr)
    cases = [] if options.draw else load()[1]
    cases = [case for case in cases if case["number"] not in options.drop]
    cases = steady(cases) if options.steady else cases
    save(cases + drawn(options.total - len(cases), options.seed, cases), options.out)


if __name__ == "__main__":
    main()
