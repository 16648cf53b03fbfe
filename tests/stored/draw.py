"""Seeded draws of cases: calls of holrr that combine features, as plain data.

A case is a dict that JSON can write: estimator, parameters, options of the data generator, source
of the data, calls after the fit, and the features that it combines. A feature is one value of a
slot, such as ("weights", "zero"). `assign` draws features so that all pairs occur, and `build`
turns them into a case. The cases use only parameters that the rebuild keeps.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

__all__ = ["ESTIMATORS", "assign", "build", "known_defects", "pairs_of"]

Slots = dict[str, str]

SINGLE = ("RLS", "LRR", "HOLRR")
SEARCHES = ("RLSCV", "LRRCV", "HOLRRCV")
KERNEL = ("KernelRLS", "KernelLRR", "KernelHOLRR")
KERNEL_SEARCHES = ("KernelRLSCV", "KernelLRRCV", "KernelHOLRRCV")
PENALIZED = ("TraceNormRegression", "MLMTNC")
# Share of each estimator among the cases.
ESTIMATORS = {
    **dict.fromkeys(SINGLE, 5),
    **dict.fromkeys(SEARCHES, 5),
    "HOLRR": 7,
    "HOLRRCV": 8,
    **dict.fromkeys(KERNEL, 2),
    **dict.fromkeys(KERNEL_SEARCHES, 2),
    **dict.fromkeys(PENALIZED, 1),
}

LINEAR = SINGLE + SEARCHES
ALL_KERNEL = KERNEL + KERNEL_SEARCHES
EVERY = (*LINEAR, *ALL_KERNEL, *PENALIZED)
RANKED = tuple(name for name in EVERY if "RLS" not in name and name != "TraceNormRegression")
ALL_SEARCHES = SEARCHES + KERNEL_SEARCHES

# Slot -> option -> estimators that may have it.
FEATURES: dict[str, dict[str, tuple[str, ...]]] = {
    "weights": dict.fromkeys(("real", "zero", "integer"), EVERY),
    "missing": dict.fromkeys(("some", "rows", "never", "never_cells", "never_some"), LINEAR),
    "output_weight": dict.fromkeys(("list", "zero", "array", "array_zeros"), LINEAR),
    "loss": {"huber": LINEAR},
    "blocks": {"dict": LINEAR, "list": SEARCHES, "free": SINGLE, "left_out": SINGLE},
    "own": dict.fromkeys(("pairs", "mask"), LINEAR),
    "inputs": {"tensor": EVERY, "tensor_rank": LINEAR, "flat_rank": LINEAR, "input_shape": EVERY},
    "form": {"pandas": EVERY, "xarray": EVERY, "dataset": LINEAR, "arrays": LINEAR},
    "dtype": {"float32": EVERY},
    "source": {
        **dict.fromkeys(("dask", "memmap"), LINEAR + ALL_KERNEL),
        "sparse": LINEAR,
        "partial_fit": (*SINGLE, *KERNEL, *PENALIZED),
        "decay": (*SINGLE, *KERNEL),
        **dict.fromkeys(("moments", "rolling", "batches"), (*SINGLE, *PENALIZED)),
        "fold_moments": SEARCHES,
        "fold_moments_faded": SEARCHES,
    },
    "dead": {"inputs": EVERY},
    "data": {
        **dict.fromkeys(("wide", "deficient", "constant_output", "large", "small"), EVERY),
        **dict.fromkeys(("constant_input", "noise", "few"), EVERY),
    },
    "y": dict.fromkeys(("scalar", "one", "matrix", "cube", "flat"), EVERY),
    "alpha": {
        "zero": SINGLE + KERNEL,
        "heavy": SINGLE + KERNEL,
        "per_output": ("RLS", "RLSCV"),
        "default": ALL_SEARCHES,
        "one": ALL_SEARCHES,
    },
    "intercept": {"no": EVERY},
    "rank": {"one": RANKED, "tuple": RANKED, "share": ("HOLRR", "KernelHOLRR"), "full": RANKED},
    "refine": {"yes": ("HOLRR", "HOLRRCV", "KernelHOLRR", "KernelHOLRRCV")},
    "subspaces": {"response": ("HOLRR", "KernelHOLRR")},
    "selection": dict.fromkeys(
        ("default", "1se"), tuple(n for n in ALL_SEARCHES if "RLS" not in n)
    ),
    "cv": dict.fromkeys(
        ("shuffled", "groups", "repeated", "overlapping", "predefined", "each"), ALL_SEARCHES
    ),
    "kernel": {
        **dict.fromkeys(("linear", "poly", "laplacian", "sigmoid", "cosine"), ALL_KERNEL),
        "precomputed": ALL_KERNEL,
        "several": KERNEL_SEARCHES,
        "default": KERNEL_SEARCHES,
    },
    "center_kernel": {"no": ALL_KERNEL},
    "landmarks": dict.fromkeys(("number", "array"), ALL_KERNEL),
    "penalised": {"alpha": ("TraceNormRegression",), "mode_weights": ("TraceNormRegression",)},
}
# Options that contradict each other or would be the same case.
APART = [
    {("form", "dataset"), ("inputs", None)},
    {("form", "arrays"), ("inputs", None)},
    {("form", "arrays"), ("dead", "inputs")},
    {("source", "sparse"), ("inputs", None)},
    {("source", "sparse"), ("form", None)},
    {("source", "sparse"), ("dead", "inputs")},
    {("source", "dask"), ("form", None)},
    {("source", "memmap"), ("form", None)},
    {("form", "pandas"), ("y", "cube")},
    {("form", "xarray"), ("y", "flat")},
    {("form", "dataset"), ("y", "flat")},
    {("kernel", "precomputed"), ("form", None)},
    {("kernel", "precomputed"), ("dead", "inputs")},
    {("kernel", "precomputed"), ("inputs", None)},
    {("kernel", "precomputed"), ("landmarks", None)},
    {("kernel", "precomputed"), ("source", None)},
    {("dead", "inputs"), ("landmarks", "array")},
    {("form", None), ("landmarks", "array")},
    {("inputs", None), ("landmarks", "array")},
    {("own", None), ("y", "scalar")},
    {("own", None), ("y", "one")},
    {("own", None), ("y", "flat")},
    {("own", "pairs"), ("form", "pandas")},
    {("own", "pairs"), ("form", "arrays")},
    {("own", "pairs"), ("form", "dataset")},
    {("own", "pairs"), ("source", "sparse")},
    {("inputs", "tensor_rank"), ("form", "pandas")},
    {("cv", "each"), ("weights", "zero")},
    {("kernel", "several"), ("data", "large")},
    {("kernel", "several"), ("data", "small")},
    {("output_weight", None), ("y", "scalar")},
    {("cv", None), ("source", "fold_moments")},
    {("cv", None), ("source", "fold_moments_faded")},
    {("alpha", "per_output"), ("blocks", None)},
]


def allowed(a: tuple[str, str], b: tuple[str, str]) -> bool:
    """Whether two features can be in one case."""
    if a[0] == b[0]:
        return False
    for apart in APART:
        x, y = apart
        for p, q in ((a, b), (b, a)):
            if p[0] == x[0] and x[1] in (None, p[1]) and q[0] == y[0] and y[1] in (None, q[1]):
                return False
    return True


def features_of(estimator: str) -> list[tuple[str, str]]:
    return [
        (s, o) for s, all_of in FEATURES.items() for o, who in all_of.items() if estimator in who
    ]


def pairs_of(slots: Slots) -> list[tuple[str, ...]]:
    """Pairs of features of a case, as sorted texts."""
    return list(combinations(sorted(f"{s}={o}" for s, o in slots.items()), 2))


def assign(
    rng: np.random.Generator, estimator: str, counts: dict[Any, int], bad: set[Any]
) -> Slots:
    """Draw two to four features of an estimator, whose pairs occurred least so far.

    Parameters
    ----------
    counts : dict
        How often each pair occurred, by (estimator, pair).
    bad : set
        Pairs that are known to raise an error, by (estimator, pair). They are drawn by themselves
        only, and once.
    """
    every = features_of(estimator)
    pairs = [(a, b) for a, b in combinations(every, 2) if allowed(a, b)]

    def rarity(a: tuple[str, str], b: tuple[str, str]) -> float:
        key = (estimator, pairs_of(dict([a, b]))[0])
        return counts.get(key, 0) + (100 if key in bad else 0)

    scores = np.array([rarity(a, b) for a, b in pairs]) + rng.uniform(size=len(pairs))
    first = pairs[int(scores.argmin())]
    chosen = list(first)
    if (estimator, pairs_of(dict(first))[0]) not in bad:
        for _ in range(int(rng.choice([0, 1, 2], p=[0.2, 0.5, 0.3]))):
            others = [f for f in every if all(allowed(f, c) for c in chosen)]
            if not others:
                break
            cost = [sum(rarity(f, c) for c in chosen) + rng.uniform() for f in others]
            if min(cost) >= 100:
                break
            chosen.append(others[int(np.argmin(cost))])
    return dict(chosen)


# ---------------------------------------------------------------- from features to a case


def build(rng: np.random.Generator, estimator: str, slots: Slots) -> dict[str, Any]:
    """Return the case of an estimator with these features."""
    is_search, is_kernel = estimator in ALL_SEARCHES, estimator in ALL_KERNEL
    outputs = output_shape(rng, slots)
    inputs, shape_of_inputs = input_shapes(rng, slots, outputs)
    d = int(np.prod(inputs))
    n = int(rng.integers(24, 40))
    if slots.get("data") == "wide":
        n = int(np.clip(d - rng.integers(2, 5), 7, 14))
    if slots.get("data") == "few":
        n = int(rng.integers(8, 12))
    data: dict[str, Any] = {
        "seed": int(rng.integers(2**31)),
        "n": n,
        "inputs": inputs,
        "outputs": outputs,
        "noise": float(rng.choice([0.1, 0.5, 1.5])),
        "offset": float(rng.choice([0.0, 1.0, -3.0])),
    }
    for slot, key in (("weights", "weights"), ("missing", "missing"), ("data", "kind")):
        if slot in slots:
            data[key] = slots[slot]
    data |= {"outliers": True} if "loss" in slots else {}
    data |= {"dead": True} if "dead" in slots else {}
    data |= {"groups": True} if slots.get("cv") == "groups" else {}
    data |= {"flat": True} if slots.get("y") == "flat" else {}
    data |= {"flat_inputs": True} if slots.get("inputs") in ("input_shape", "flat_rank") else {}
    data |= {"dtype": "float32"} if "dtype" in slots else {}
    params: dict[str, Any] = {}
    if slots.get("intercept") == "no":
        params["fit_intercept"] = False
    if shape_of_inputs is not None:
        params["input_shape"] = shape_of_inputs
    if slots.get("y") == "flat":
        params["output_shape"] = outputs
    unit = {"large": 1e30, "small": 1e-30}.get(slots.get("data", ""), 1.0)
    grows = not is_kernel or slots.get("kernel") == "linear"  # the scale of the penalty with X
    penalty(rng, estimator, slots, params, outputs, unit if grows else 1.0)
    ranks(rng, estimator, slots, params, outputs)
    if "refine" in slots:
        params["refine"] = True
    if "subspaces" in slots:
        params["subspaces"] = "response"
    if is_search:
        params["cv"] = folds(rng, slots, n)
        if "RLS" not in estimator and slots.get("selection") != "default":
            params["selection"] = slots.get("selection", "min")
    if is_kernel:
        kernels(rng, estimator, slots, params, data, unit)
    if estimator in LINEAR:
        linear(rng, estimator, slots, params, inputs, outputs)
    if "missing" in slots or "dead" in slots or slots.get("output_weight") == "array_zeros":
        params["missing"] = "ignore"
    if estimator == "TraceNormRegression":
        params["penalty"] = float(rng.choice([0.5, 3.0])) * unit * unit
        params |= {"alpha": 0.5 * unit * unit} if slots.get("penalised") == "alpha" else {}
        if slots.get("penalised") == "mode_weights":
            params["mode_weights"] = [float(v) for v in rng.uniform(0.3, 2, 1 + len(outputs))]
    if estimator == "MLMTNC":
        params |= {"beta": float(rng.choice([0.1, 1.0])) * unit, "random_state": 0}
    source = slots.get("source", "arrays")
    return {
        "estimator": estimator,
        "params": params,
        "data": data,
        "form": slots.get("form", "numpy"),
        "source": source,
        "calls": calls(rng, estimator, slots),
        "features": sorted(f"{s}={o}" for s, o in slots.items()),
    }


def output_shape(rng, slots: Slots) -> list[int]:
    if "y" not in slots and slots.get("form") == "pandas":
        return [int(rng.integers(2, 6))]
    small = lambda k: [int(v) for v in rng.integers(2, 5, k)]  # noqa: E731
    by_kind = {"scalar": [], "one": [1], "matrix": small(1), "cube": small(3), "flat": small(2)}
    return by_kind.get(slots.get("y", ""), small(2))


def input_shapes(rng, slots: Slots, outputs: list[int]) -> tuple[list[int], list[int] | None]:
    """Sizes of the inputs of a sample, and the parameter `input_shape`."""
    wide = slots.get("data") == "wide"
    has_modes = "inputs" in slots or slots.get("own") == "pairs"
    if has_modes:
        shared = outputs[0] if outputs and "own" in slots else int(rng.integers(2, 4))
        shape = [shared, int(rng.integers(4, 6) if wide else rng.integers(2, 4))]
        if slots.get("own") == "pairs" and "inputs" not in slots and rng.uniform() < 0.4:
            shape = [shared]  # inputs without further modes
            shape = [max(shared, 2)]
        flat = slots.get("inputs") in ("input_shape", "flat_rank")
        return shape, (shape if flat else None)
    return [int(rng.integers(14, 22) if wide else rng.integers(3, 7))], None


def penalty(rng, estimator, slots: Slots, params, outputs: list[int], unit: float) -> None:
    kind = slots.get("alpha")
    scale = unit * unit
    if estimator in ALL_SEARCHES:
        if kind == "default":
            return
        few = [0.1, 1.0, 10.0] if kind != "one" else [float(rng.choice([0.3, 3.0]))]
        params["alphas"] = [a * scale for a in few]
        if kind == "per_output":
            params["alpha_per_output"] = True
        return
    if estimator in PENALIZED:
        return
    alpha = float(rng.choice([0.03, 0.5, 2.0, 10.0]))
    if kind == "per_output":
        shape = outputs or [1]
        params["alpha"] = (scale * rng.choice([0.1, 1.0, 5.0], size=shape)).tolist()
        return
    if "blocks" in slots:
        return
    params["alpha"] = scale * {"zero": 0.0, "heavy": 300.0}.get(kind or "", alpha)


def ranks(rng, estimator, slots: Slots, params, outputs: list[int]) -> None:
    if estimator not in RANKED or slots.get("rank") == "full":
        return
    kind, matrix = slots.get("rank"), "LRR" in estimator and "HOLRR" not in estimator
    if estimator in ALL_SEARCHES:
        if kind is not None:
            value = {"one": 1, "tuple": 2 if matrix else [3, *[2] * len(outputs)]}[kind]
            params["max_rank"] = value
        return
    if kind == "share":
        params["rank"] = 0.9
    elif kind == "tuple" and not matrix:
        params["rank"] = [2, *(int(rng.integers(1, size + 1)) for size in outputs)]
    else:
        params["rank"] = 1 if kind == "one" else 2


def folds(rng, slots: Slots, n: int) -> Any:
    kind, seed = slots.get("cv"), int(rng.integers(1000))
    if kind is None:
        return 3
    return {
        "shuffled": {"kind": "KFold", "n_splits": 4, "shuffle": True, "random_state": seed},
        "groups": {"kind": "GroupKFold", "n_splits": 3},
        "repeated": {"kind": "RepeatedKFold", "n_splits": 3, "n_repeats": 2, "random_state": seed},
        "overlapping": {
            "kind": "ShuffleSplit",
            "n_splits": 3,
            "test_size": 0.3,
            "random_state": seed,
        },
        "predefined": {
            "kind": "PredefinedSplit",
            "test_fold": [int(v) for v in np.r_[0, 1, 2, rng.integers(-1, 3, n - 3)]],
        },
        "each": {"kind": "LeaveOneOut"},
    }[kind]


def kernels(rng, estimator, slots: Slots, params, data, unit: float) -> None:
    kind = slots.get("kernel", "rbf")
    search = estimator in KERNEL_SEARCHES
    gamma = float(rng.choice([0.05, 0.2]))
    if slots.get("data") in ("large", "small"):
        gamma = gamma / unit / unit if kind != "laplacian" else gamma / unit
    if kind == "default":
        pass
    elif kind == "several":
        params["kernel"] = ["rbf", {"kernel": "poly", "degree": 2}, "linear"]
        params["gammas"] = [gamma, 3 * gamma]
    else:
        params["kernel"] = kind
        if kind in ("rbf", "laplacian", "poly", "sigmoid"):
            value = gamma / 10 if kind == "sigmoid" else gamma
            params |= {"gammas": [value, 2 * value]} if search else {"gamma": value}
        if kind == "poly":
            params |= {"degree": 2, "coef0": float(rng.choice([0.5, 1.0]))}
        if kind == "sigmoid":
            params["coef0"] = 0.1
        if kind == "precomputed":
            data["gram"] = gamma
    if slots.get("center_kernel") == "no":
        params["center_kernel"] = False
    if slots.get("landmarks") == "number" or ("landmarks" not in slots and streamed(slots)):
        params |= {"landmarks": 6, "random_state": int(rng.integers(100))}
    if slots.get("landmarks") == "array":
        points = rng.normal(size=(5, int(np.prod(data["inputs"]))))
        scale = unit if slots.get("data") in ("large", "small") else 1.0
        params["landmarks"] = (
            (scale * points).round(3).tolist() if scale == 1.0 else (scale * points).tolist()
        )


def streamed(slots: Slots) -> bool:
    """Whether a kernel needs landmarks for its source."""
    return "source" in slots


def linear(rng, estimator, slots: Slots, params, inputs: list[int], outputs: list[int]) -> None:
    d = int(np.prod(inputs))
    search = estimator in SEARCHES
    if "loss" in slots:
        params["loss"] = "huber"
    kind = slots.get("output_weight")
    if kind is not None:
        vectors = [rng.choice([0.5, 1.0, 2.0], size).tolist() for size in outputs]
        if kind == "zero" and vectors:
            vectors[-1][0] = 0.0
        if kind == "list" and len(vectors) > 1:
            vectors[0] = None
        if kind in ("array", "array_zeros"):
            product = np.ones(())
            for vector in vectors:
                product = np.multiply.outer(product, np.array(vector))
            if kind == "array_zeros" and product.size > 1:
                product.flat[int(rng.integers(product.size))] = 0.0
            vectors = product.tolist()
        params["output_weight"] = vectors
    kind = slots.get("blocks")
    if kind is not None:
        cut = max(1, d // 2)
        names = {"a": list(range(cut)), "b": list(range(cut, d))}
        if kind == "list":
            params["blocks"] = ["a"] * cut + ["b"] * (d - cut)
        else:
            params["blocks"] = names
        if slots.get("form") in ("dataset", "arrays"):
            params["blocks"] = "auto"
        if not search:
            first = {"free": 0.0, "left_out": "inf"}.get(kind, 0.5)
            unit = {"large": 1e60, "small": 1e-60}.get(slots.get("data", ""), 1.0)
            params["alpha"] = {
                "a": first if isinstance(first, str) else first * unit,
                "b": float(rng.choice([0.1, 5.0])) * unit,
            }
    if "own" in slots:
        if slots["own"] == "pairs":
            params["own"] = [[0, 0]]
        else:
            mask = rng.uniform(size=(d, int(np.prod(outputs)))) < 0.3
            mask[0, 0] = True
            params["own"] = mask.tolist()
        if not search:
            params["own_alpha"] = float(rng.choice([0.3, 3.0]))
    if slots.get("inputs") in ("tensor_rank", "flat_rank"):
        params["input_rank"] = [1 + int(rng.integers(max(1, size - 1))) for size in inputs]


def calls(rng, estimator, slots: Slots) -> list[Any]:
    """Calls after the fit, besides predictions and attributes."""
    search = estimator in ALL_SEARCHES
    found: list[Any] = ["score"] if slots.get("source") != "sparse" else []
    if estimator not in PENALIZED:
        found.append("std")
    if search:
        coverage = float(rng.choice([0.5, 0.7, 0.8]))
        found += [["interval", kind, coverage] for kind in ("entry", "pooled", "simultaneous")]
        if rng.uniform() < 0.3:
            found.append("outliers")
    elif rng.uniform() < 0.06:
        found.append("outliers_of_folds")
    if estimator in LINEAR and rng.uniform() < 0.25:
        found.append("vip")
    if rng.uniform() < 0.08:
        found.append("standard_errors")
    if estimator in LINEAR and "blocks" in slots:
        found.append("score_blocks")
    return found


# ---------------------------------------------------------------- known defects


def known_defects(case: dict[str, Any]) -> dict[str, list[str]]:
    """Return the known defects of the code before the rebuild that a case shows.

    Returns
    -------
    dict
        From the number of a defect in the list of them to the results that may change when it is
        mended; "*" stands for all results, and a * at the end for all names that begin so.
    """
    name, params, data = case["estimator"], case["params"], case["data"]
    features, found = set(case["features"]), {}
    search, n, d = name in ALL_SEARCHES, data["n"], int(np.prod(data["inputs"]))
    few = n <= d + 1 or data.get("kind") in ("wide", "few")
    never = data.get("missing") in ("never", "never_cells", "never_some")
    never |= bool({"output_weight=zero", "output_weight=array_zeros"} & features)
    linear_search = name in SEARCHES
    if search and never:
        found["2"] = ["interval_simultaneous"]
    if linear_search and "own" in params and "input_rank" in params:
        found["3"] = ["*"]
    if linear_search and "own" in params:
        found["4"] = ["null_mse_"]
    if params.get("loss") == "huber" and few:
        found["5"] = ["*"]
    if data.get("kind") == "constant_output" and (few or name in KERNEL_SEARCHES):
        found["6"] = ["noise_", "std", "interval*", "outliers*"]
    if data.get("weights") in ("zero", "integer") and few and case_has_input_rank(case):
        found["7"] = ["*"]
    if "own" in params and data.get("weights") is not None:
        found["9"] = ["std", "interval*"]
    if "missing=rows" in features and case["source"] in ALL_SUMS:
        found["13"] = ["*"]
    if linear_search and "blocks" in params and data.get("kind") in ("constant_input", "noise"):
        found["14"] = ["fit"]
    if data.get("kind") == "constant_output" and search:
        found["15"] = ["outliers*"]
    if "standard_errors" in case["calls"] and (
        "alpha_per_output" in params or ("blocks" in params and data.get("dead"))
    ):
        found["16"] = ["standard_errors"]
    if search and params.get("max_rank") is not None and "selection" not in params:
        found["10"] = ["*"]
    return found


ALL_SUMS = ("partial_fit", "decay", "moments", "rolling", "batches", "fold_moments")
ALL_SUMS += ("fold_moments_faded",)


def case_has_input_rank(case: dict[str, Any]) -> bool:
    """Whether directions of the inputs are reduced; searches try this for inputs with modes."""
    return "input_rank" in case["params"] or (
        case["estimator"] in SEARCHES and len(case["data"]["inputs"]) > 1
    )
