"""Compare the results of the code at hand with the stored ones, and list every deviation.

    python tests/stored/compare.py            # all cases; exit status 1 if one has no reason
    python tests/stored/compare.py --quick    # the cases of the tests
    python tests/stored/compare.py --case 17  # one case, with its description and its results

A deviation with a reason is a row of `deviations.toml`. The environment variable PYTHONPATH decides
which holrr is run.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from draw import ALL_SEARCHES, PENALIZED
from evaluate import evaluate, shortened
from precise import worse

import holrr

__all__ = ["FILE", "Deviation", "compare", "explained", "load", "read_table", "show", "with_shapes"]

FILE = Path(__file__).with_name("results.npz")
TABLE = Path(__file__).with_name("deviations.toml")
# Relative to the largest entry: direct fits; fits in float32; weights of a robust fit, which are
# iterated to a tolerance of 5e-3 by rounds that are the same in any implementation.
DIRECT, SINGLE, ROBUST = 1e-8, 1e-4, 1e-6
# Iterative fits: relative increase of the objective, and change of other results where the
# objectives agree. Near a minimum, parameters differ by the root of what the objectives differ by.
OBJECTIVE, LOOSE = 1e-6, 1e-3
# Two choices of a search are equally good if their errors agree to this.
TIE = 1e-10
# Data that differ by more come from another generator, such as that of another version of NumPy.
DATA = 1e-10
# What a search chooses, the errors by which it is judged, and what does not depend on its choice.
CHOICE = ("best_rank", "alpha_", "kernel", "gamma", "input_rank_", "own")
ERRORS = ("error_at_choice", "best_error")
ALWAYS = ("scale_X", "scale_Y", "null_mse_", "dtype", "fit")
# Results that are zero up to rounding where a fit interpolates, as multiples of the scale of y.
SQUARES = (*ERRORS, "ridge_mse_", "null_mse_", "objective_", "lower_bound_")
OBJECTIVES = ("objective_", "lower_bound_")
COEFFICIENTS = ("coef_", "own_coef_")
WIDTHS = ("noise_", "std")


def load(path: Path = FILE) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what is known about the stored results, and the cases with their results."""
    with np.load(path) as file:
        content, values = json.loads(file["text"].tobytes()), file["values"]
    for case in content["cases"]:
        for name, value in case["results"].items():
            if not isinstance(value, str):
                start, size, shape = value
                case["results"][name] = values[start : start + size], shape
    return content["about"], content["cases"]


def show(done: int, total: int, what: str) -> None:
    if done % 500 == 0 or done == total:
        print(f"{done} of {total} {what}", file=sys.stderr, flush=True)


def with_shapes(results: dict[str, Any]) -> dict[str, Any]:
    """Return results in short form: texts, or pairs of numbers and the shape of the result."""
    found = {name: shortened(value) for name, value in results.items()}
    return {
        name: short if isinstance(short, str) else (short, list(np.shape(results[name])))
        for name, short in found.items()
    }


@dataclass
class Deviation:
    case: dict[str, Any]
    result: str
    text: str
    size: float = math.inf

    def __str__(self) -> str:
        features = ", ".join(self.case["features"])
        kind = f"{self.case['estimator']}: {features}"
        return f"case {self.case['number']}, {self.result}: {self.text} ({kind})"


# ---------------------------------------------------------------- the rule of a case


def is_iterative(case: dict[str, Any]) -> bool:
    """Whether the fit of a case is iterated, or a penalty is found by iterations."""
    missing = case["data"].get("missing")
    some = missing in ("some", "never_some")
    if case["estimator"] in ("HOLRR", "HOLRRCV"):
        some |= (
            missing in ("never", "never_cells") or "output_weight=array_zeros" in case["features"]
        )
    search = case["estimator"] in ALL_SEARCHES
    return (
        case["estimator"] in PENALIZED
        or bool(case["params"].get("refine"))
        or some
        or (search and "blocks" in case["params"])
    )


def tolerance(case: dict[str, Any]) -> float:
    if case["data"].get("dtype") == "float32":
        return SINGLE
    return ROBUST if case["params"].get("loss") == "huber" else DIRECT


def scale_of(name: str, largest: float, case: dict[str, Any], old: dict[str, Any]) -> float:
    """Return what a change of a result is relative to; infinite where it is zero up to rounding.

    That is its largest entry, or more where it is a difference of larger numbers.
    """
    x, y = (float(old[k][0][0]) for k in ("scale_X", "scale_Y"))
    digits = 1e-2 if case["data"].get("dtype") == "float32" else 1e-6
    if name in SQUARES:
        data = case["data"]
        count = data["n"] * math.prod(data["outputs"]) if name in OBJECTIVES else 1
        return max(largest, digits * y * y * count)
    if name in WIDTHS:  # roots of such numbers
        return math.inf if largest < digits * y else max(largest, digits * y * (y / largest))
    if name in ("score", "score_blocks"):
        return max(largest, 1.0)  # one minus a ratio of errors
    if name in COEFFICIENTS:
        return max(largest, 1e-2 * digits * y / x)
    return largest


# ---------------------------------------------------------------- two results


def distance(name: str, case: Any, old: dict[str, Any], new: dict[str, Any]) -> tuple[float, str]:
    """Return the relative change of a result, which is 0 if it is equal, and a text."""
    a, b = old.get(name), new.get(name)
    if isinstance(a, str) or isinstance(b, str) or a is None or b is None:
        return (0.0, "") if a == b else (math.inf, f"{words(b)}, was {words(a)}")
    (a, shape), (b, other) = a, b
    if list(shape) != list(other):
        return math.inf, f"shape {tuple(other)}, was {tuple(shape)}"
    summary = math.prod(shape) > a.size
    kinds = [np.isnan(v) + 2.0 * np.isposinf(v) + 3.0 * np.isneginf(v) for v in (a, b)]
    if (kinds[0] != kinds[1]).any() or (summary and abs(a[1] - b[1]) > 1e-9 * (1 + abs(a[1]))):
        return math.inf, "NaN or infinity in other places"
    finite = kinds[0] == 0
    if not finite.any():
        return 0.0, ""
    head = 1 if summary else a.size
    largest = np.abs(a[:head][finite[:head]]).max(initial=0.0)
    scale = max(scale_of(name, float(largest), case, old), 1e-300)
    changes = np.where(finite, b, 0.0) / scale - np.where(finite, a, 0.0) / scale
    if summary:
        # The root mean square of the changes of the projections estimates the norm of the change.
        change = max(abs(changes[0]), math.sqrt(np.mean(changes[2:] ** 2)))
    else:
        change = float(np.abs(changes).max())
    return change, f"relative change {change:.1e}"


def words(value: Any) -> str:
    if value is None:
        return "not there"
    return value if isinstance(value, str) else "numbers"


def number(results: dict[str, Any], name: str) -> float | None:
    """Return a result that is one number; None if it is not there."""
    value = results.get(name)
    return None if value is None or isinstance(value, str) else float(value[0][0])


def compare(
    case: dict[str, Any], found: dict[str, Any], strictness: float = 1.0
) -> list[Deviation]:
    """Return the deviations of new results from those of a case.

    Parameters
    ----------
    case : dict
        A case with its stored results.
    found : dict
        Results of `evaluate`.
    strictness : float
        Factor of all tolerances.
    """
    old = case["results"]
    new = with_shapes(found)
    names = list(dict.fromkeys([*old, *new]))
    changes = {name: distance(name, case, old, new) for name in names}
    tol = tolerance(case)

    def beyond(names: Any, bound: float) -> list[Deviation]:
        return [
            Deviation(case, name, changes[name][1], changes[name][0])
            for name in names
            if not changes[name][0] <= strictness * bound
        ]

    other_data = beyond(("scale_X", "scale_Y"), DATA)
    if other_data:
        return other_data
    if "fit" in changes:
        text = f"{words(new.get('fit', 'a fit'))}, was {words(old.get('fit', 'a fit'))}"
        return [Deviation(case, "fit", text)] if changes["fit"][0] else []
    iterative, search = is_iterative(case), case["estimator"] in ALL_SEARCHES
    if not search:
        if not iterative:
            return beyond(names, tol)
        return judged(case, "objective_", old, new) or beyond(names, max(LOOSE, tol)) * (
            not improved("objective_", case, old, new)
        )
    chosen = [name for name in CHOICE if name in changes]
    always = beyond([name for name in ALWAYS if name in changes], tol)
    if iterative:
        worse_error = judged(case, "error_at_choice", old, new)
        same = not beyond(chosen, LOOSE) and not improved("error_at_choice", case, old, new)
        return (
            always
            + worse_error
            + (beyond(names, max(LOOSE, tol)) if same and not worse_error else [])
        )
    if beyond(chosen, tol):
        tie = TIE if tol == DIRECT else tol
        other = beyond([name for name in ERRORS if name in changes], tie)
        changed = ", ".join(d.result for d in beyond(chosen, tol))
        return always + [
            Deviation(case, "choice", f"chose another {changed}, and {d.result} differs: {d.text}")
            for d in other[:1]
        ]
    return beyond(names, tol)


def excess(name: str, case: Any, old: dict[str, Any], new: dict[str, Any]) -> float | None:
    a, b = number(old, name), number(new, name)
    if a is None or b is None:
        return None
    return (b - a) / max(scale_of(name, abs(a), case, old), 1e-300)


def judged(case: Any, name: str, old: dict[str, Any], new: dict[str, Any]) -> list[Deviation]:
    """Return a deviation if an objective or error is larger than the stored one."""
    more = excess(name, case, old, new)
    if more is None:
        return [] if name not in old else [Deviation(case, name, "not there")]
    bound = max(OBJECTIVE, tolerance(case))
    return [Deviation(case, name, f"larger by {more:.1e}", more)] if not more <= bound else []


def improved(name: str, case: Any, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether an objective is smaller than the stored one, so that other results may differ."""
    more = excess(name, case, old, new)
    return more is not None and more < -OBJECTIVE


# ---------------------------------------------------------------- reasons


def read_table(path: Path = TABLE) -> list[dict[str, Any]]:
    """Return the rows of the table of known deviations."""
    rows = tomllib.loads(path.read_text()).get("deviation", [])
    for row in rows:
        unknown = set(row) - {"reason", "cases", "estimators", "features", "results"}
        if unknown or not row.get("reason"):
            raise ValueError(
                f"{path.name}: a row needs a reason, and may have cases, estimators, features and "
                f"results; got {sorted(row)}"
            )
    return rows


def explained(deviation: Deviation, rows: list[dict[str, Any]]) -> str | None:
    """Return the reason of a deviation: a row of the table or a known defect; None without one."""
    case = deviation.case
    for row in rows:
        if (
            case["number"] in row.get("cases", [case["number"]])
            and case["estimator"] in row.get("estimators", [case["estimator"]])
            and all(
                any(fnmatch.fnmatchcase(f, pattern) for f in case["features"])
                for pattern in row.get("features", [])
            )
            and matches(deviation.result, row.get("results", ["*"]))
        ):
            return row["reason"]
    for defect, results in case["defects"].items():
        if matches(deviation.result, results):
            return f"known defect {defect}"
    return None


def matches(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


# ---------------------------------------------------------------- command


def describe(case: dict[str, Any]) -> None:
    """Print a case, its stored results and the new ones."""
    about = {k: v for k, v in case.items() if k not in ("results", "seconds")}
    print(json.dumps(about, indent=1))
    found = evaluate(case)
    for name in dict.fromkeys([*case["results"], *found]):
        old = case["results"].get(name)
        shown = [old if isinstance(old, str) or old is None else old[0]]
        shown.append(shortened(found[name]) if name in found else None)
        print(f"{name}\n  stored {shown[0]}\n  now    {shown[1]}")
    for deviation in compare(case, found):
        print(deviation)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only the cases of the tests")
    parser.add_argument("--case", type=int, help="print one case and its results")
    options = parser.parse_args()
    about, cases = load()
    if options.case is not None:
        describe(cases[options.case - 1])
        return 0
    print(f"holrr of {Path(holrr.__file__).parent}")
    if options.quick:
        cases = [cases[k - 1] for k in about["quick"]]
    rows, reasons, unknown = read_table(), Counter(), []
    for done, case in enumerate(cases, 1):
        for deviation in compare(case, evaluate(case)):
            reason = explained(deviation, rows)
            if reason is None:
                unknown.append(deviation)
                print(deviation, flush=True)
            else:
                reasons[reason] += 1
        show(done, len(cases), "cases")
    lines = worse(about["precise"])
    print(*lines, sep="\n", end="\n" * bool(lines))
    for reason, count in reasons.most_common():
        print(f"{count} deviations explained: {reason}")
    if not options.quick:
        for row in rows:
            if row["reason"] not in reasons:
                print(f"explains nothing, delete the row: {row['reason']}")
    n_cases = len({d.case["number"] for d in unknown})
    print(
        f"{len(cases)} cases: {len(unknown) + len(lines)} deviations without a reason, in "
        f"{n_cases} cases and {len(lines)} ill-conditioned fits"
    )
    return int(bool(unknown or lines))


if __name__ == "__main__":
    sys.exit(main())
