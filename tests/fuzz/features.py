"""Features that are combined at random, and which the documentation says cannot be.

To add a feature, write a function from a case to a case, or None where the case cannot have it. A
feature that replaces another one has the same slot; pairs that the documentation excludes are in
`EXCLUDED`, with the place that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from paired import Case, parts_of
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from problems import low_rank_tensor
from registry import ROWS, Row

Rng = np.random.Generator


@dataclass(frozen=True)
class Feature:
    name: str
    slot: str
    apply: Callable[[Rng, Case], Case | None]
    suits: Callable[[Row], bool]


FEATURES: dict[str, Feature] = {}


def feature(slot: str, suits: Callable[[Row], bool] = lambda row: True) -> Callable[..., Any]:
    def add(apply: Callable[[Rng, Case], Case | None]) -> Callable[[Rng, Case], Case | None]:
        name = apply.__name__
        FEATURES[name] = Feature(name, slot, apply, suits)
        return apply

    return add


# Landmarks that are drawn depend on the order of the samples; the feature "landmarks" gives them.
CANDIDATES = [row for row in ROWS if row.params.get("landmarks") is None]


def kernel(row: Row) -> bool:
    return "kernel" in row.params


def linear_family(row: Row) -> bool:
    return "blocks" in row.params


def has(name: str) -> Callable[[Row], bool]:
    return lambda row: name in row.params


# ---------------------------------------------------------------- the case without features


def data(
    rng: Rng, n: int, d: int, shape: tuple[int, ...], noise: float = 0.4
) -> dict[str, np.ndarray]:
    """Low-rank outputs with noise and means, and inputs for predictions, two of them known."""
    X = rng.normal(size=(n, d)) + rng.normal(size=d)
    W = low_rank_tensor(rng, (d, *shape), [min(2, k) for k in (d, *shape)])
    Y = np.tensordot(X, W / max(np.abs(W).max(), 0.1), 1) + rng.normal(size=shape)
    Q = np.vstack([X[:2], X.mean(axis=0) + rng.normal(size=(3, d))])
    return {"X": X, "Y": Y + noise * rng.normal(size=Y.shape), "Q": Q}


def resized(rng: Rng, case: Case, n: int, d: int, shape: tuple[int, ...]) -> Case:
    splits = list(KFold(3).split(np.empty(n))) if case.row.searches else None
    return replace(case, **data(rng, n, d, shape), splits=splits)


def plain_case(rng: Rng, row: Row) -> Case:
    n, d = int(rng.integers(12, 25)), int(rng.integers(2, 6))
    shape = tuple(int(k) for k in rng.integers(2, 4, size=rng.integers(1, 3)))
    empty = np.empty((n, d))
    return resized(rng, Case(row, empty, empty, empty), n, d, shape)


def settled(case: Case) -> Case:
    """Every fold has samples with weight on both sides, and every batch has some."""
    if case.w is None:
        return case
    w = case.w.copy()
    if case.source in ("batches", "moments", "window"):
        for rows in parts_of(case):
            w[rows[:1]] = np.maximum(w[rows[:1]], 1)
    for train, test in case.splits or []:
        w[train[:3]], w[test[:1]] = np.maximum(w[train[:3]], 1), np.maximum(w[test[:1]], 1)
    return replace(case, w=w)


# ---------------------------------------------------------------- sizes


@feature("outputs")
def scalar_outputs(rng: Rng, case: Case) -> Case:
    return resized(rng, case, case.n, case.X.shape[1], ())


@feature("outputs")
def three_output_modes(rng: Rng, case: Case) -> Case:
    return resized(rng, case, case.n, case.X.shape[1], (2, 3, 2))


@feature("outputs")
def one_output_mode(rng: Rng, case: Case) -> Case:
    return resized(rng, case, case.n, case.X.shape[1], (int(rng.integers(1, 6)),))


@feature("modes")
def tensor_inputs(rng: Rng, case: Case) -> Case:
    modes = tuple(int(k) for k in rng.integers(2, 4, size=rng.integers(2, 4)))
    case = resized(rng, case, case.n, int(np.prod(modes)), case.shape)
    return replace(case, modes=modes)


@feature("modes")
def named_blocks_of_inputs(rng: Rng, case: Case) -> Case:
    modes = {"map": (2, 3), "index": (), "season": (2,)}
    return replace(resized(rng, case, case.n, 9, case.shape), modes=modes)


@feature("input rank", has("input_rank"))
def low_input_rank(rng: Rng, case: Case) -> Case | None:
    if isinstance(case.modes, dict):
        return None
    if case.modes is None:
        modes = (2, 5) if rng.uniform() < 0.5 else (3, 3)
        case = replace(resized(rng, case, case.n, int(np.prod(modes)), case.shape), modes=modes)
    rank = tuple(int(rng.integers(1, k + 1)) for k in case.modes)
    rank = tuple(r if rng.uniform() < 0.8 else None for r in rank)
    return replace(case, params={**case.params, "input_rank": rank})


@feature("size")
def fewer_samples_than_inputs(rng: Rng, case: Case) -> Case | None:
    n = int(rng.integers(6, 12))
    d = case.X.shape[1] if case.modes else n + int(rng.integers(1, 15))
    return resized(rng, case, min(n, d - 1), d, case.shape) if d > 6 else None


@feature("size")
def few_samples(rng: Rng, case: Case) -> Case:
    return resized(rng, case, int(rng.integers(4, 8)), case.X.shape[1], case.shape)


@feature("size")
def as_many_samples_as_inputs(rng: Rng, case: Case) -> Case | None:
    n = case.X.shape[1] if case.modes else int(rng.integers(6, 12))
    return resized(rng, case, n, n, case.shape) if n >= 6 else None


@feature("size")
def one_input(rng: Rng, case: Case) -> Case | None:
    return None if case.modes else resized(rng, case, case.n, 1, case.shape)


@feature("size")
def sizes_of_another_algorithm(rng: Rng, case: Case) -> Case | None:
    n = int(rng.choice([63, 64, 65, 66]))
    return resized(rng, case, n, n - int(rng.integers(3)), case.shape) if not case.modes else None


# ---------------------------------------------------------------- parameters


@feature("ranks", lambda row: row.searches and "max_rank" in row.params)
def limited_ranks(rng: Rng, case: Case) -> Case:
    return replace(case, params={**case.params, "max_rank": int(rng.integers(1, 4))})


@feature("ranks", lambda row: "rank" in row.params and "alpha" in row.params)
def given_ranks(rng: Rng, case: Case) -> Case:
    tensor = "HOLRR" in type(case.row.estimator).__name__
    rank: Any = [0.9, 1, 3, None][rng.integers(4)]
    if tensor and rng.uniform() < 0.5:
        sizes = (case.X.shape[1], *case.shape)
        rank = tuple([None, 0.8, 1, min(2, d)][rng.integers(4)] for d in sizes)
    return replace(case, params={**case.params, "rank": rank})


@feature("penalty", lambda row: "alpha" in row.params and not kernel(row))
def no_penalty(rng: Rng, case: Case) -> Case:
    return replace(case, params={**case.params, "alpha": 0.0})


@feature("selection", lambda row: "max_rank" in row.params)
def selections(rng: Rng, case: Case) -> Case:
    return replace(
        case, params={**case.params, "selection": str(rng.choice(["min", "1se", "auto"]))}
    )


@feature("refine", has("refine"))
def refinement(rng: Rng, case: Case) -> Case:
    return replace(case, params={**case.params, "refine": True})


@feature("intercept")
def no_intercept(rng: Rng, case: Case) -> Case:
    return replace(case, params={**case.params, "fit_intercept": False})


@feature("centring", has("center_kernel"))
def kernel_not_centred(rng: Rng, case: Case) -> Case:
    return replace(case, params={**case.params, "center_kernel": False})


@feature("grid", lambda row: "alphas" in row.params)
def default_grid(rng: Rng, case: Case) -> Case:
    return replace(case, params={**case.params, "alphas": None})


@feature("kernel", kernel)
def other_kernels(rng: Rng, case: Case) -> Case:
    name = str(rng.choice(["linear", "poly", "laplacian"]))
    many = "gammas" in case.row.params
    gamma = {"gammas": [0.1]} if many else {"gamma": 0.1}
    return replace(case, params={**case.params, "kernel": name, **gamma})


@feature("kernel", kernel)
def landmarks(rng: Rng, case: Case) -> Case:
    k = int(rng.integers(2, min(case.n, 8)))
    return replace(case, landmarks=case.X[rng.permutation(case.n)[:k]] + 0.1)


@feature("splits", lambda row: row.searches)
def other_splits(rng: Rng, case: Case) -> Case:
    n, seed = case.n, int(rng.integers(1000))
    groups = np.arange(n) * 4 // n
    splitters = [
        KFold(2, shuffle=True, random_state=seed),
        GroupKFold(3),
        RepeatedKFold(n_splits=2, n_repeats=2, random_state=seed),
        ShuffleSplit(3, test_size=0.3, random_state=seed),
        TimeSeriesSplit(2),
        LeaveOneOut(),
    ]
    which = splitters[rng.integers(len(splitters))]
    options = {"groups": groups} if isinstance(which, GroupKFold) else {}
    return replace(case, splits=list(which.split(np.empty(n), **options)))


# ---------------------------------------------------------------- structure of the inputs


@feature("blocks", linear_family)
def penalties_of_blocks(rng: Rng, case: Case) -> Case:
    d = case.X.shape[1]
    if isinstance(case.modes, dict):
        block_of = np.repeat(np.arange(3), [int(np.prod(s)) for s in case.modes.values()])
    else:
        block_of = rng.integers(0, 2, size=d)
        block_of[:2] = [0, 1][:d]
    if case.row.searches:
        return replace(case, block_of=block_of)
    alphas = rng.choice([0.2, 1.0, 7.0, np.inf], size=block_of.max() + 1)
    alphas[rng.integers(alphas.size)] = 0.7
    return replace(case, block_of=block_of, block_alphas=alphas.tolist())


@feature("blocks", lambda row: linear_family(row) and not row.searches)
def block_without_penalty(rng: Rng, case: Case) -> Case:
    case = penalties_of_blocks(rng, case)
    alphas = list(case.block_alphas)
    alphas[int(rng.integers(len(alphas)))] = 0.0
    return replace(case, block_alphas=alphas)


@feature("own", has("own"))
def own_inputs(rng: Rng, case: Case) -> Case:
    """An own input for most outputs, with an effect that has no low rank."""
    d, D = case.X.shape[1], int(np.prod(case.shape))
    own = np.zeros((d, D), dtype=bool)
    own[np.arange(D) % d, np.arange(D)] = True
    if D > 1 and rng.uniform() < 0.3:
        own[:, rng.integers(D)] = False
    own = own.reshape(d, *case.shape)
    effect = np.where(own, 2 + rng.uniform(size=own.shape), 0.0)
    return replace(case, own=own, Y=case.Y + np.tensordot(case.X, effect, 1))


@feature("constant inputs")
def constant_input(rng: Rng, case: Case) -> Case:
    """It has other values in the inputs of predictions."""
    X, j = case.X.copy(), int(rng.integers(case.X.shape[1]))
    X[:, j] = rng.choice([2.5, 0.1, 0.0])
    return replace(case, X=X)


# ---------------------------------------------------------------- structure of the outputs


@feature("constant outputs")
def constant_output(rng: Rng, case: Case) -> Case:
    Y = case.Y.copy()
    if len(case.shape) == 0:
        Y[:] = 2.5
    else:
        Y[(slice(None), *(int(rng.integers(k)) for k in case.shape))] = rng.choice([2.5, 0.1, 0])
    return replace(case, Y=Y)


@feature("signal")
def outputs_without_signal(rng: Rng, case: Case) -> Case:
    return replace(case, Y=rng.normal(size=case.Y.shape))


@feature("units", lambda row: row.has_noise)
def extreme_units(rng: Rng, case: Case) -> Case:
    unit = 10.0 ** rng.uniform(-100, 100)
    return replace(case, Y=case.Y * unit, scale=unit)


@feature("penalty", lambda row: type(row.estimator).__name__ == "RLS")
def penalty_of_each_output(rng: Rng, case: Case) -> Case | None:
    if not case.shape:
        return None
    return replace(case, alpha_of=rng.choice([0.1, 1.0, 5.0], size=case.shape))


@feature("penalty", has("alpha_per_output"))
def searched_penalty_of_each_output(rng: Rng, case: Case) -> Case:
    return replace(case, params={**case.params, "alpha_per_output": True})


@feature("output weights", lambda row: row.weighs_outputs)
def weights_of_outputs(rng: Rng, case: Case) -> Case | None:
    if not case.shape:
        return None
    weights = [rng.uniform(0.3, 3.0, size=k) if rng.uniform() < 0.7 else None for k in case.shape]
    if weights[0] is not None and weights[0].size > 1 and rng.uniform() < 0.4:
        weights[0][rng.integers(weights[0].size)] = 0
    return replace(case, output_weight=weights)


@feature("never observed", lambda row: row.takes_missing)
def never_observed_slices(rng: Rng, case: Case) -> Case | None:
    mode = int(rng.integers(len(case.shape))) if case.shape else 0
    if not case.shape or case.shape[mode] < 2:
        return None
    Y = case.Y.copy()
    np.moveaxis(Y, 1 + mode, 0)[rng.integers(case.shape[mode])] = np.nan
    return replace(case, Y=Y, params={**case.params, "missing": "ignore"})


@feature("never observed", lambda row: row.takes_missing)
def never_observed_cells(rng: Rng, case: Case) -> Case | None:
    if int(np.prod(case.shape)) < 2:
        return None
    Y = case.Y.copy()
    Y[(slice(None), *(int(rng.integers(k)) for k in case.shape))] = np.nan
    return replace(case, Y=Y, params={**case.params, "missing": "ignore"})


@feature("missing", lambda row: row.takes_missing)
def missing_outputs(rng: Rng, case: Case) -> Case:
    Y = np.where(rng.uniform(size=case.Y.shape) < 0.15, np.nan, case.Y)
    Y[0] = case.Y[0]  # what can be observed is observed in one sample of each fold or more
    Y[case.n // 2] = case.Y[case.n // 2]
    Y[-1] = case.Y[-1]
    return replace(case, Y=Y, params={**case.params, "missing": "ignore"})


# ---------------------------------------------------------------- samples


@feature("weights")
def integer_weights(rng: Rng, case: Case) -> Case:
    w = rng.integers(0 if case.n > 5 else 1, 4, size=case.n).astype(float)
    w[:4] = np.maximum(w[:4], 1)
    return replace(case, w=w)


@feature("weights")
def real_weights(rng: Rng, case: Case) -> Case:
    return replace(case, w=rng.uniform(0.2, 3.0, size=case.n))


@feature("weights")
def rows_without_weight(rng: Rng, case: Case) -> Case | None:
    if case.n < 6:
        return None
    w = rng.uniform(0.2, 3.0, size=case.n) if rng.uniform() < 0.5 else np.ones(case.n)
    w[rng.uniform(size=case.n) < 0.3] = 0
    w[:4] = np.maximum(w[:4], 1)
    w[4] = 0
    return replace(case, w=w)


@feature("loss", has("loss"))
def robust_loss(rng: Rng, case: Case) -> Case:
    Y = case.Y.copy()
    Y[rng.integers(case.n)] += 5 * case.scale
    return replace(case, Y=Y, params={**case.params, "loss": "huber"})


# ---------------------------------------------------------------- types and sources


def labelled(name: str, possible: Callable[[Case], bool]) -> None:
    def apply(rng: Rng, case: Case) -> Case | None:
        return replace(case, labels=name) if possible(case) else None

    FEATURES[f"as_{name}"] = Feature(f"as_{name}", "labels", apply, lambda row: True)


labelled("pandas", lambda case: not isinstance(case.modes, dict))
labelled("polars", lambda case: case.modes is None and len(case.shape) == 1)
labelled("xarray", lambda case: True)
labelled("Dataset", lambda case: len(case.shape) > 0)
labelled("flat", lambda case: len(case.shape) > 0)


@feature("labels", lambda row: row.params.get("kernel") == "rbf")
def precomputed_kernel(rng: Rng, case: Case) -> Case | None:
    gamma = {"gammas": [0.1]} if case.row.searches else {"gamma": 0.1}
    if case.modes is not None:
        return None
    return replace(case, labels="precomputed", params={**case.params, **gamma})


@feature("precision", lambda row: "MLMT" not in row.id)  # rounding decides among its optima
def single_precision(rng: Rng, case: Case) -> Case:
    """The same numbers, which fit into both types."""
    X, Y, Q = (A.astype(np.float32).astype(float) for A in (case.X, case.Y, case.Q))
    landmarks = case.landmarks if case.landmarks is None else np.float32(case.landmarks)
    return replace(case, X=X, Y=Y, Q=Q, landmarks=landmarks, dtype=np.float32)


@feature("transformer")
def standardized(rng: Rng, case: Case) -> Case:
    return replace(case, transformer="Standardizer")


@feature("transformer")
def weights_of_inputs(rng: Rng, case: Case) -> Case | None:
    """Some of them zero."""
    d = case.X.shape[1]
    if isinstance(case.modes, dict) or d < 2:
        return None
    weight = rng.uniform(0.3, 2.0, size=d)
    weight[rng.integers(d)] = 0
    return replace(case, transformer="Standardizer", input_weight=weight)


@feature("transformer")
def normalized_spectra(rng: Rng, case: Case) -> Case | None:
    wide = case.modes is None and case.X.shape[1] > 2
    return replace(case, transformer="Along") if wide else None


def streams(case: Case) -> bool:
    return (case.row.streams or case.landmarks is not None) and not case.robust


@feature("source")
def on_disk(rng: Rng, case: Case) -> Case | None:
    return replace(case, source=str(rng.choice(["disk", "hdf5"]))) if streams(case) else None


@feature("source")
def in_dask_arrays(rng: Rng, case: Case) -> Case | None:
    return replace(case, source="dask") if streams(case) else None


@feature("source", lambda row: row.takes_sparse)
def sparse_inputs(rng: Rng, case: Case) -> Case | None:
    if case.modes is not None:
        return None
    X = np.where(rng.uniform(size=case.X.shape) < 0.6, 0.0, case.X)
    return replace(case, X=X, source="sparse")


def parts_have_weight(case: Case) -> bool:
    """Data that arrive in parts need a sample of positive weight in each part."""
    return case.w is None or all(case.w[rows].any() for rows in parts_of(case))


@feature("source")
def batches(rng: Rng, case: Case) -> Case | None:
    single = not case.row.searches and streams(case) and parts_have_weight(case)
    return replace(case, source="batches") if single else None


@feature("source")
def batches_with_decay(rng: Rng, case: Case) -> Case | None:
    found = batches(rng, case)
    return found and replace(found, decay=0.7)


@feature("source", lambda row: row.takes_moments)
def sums_of_moments(rng: Rng, case: Case) -> Case | None:
    possible = not case.robust and parts_have_weight(case)
    return replace(case, source="moments") if possible else None


@feature("source", lambda row: row.takes_moments)
def rolling_window(rng: Rng, case: Case) -> Case | None:
    possible = not case.robust and case.n >= 9 and parts_have_weight(case)
    return replace(case, source="window") if possible else None


@feature("source", lambda row: row.takes_fold_moments)
def moments_of_folds(rng: Rng, case: Case) -> Case | None:
    return None if case.robust else replace(case, source="fold moments")


# ---------------------------------------------------------------- what cannot be combined

SUMS = ("batches", "batches_with_decay", "sums_of_moments", "rolling_window", "moments_of_folds")
READ = ("on_disk", "in_dask_arrays", "sparse_inputs")
GIVEN_UP = ("never_observed_slices", "never_observed_cells", "missing_outputs")
LABELLED = ("as_pandas", "as_polars", "as_xarray", "as_Dataset", "as_flat", "precomputed_kernel")

# Features, features that they exclude, and where this is documented.
EXCLUDED: list[tuple[tuple[str, ...], tuple[str, ...], str]] = [
    (("missing_outputs",), SUMS + READ, "missing.md, sparse.md: missing in every sample only"),
    (("robust_loss",), SUMS + READ, "robust.md: data that are not in memory"),
    (("weights_of_outputs",), SUMS, "missing.md: moments cannot be weighted"),
    (GIVEN_UP, ("block_without_penalty",), "blocks.md: zero requires complete outputs"),
    (GIVEN_UP, ("searched_penalty_of_each_output",), "RLSCV: complete outputs"),
    (GIVEN_UP, ("penalty_of_each_output",), "the error says so, and the documentation does not"),
    (("own_inputs",), ("block_without_penalty",), "own_inputs.md: limits"),
    (
        ("penalties_of_blocks", "block_without_penalty", "selections"),
        ("searched_penalty_of_each_output", "penalty_of_each_output"),
        "RLSCV, RLS: cannot be combined",
    ),
    (LABELLED, SUMS + READ, "streaming.md: arrays"),
    (
        ("standardized", "weights_of_inputs", "normalized_spectra"),
        SUMS + READ,
        "the whole data are transformed",
    ),
    (("tensor_inputs", "named_blocks_of_inputs"), READ + SUMS, "streaming.md: shapes of X"),
    (("low_input_rank",), ("sparse_inputs", "as_polars"), "these inputs have no modes"),
    (("extreme_units",), ("single_precision",), "beyond the range of the type"),
    (
        ("precomputed_kernel",),
        (
            *("standardized", "weights_of_inputs", "normalized_spectra"),
            *("landmarks", "other_kernels", "single_precision"),
        ),
        "kernels.md: X is the Gram matrix",
    ),
    (("other_splits",), ("moments_of_folds", "landmarks"), "folds that divide the data"),
]


def excluded(a: str, b: str) -> bool:
    return any((a in x and b in y) or (b in x and a in y) for x, y, _ in EXCLUDED)


def compatible(row: Row, names: list[str]) -> bool:
    """Whether the documentation lets the features be combined."""
    never = {"never_observed_slices", "never_observed_cells"} & set(names)
    if row.searches and never and "own_inputs" in names:
        return False  # own_inputs.md: searches with own inputs
    if row.params.get("subspaces") == "response" and {"own_inputs", *GIVEN_UP} & set(names):
        return False  # own_inputs.md, missing.md
    if never and "own_inputs" in names and set(SUMS + READ) & set(names):
        return False  # own_inputs.md: with missing outputs, they need the data in memory
    if row.params.get("subspaces") == "response" and "block_without_penalty" in names:
        return False  # the error says so, and the documentation does not
    if row.robust and set(SUMS + READ) & set(names):
        return False
    slots = [FEATURES[name].slot for name in names]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    return len(set(slots)) == len(slots) and not any(excluded(a, b) for a, b in pairs)


def key(words: str) -> list[int]:
    return list(words.encode())


def build(row: Row, names: list[str] | tuple[str, ...], seed: int) -> Case | None:
    """The case of an estimator with these features, or None where it cannot have all of them.

    A feature has its own generator: another feature does not change what it draws.
    """
    if not compatible(row, list(names)):
        return None
    case = plain_case(np.random.default_rng([seed, 0]), row)
    for name, one in FEATURES.items():  # in the order of their definition
        if name in names:
            found = one.apply(np.random.default_rng([seed, *key(name)]), case)
            if found is None:
                return None
            case = found
    if case.unseen.all():
        return None
    return settled(replace(case, features=tuple(name for name in FEATURES if name in names)))


# Slots from which a feature is often drawn in addition: a pair then is a triple.
OFTEN = ("size", "weights", "constant inputs")


def draw(seed: int) -> Case:
    """An estimator, and two or three features that it can have together, or a few more."""
    rng = np.random.default_rng([seed, 1])
    row = CANDIDATES[rng.integers(len(CANDIDATES))]
    suited = [name for name, one in FEATURES.items() if one.suits(row)]
    while True:
        names = [str(name) for name in rng.choice(suited, rng.integers(2, 4), replace=False)]
        for slot in OFTEN:
            if rng.uniform() < 0.25:
                names.append(str(rng.choice([n for n in suited if FEATURES[n].slot == slot])))
        case = build(row, sorted(set(names)), seed)
        if case is not None:
            return case
