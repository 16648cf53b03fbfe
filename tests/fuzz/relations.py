"""Relations that fits must have, and the cases to which they apply.

To add a relation, write a function below. One with `@same_fit` returns another case with the same
fit: an `Other` whose observations, brought back, equal those of the case. One with `@check` gets
the fitted model and raises where it is wrong.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from naive_choice import crossed
from paired import KINDS, POWERS, SOURCES, Case, quiet
from sklearn.base import clone

import holrr
import reference
from registry import n_factors

Rng = np.random.Generator
Values = dict[str, Any]

INTERVALS = tuple(f"{end} {kind}" for kind in KINDS for end in ("lower", "upper"))
UNCERTAIN = ("std", "noise", *INTERVALS)
BY_OUTPUT = ("predict", *UNCERTAIN)


def unchanged(name: str, value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Other:
    """A case with the same fit, and how its observations become comparable.

    `back` turns what is observed of it into that of the original case, and `view` takes the part of
    the original observations that the other case has. Names in `skip` are not compared.
    """

    case: Case
    back: Callable[[str, Any], Any] = unchanged
    view: Callable[[str, Any], Any] = unchanged
    skip: tuple[str, ...] = ()
    tol: float = 0.0


@dataclass(frozen=True)
class Fitted:
    """A case, its model, and what is observed of it."""

    case: Case
    model: Any
    seen: Values


@dataclass(frozen=True)
class Relation:
    name: str
    applies: Callable[[Case], bool]
    verify: Callable[[Fitted, Rng], None]


RELATIONS: dict[str, Relation] = {}


def same_fit(applies: Callable[[Case], bool]) -> Callable[..., Any]:
    def add(make: Callable[[Case, Rng], Other]) -> Callable[[Case, Rng], Other]:
        def verify(fitted: Fitted, rng: Rng) -> None:
            compare(fitted, make(fitted.case, rng))

        RELATIONS[make.__name__] = Relation(make.__name__, applies, verify)
        return make

    return add


def check(applies: Callable[[Case], bool]) -> Callable[..., Any]:
    def add(verify: Callable[[Fitted, Rng], None]) -> Callable[[Fitted, Rng], None]:
        RELATIONS[verify.__name__] = Relation(verify.__name__, applies, verify)
        return verify

    return add


# ---------------------------------------------------------------- comparison


def near(name: str, found: Any, expected: Any, tol: float, unit: float) -> None:
    """Assert equality relative to the largest entry, or to the rounding of the data."""
    if isinstance(expected, (tuple, dict)) or name in ("rank_", "input_rank_"):
        assert found == expected, f"{name} is {found} instead of {expected}"
        return
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    assert found.shape == expected.shape, f"{name}: shape {found.shape}, not {expected.shape}"
    for what in (np.isnan, np.isposinf, np.isneginf):
        assert (what(found) == what(expected)).all(), f"{name}: {what.__name__} differs"
    finite = np.isfinite(expected)
    # Noise is the root of a sum of squares, of which an interpolating fit leaves rounding errors.
    least = unit if name in UNCERTAIN else 1e-2 * unit
    size = max(np.abs(expected[finite]).max(initial=0.0), least)
    gap = np.abs(found[finite] - expected[finite]).max(initial=0.0)
    assert gap <= tol * size, f"{name} differs by {gap / size:.2g} of its size"


def tied(case: Case, found: Any, expected: Any, surface: np.ndarray) -> bool:
    """Whether two searches chose differently among candidates that rounding cannot tell apart.

    `surface` has the errors that the first one found, in the units of the second one. Where both
    surfaces are equal up to rounding, "1se" differs only where a candidate is at its bound. With
    missing outputs, the errors of low ranks are those of fits that stop at a tolerance.
    """
    a, b = (getattr(model, "best_index_", None) for model in (found, expected))
    other = expected.cv_results_["mean_mse"]
    if a == b or surface.shape != other.shape:
        return False
    if case.imputes:
        return True
    if getattr(expected, "selection", "") == "1se":
        return bool(np.allclose(surface, other, rtol=1e-6, atol=0, equal_nan=True))
    # The grids can differ, too: they are refined around the best candidate.
    gaps = abs(other[a] - other[b]), abs(surface[a] - other[b])
    return bool(min(gaps) <= 1e-8 * abs(other[b]))


def stopped_alike(case: Case, found: Values, expected: Values) -> bool:
    """Whether iterations ended at objectives that are equal to their tolerance."""
    name = "held_out_mse_" if case.row.searches else "objective_"
    if not case.iterates or name not in expected:
        return False
    return bool(abs(found[name] - expected[name]) <= 1e-4 * abs(expected[name]))


def farthest(seen: Values, name: str) -> float:
    """How many times the noise the deviations of predictions are, at most, and at least one."""
    if name not in ("std", *INTERVALS):
        return 1.0
    some = np.isfinite(seen["std"]) & (seen["noise"] > 0)
    ratios = np.where(some, seen["std"], 0.0) / np.where(some, seen["noise"], 1.0)
    return float(np.max(ratios, initial=1.0))


def compare(fitted: Fitted, other: Other) -> None:
    model = other.case.model()
    found = other.case.observe(model)
    found = {name: other.back(name, value) for name, value in found.items()}
    expected = {name: other.view(name, value) for name, value in fitted.seen.items()}
    if fitted.case.row.searches:
        surface = other.back("held_out_mse_", model.cv_results_["mean_mse"])
        if tied(fitted.case, model, fitted.model, surface):
            return
    if stopped_alike(fitted.case, found, expected):
        return
    tol = max(fitted.case.tol, other.case.tol, other.tol)
    # The ranks of a penalised part that is zero are those of rounding errors.
    least = min(values.get("objective_", np.inf) for values in (found, expected))
    exact = least <= 1e-20 * fitted.case.scale**2
    skip = {*other.skip, *(["rank_"] if exact else [])}
    skip |= set(UNCERTAIN if fitted.case.interpolates else ())
    for name in expected:
        if name in found and name not in skip:
            unit = fitted.case.unit(name) * max(farthest(v, name) for v in (found, expected))
            near(name, found[name], expected[name], tol, unit)
    single = (expected.keys() ^ found.keys()) - set(other.skip) - {"input_rank_"}
    assert not single, f"only one of two fits has {sorted(single)}"


# ---------------------------------------------------------------- relations between two fits


def in_order(case: Case) -> bool:
    """The order of the samples matters to the source."""
    return case.decay < 1 or case.source == "window"


def penalised(case: Case) -> bool:
    return not case.row.has_noise


def of_neighbours(*cases: Case) -> tuple[str, ...]:
    """Intervals, where samples have other neighbours, on which their residuals depend."""
    return INTERVALS if any(case.neighbours_depend() for case in cases) else ()


@same_fit(lambda case: not in_order(case))
def permuted_rows(case: Case, rng: Rng) -> Other:
    order = rng.permutation(case.n)
    places = np.argsort(order)
    return Other(
        case.take(order),
        lambda name, v: v[places] if name == "robust_weight_" else v,
        skip=of_neighbours(case, case.take(order)),
    )


@same_fit(lambda case: bool(case.shape))
def permuted_outputs(case: Case, rng: Rng) -> Other:
    orders = [rng.permutation(k) for k in case.shape]
    grid = np.ix_(*orders)
    weights = case.output_weight and [
        v if v is None else v[order] for v, order in zip(case.output_weight, orders, strict=True)
    ]
    back = np.ix_(*map(np.argsort, orders))
    other = replace(
        case,
        Y=case.Y[(slice(None), *grid)],
        output_weight=weights,
        own=None if case.own is None else case.own[(slice(None), *grid)],
        alpha_of=None if case.alpha_of is None else case.alpha_of[grid],
    )
    return Other(other, lambda name, v: v[(..., *back)] if name in BY_OUTPUT else v)


def reordered_inputs(case: Case, order: np.ndarray) -> Case:
    return case.with_inputs(
        lambda A: A[:, order],
        input_weight=None if case.input_weight is None else case.input_weight[order],
        own=None if case.own is None else case.own[order],
        block_of=None if case.block_of is None else case.block_of[order],
    )


@same_fit(lambda case: not isinstance(case.modes, dict))
def permuted_inputs(case: Case, rng: Rng) -> Other:
    modes = case.modes or (case.X.shape[1],)
    grid = np.ix_(*(rng.permutation(k) for k in modes))
    order = np.arange(case.X.shape[1]).reshape(modes)[grid].ravel()
    return Other(reordered_inputs(case, order))


@same_fit(
    lambda case: (
        bool(case.shape)
        and not np.isnan(case.Y).any()
        and not case.robust
        and case.output_weight is None
        and case.own is None
        and case.alpha_of is None
        and not case.param("alpha_per_output")
        and not case.stacks
    )
)
def rotated_outputs(case: Case, rng: Rng) -> Other:
    """Along one mode; uncertainties belong to outputs, and not to directions of outputs.

    So do penalties of outputs, which are mixed with ranks.
    """
    mode = int(rng.integers(len(case.shape)))
    R = reference.random_orthonormal(rng, case.shape[mode], case.shape[mode])
    Y = reference.mode_product(case.Y, R, 1 + mode)

    def back(name: str, v: Any) -> Any:
        return reference.mode_product(v, R.T, 1 + mode) if name == "predict" else v

    return Other(replace(case, Y=Y), back, skip=UNCERTAIN)


@same_fit(
    lambda case: (
        case.param("kernel") in (None, "linear", "rbf", "poly")
        and case.block_of is None
        and case.own is None
        and case.transformer is None
        and case.source != "sparse"
        and not isinstance(case.modes, dict)
        # A rotated constant input varies by the rounding errors of its type.
        and not (case.dtype == np.float32 and (np.ptp(case.X, axis=0) == 0).any())
    )
)
def rotated_inputs(case: Case, rng: Rng) -> Other:
    modes = case.modes or (case.X.shape[1],)
    rotations = [reference.random_orthonormal(rng, k, k) for k in modes]
    Q = rotations[0]
    for R in rotations[1:]:
        Q = np.kron(Q, R)
    return Other(case.with_inputs(lambda A: A @ Q))


@same_fit(lambda case: True)
def units_of_outputs(case: Case, rng: Rng) -> Other:
    c = 10.0 ** rng.uniform(*(-3, 3) if case.dtype == np.float32 else (-40, 40))
    params = case.params | case.row.scaled(c, (case.X.shape[1], *case.shape))
    other = replace(case, Y=case.Y * c, scale=case.scale * c, params=params)

    def back(name: str, v: Any) -> Any:
        power = POWERS.get(name, 1)
        return v if power == 0 else v / c**power

    return Other(other, back)


@same_fit(
    lambda case: (
        case.full_rank
        and not case.row.searches
        and bool(case.shape)
        and not case.kernel
        and case.param("input_rank") is None
    )
)
def units_of_each_output(case: Case, rng: Rng) -> Other:
    c = 10.0 ** rng.uniform(-2, 2, size=case.shape)

    def back(name: str, v: Any) -> Any:
        return v / c if name in BY_OUTPUT else v

    other = replace(case, Y=case.Y * c)
    return Other(other, back, skip=("objective_", "lower_bound_"))


@same_fit(lambda case: case.transformer is None and case.labels != "precomputed")
def units_of_inputs(case: Case, rng: Rng) -> Other:
    c = 10.0 ** rng.uniform(*(-3, 3) if case.dtype == np.float32 else (-40, 40))
    other = case.with_inputs(lambda A: A * c)
    kernel = case.param("kernel")
    if kernel in (None, "linear"):
        other = other.with_penalties(c**2)
    powers = {"penalty": 1.0, "beta": 2 / n_factors((case.X.shape[1], *case.shape))}
    powers |= dict.fromkeys(("gamma", "gammas"), -1.0 if kernel == "laplacian" else -2.0)
    params = dict(other.params)
    for name, power in powers.items():
        value = case.param(name)
        if value is not None:
            many = isinstance(value, list)
            params[name] = [v * c**power for v in value] if many else value * c**power
    return Other(replace(other, params=params))


@same_fit(
    lambda case: (
        case.full_rank
        and not case.kernel
        and case.param("alpha") == 0
        and case.n_weighted > case.X.shape[1] + 2
        and case.dtype is float
        and not case.robust
        and case.param("input_rank") is None
        and case.transformer is None
        and case.block_of is case.own is case.alpha_of is None
    )
)
def units_of_each_input(case: Case, rng: Rng) -> Other:
    """Without a penalty the predictions do not depend on them."""
    units = 10.0 ** rng.uniform(-4.5, 4.5, size=case.X.shape[1])
    return Other(case.with_inputs(lambda A: A * units), tol=1e-5)


@same_fit(
    lambda case: (
        case.w is not None
        and bool((case.w == np.round(case.w)).all())
        and not case.robust
        and not in_order(case)
        and case.transformer is None
    )
)
def integer_weights_are_repetitions(case: Case, rng: Rng) -> Other:
    other = case.take(np.arange(case.n).repeat(case.w.astype(int)))
    return Other(replace(other, w=None), skip=INTERVALS)


def has_zeros(case: Case) -> bool:
    return case.w is not None and bool((case.w == 0).any()) and case.transformer is None


def changes_without_weight(case: Case) -> bool:
    """Values in rows of weight zero may be any; a Gram matrix of large ones is not symmetric."""
    return has_zeros(case) and case.labels != "precomputed"


@same_fit(lambda case: has_zeros(case) and not in_order(case))
def rows_of_weight_zero_left_out(case: Case, rng: Rng) -> Other:
    kept = np.flatnonzero(case.w)
    return Other(
        case.take(kept),
        view=lambda name, v: v[kept] if name == "robust_weight_" else v,
        skip=of_neighbours(case, case.take(kept)),
    )


@same_fit(changes_without_weight)
def values_in_rows_of_weight_zero(case: Case, rng: Rng) -> Other:
    X, Y, none = case.X.copy(), case.Y.copy(), case.w == 0
    X[none] += 10.0 ** rng.uniform(0, 6)
    Y[none] -= case.scale * 10.0 ** rng.uniform(0, 6)
    kept = ~none
    return Other(
        replace(case, X=X, Y=Y),
        lambda name, v: v[kept] if name == "robust_weight_" else v,
        lambda name, v: v[kept] if name == "robust_weight_" else v,
    )


@same_fit(lambda case: case.input_weight is not None)
def values_of_inputs_of_weight_zero(case: Case, rng: Rng) -> Other:
    none = case.input_weight == 0
    return Other(case.with_inputs(lambda A: np.where(none, np.sin(5 * A) + 3, A)))


@same_fit(lambda case: case.labels != "arrays")
def labelled_is_plain(case: Case, rng: Rng) -> Other:
    return Other(replace(case, labels="arrays"))


@same_fit(lambda case: case.source != "memory")
def source_is_memory(case: Case, rng: Rng) -> Other:
    other = replace(case, source="memory", w=case.effective_weights(), decay=1.0)
    # Decayed moments have an effective number of samples, and sums have no residuals to sort.
    sums = case.decay < 1 or (case.row.searches and case.source != "sparse")
    return Other(other, skip=UNCERTAIN if sums else ())


@same_fit(lambda case: case.dtype == np.float32)
def single_is_double_precision(case: Case, rng: Rng) -> Other:
    return Other(replace(case, dtype=float))


@check(lambda case: case.source != "batches")
def fitted_again(fitted: Fitted, rng: Rng) -> None:
    """A second fit of the same estimator forgets the first one."""
    case = fitted.case
    with quiet():
        model = SOURCES[case.source][0](case, deepcopy(fitted.model))
        found = case.plain(model.predict(case.query()), len(case.Q))
    near("predict", found, fitted.seen["predict"], 1e-12, case.scale)


def left_out_exactly(case: Case) -> bool:
    """The documentation says that the fit is that of `y` without the outputs."""
    if not case.unseen.any() or (case.incomplete and not case.full_rank):
        return False
    return "HOLRR" not in type(case.row.estimator).__name__ or case.slices_only


@same_fit(left_out_exactly)
def never_observed_left_out(case: Case, rng: Rng) -> Other:
    """The fit is that of `y` without outputs that are never observed, or have no weight."""
    seen = ~case.unseen
    if "HOLRR" in type(case.row.estimator).__name__:
        kept = np.ix_(*case.kept_slices)
        weights = case.output_weight and [
            v if v is None else v[k.ravel()] for v, k in zip(case.output_weight, kept, strict=True)
        ]
    else:
        kept, weights = (seen,), None
        if case.output_weight is not None:
            product = np.ones(case.shape)
            for mode, v in enumerate(case.output_weight):
                if v is not None:
                    product = np.moveaxis(np.moveaxis(product, mode, -1) * v, -1, mode)
            weights = [product[seen]]
    other = replace(
        case,
        Y=case.Y[(slice(None), *kept)],
        output_weight=weights,
        own=None if case.own is None else case.own[(slice(None), *kept)],
        alpha_of=None if case.alpha_of is None else case.alpha_of[kept],
        labels="arrays",
    )

    def view(name: str, v: Any) -> Any:
        return v[(..., *kept)] if name in BY_OUTPUT else v

    # The mean of the weights over the observed outputs is one, those of weight zero included.
    return Other(other, view=view, skip=("rank_", "lower_bound_", "objective_"))


def with_output(case: Case, value: float) -> Case:
    """The case with another constant output, or slice of them."""
    more = ((0, 0),) * len(case.shape) + ((0, 1),)
    own = case.own
    return replace(
        case,
        Y=np.pad(case.Y, more, constant_values=value),
        own=None if own is None else np.pad(own, more),
        alpha_of=None if case.alpha_of is None else np.pad(case.alpha_of, more[1:], mode="edge"),
    )


@same_fit(
    lambda case: (
        bool(case.shape)
        and case.param("fit_intercept")
        and not case.robust
        and case.output_weight is None
        and not penalised(case)
        and not case.incomplete
        and (case.full_rank or not np.isnan(case.Y).any())
        and not (case.row.searches and not case.full_rank and case.param("selection") != "min")
    )
)
def constant_output_added(case: Case, rng: Rng) -> Other:
    """The standard deviations of low-rank fits depend on the share of the parameters."""
    value = float(rng.choice([2.5, 0.1, 1e-160, 0.0])) * case.scale
    # The degrees of freedom of own inputs, too, are a mean over the outputs.
    alone = case.full_rank and case.own is None
    skip = ("rank_", *(INTERVALS[2:] if alone else UNCERTAIN))
    other = with_output(case, value)
    more = np.sum(~other.unseen) / np.sum(~case.unseen)

    def back(name: str, v: Any) -> Any:
        if name in BY_OUTPUT:
            return v[..., :-1]
        return v * more if name.endswith("mse_") else v

    return Other(other, back, skip=skip)


@same_fit(
    lambda case: (
        case.modes is None
        and not case.kernel
        and case.param("fit_intercept")
        and case.source != "sparse"
        and case.transformer is None
        and "MLMT" not in case.row.id
        and not (case.row.searches and (case.param("alphas") is None or case.own is not None))
        and not (case.param("selection") == "1se" and not case.full_rank)
        and case.param("max_rank") is None
        and not case.searches_blocks  # which starts from the variances of the blocks
    )
)
def constant_input_added(case: Case, rng: Rng) -> Other:
    value = float(rng.choice([2.5, 0.1, 0.0]))

    def wider(A: np.ndarray) -> np.ndarray:
        return np.hstack([A, np.full((len(A), 1), value)])

    other = case.with_inputs(
        wider,
        own=None if case.own is None else np.concatenate([case.own, case.own[:1] & False]),
        block_of=None if case.block_of is None else np.r_[case.block_of, case.block_of[:1]],
    )
    return Other(other, skip=("rank_",) if case.full_rank else ("rank_", *UNCERTAIN))


# ---------------------------------------------------------------- checks of one model


@check(lambda case: True)
def saved_is_loaded(fitted: Fitted, rng: Rng) -> None:
    case = fitted.case
    with tempfile.TemporaryDirectory() as folder, quiet():
        path = Path(folder) / "model"
        fitted.model.save(path)
        loaded = holrr.load(path)
    seen = case.observe(loaded)
    for name in fitted.seen.keys() & seen.keys():
        if isinstance(fitted.seen[name], (tuple, dict)):
            near(name, seen[name], fitted.seen[name], 0, 0)
        else:
            np.testing.assert_array_equal(seen[name], fitted.seen[name], err_msg=name)


@check(
    lambda case: (
        (not case.kernel or case.param("kernel") == "linear" or case.landmarks is not None)
        and case.labels in ("arrays", "flat", "xarray")
        and case.transformer is None
    )
)
def onnx_predicts_the_same(fitted: Fitted, rng: Rng) -> None:
    import onnxruntime

    case = fitted.case
    graph = holrr.to_onnx(fitted.model, dtype="float64").SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options)
    data = replace(case, labels="flat" if case.labels == "flat" else "arrays", dtype=float).query()
    (found,) = session.run(["Y"], data if isinstance(data, dict) else {"X": data})
    found = found.reshape(len(case.Q), *case.shape)
    tol = case.tol if case.dtype == np.float32 else 1e-9
    near("predict", found, fitted.seen["predict"], tol, case.scale)


@check(lambda case: case.dtype == np.float32 and case.labels not in ("flat", "precomputed"))
def single_precision_stays(fitted: Fitted, rng: Rng) -> None:
    with quiet():
        found = fitted.model.predict(fitted.case.query())
    kinds = found.dtypes if hasattr(found, "dtypes") else found.dtype
    kinds = kinds.values() if hasattr(kinds, "values") and not hasattr(kinds, "index") else kinds
    kinds = {str(kind).lower() for kind in np.atleast_1d(np.array(kinds, dtype=object)).ravel()}
    assert all("float32" in kind for kind in kinds), kinds


@check(lambda case: case.row.searches)
def predictions_are_those_of_the_best(fitted: Fitted, rng: Rng) -> None:
    case = fitted.case
    with quiet():
        found = case.plain(fitted.model.best_estimator_.predict(case.query()), len(case.Q))
    near("predict", found, fitted.seen["predict"], 1e-12, case.scale)


@check(lambda case: True)
def values_are_sane(fitted: Fitted, rng: Rng) -> None:
    """Predictions are known where outputs were observed, and deviations exceed the noise."""
    case, seen = fitted.case, fitted.seen
    assert (np.isnan(seen["predict"]) == case.unseen).all(), "NaN in other places than unseen"
    if "std" in seen:
        known = ~np.isnan(seen["std"])
        assert (seen["std"][known] >= 0).all()
        small = (seen["std"] < seen["noise"] * (1 - 1e-6)) & known
        assert not small.any(), "deviations of new observations are below the noise"


@check(lambda case: case.row.has_intervals)
def intervals_are_nested(fitted: Fitted, rng: Rng) -> None:
    """They contain the prediction, and grow with the coverage and with what they cover."""
    case, seen = fitted.case, fitted.seen
    slack = 1e-5 * case.scale if case.dtype == np.float32 else 1e-9 * case.scale
    widths = {}
    for kind in KINDS:
        lower, upper = seen[f"lower {kind}"], seen[f"upper {kind}"]
        known = ~case.unseen & np.isfinite(seen["predict"])
        assert not np.isnan(lower[known]).any(), f"{kind}: bounds are NaN"
        assert (lower[known] <= seen["predict"][known] + slack).all(), kind
        assert (upper[known] >= seen["predict"][known] - slack).all(), kind
        with quiet():
            ends = fitted.model.predict_interval(case.query(), 0.6, kind=kind)
        low, high = (case.plain(values, len(case.Q)) for values in ends)
        assert (low[known] <= lower[known] + slack).all(), f"{kind} does not grow with coverage"
        assert (high[known] >= upper[known] - slack).all(), f"{kind} does not grow with coverage"
        widths[kind] = (upper - lower)[known]
    several = np.sum(~case.unseen) > 1 and "constant_output" not in case.features
    full = case.n > 3 * case.X.shape[1] and np.isfinite(widths["simultaneous"]).all()
    if several and full:
        # The units of the scores differ, but not much where fits leave residuals.
        least = 0.9 * widths["pooled"].sum()
        assert widths["simultaneous"].sum() >= least, "simultaneous is narrower"


@check(lambda case: case.param("input_rank") not in (None, "auto"))
def input_ranks_are_kept(fitted: Fitted, rng: Rng) -> None:
    case = fitted.case
    asked = tuple(
        k if r is None else r for r, k in zip(case.param("input_rank"), case.modes, strict=True)
    )
    found = tuple(fitted.model.input_rank_)
    # Coefficients cannot have more directions than the other modes, or the samples, have together.
    outputs = max(int(np.sum(~case.unseen)) - ("constant_output" in case.features), 1)
    least = tuple(
        min(r, outputs * int(np.prod(asked[:k] + asked[k + 1 :])), case.n_weighted - 1)
        for k, r in enumerate(asked)
    )
    if {"constant_input", "constant_output"} & set(case.features) or case.block_of is not None:
        least = (1,) * len(asked)  # the data may not support more
    kept = all(a <= f <= b for a, f, b in zip(least, found, asked, strict=True))
    assert kept, f"input_rank_ is {found} instead of {asked}"
    # With penalties of blocks, the ranks are those of the scaled inputs.
    if case.block_of is not None or case.unseen.any() or case.dtype == np.float32:
        return
    coef = np.asarray(fitted.model.coef_)
    if case.own is not None and getattr(fitted.model, "own_coef_", None) is not None:
        coef = coef - np.asarray(fitted.model.own_coef_)
    if case.labels == "flat":
        coef = np.moveaxis(coef, 0, -1)
    coef = coef.reshape(*case.modes, -1)
    if np.abs(coef).max() > 1e-6 * case.scale:
        found = reference.multilinear_rank(coef)[: len(asked)]
        assert all(f <= a for f, a in zip(found, asked, strict=True)), (found, asked)


@check(
    lambda case: (
        "rank" in case.row.params
        and not case.kernel
        and case.row.has_noise
        and isinstance(case.param("rank"), (int, tuple))
    )
)
def ranks_are_not_exceeded(fitted: Fitted, rng: Rng) -> None:
    asked, found = fitted.case.param("rank"), fitted.model.rank_
    found = (found,) if isinstance(found, (int, np.integer)) else found
    asked = asked if isinstance(asked, tuple) else (asked,) * len(found)
    for f, a in zip(found, asked, strict=True):
        assert not isinstance(a, int) or f <= a, (found, asked)


@check(lambda case: case.block_of is not None and case.source != "sparse" and not case.unseen.all())
def parts_of_blocks_add_up(fitted: Fitted, rng: Rng) -> None:
    case, m = fitted.case, len(fitted.case.Q)
    with quiet():
        parts = fitted.model.predict_blocks(case.query())
        scores = fitted.model.score_blocks(case.inputs(case.X), case.outputs(), case.w)
        score = fitted.model.score(case.inputs(case.X), case.outputs(), case.w)
    if isinstance(parts, dict):
        total = sum(case.plain(part, m) for part in parts.values())
    else:
        total = case.plain(parts.sum("block", skipna=False), m)
    near("predict", total, fitted.seen["predict"], 1e-4 if case.tol > 1e-3 else 1e-9, case.scale)
    total = float(sum(scores.values()) if isinstance(scores, dict) else scores.sum())
    assert abs(total - score) <= 1e-6 * max(1, abs(score)), (total, score)


@check(
    lambda case: (
        case.alpha_of is not None
        and not case.robust
        and case.own is None
        and case.param("input_rank") is None  # whose directions depend on all outputs
    )
)
def penalties_of_outputs_are_separate_fits(fitted: Fitted, rng: Rng) -> None:
    """The fit of an output with its penalty is that of the output alone."""
    case = fitted.case
    at = tuple(int(rng.integers(k)) for k in case.shape)
    if case.unseen[at]:
        return
    alpha = {"alpha": float(case.alpha_of[at])}
    one = replace(
        case,
        Y=case.Y[(slice(None), *at)],
        params={**case.params, **alpha},
        alpha_of=None,
        output_weight=None,
        labels="arrays",
    )
    seen = one.observe(one.model())
    for name in ("predict", "noise", "std"):
        near(name, seen[name], fitted.seen[name][(..., *at)], case.tol, case.scale)


def folds_of(case: Case, model: Any) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Training and held-out rows of each fold, with weights of all rows."""
    w = np.ones(case.n) if case.w is None else case.w.astype(float)
    w = w * getattr(model, "robust_weight_", 1.0)
    w = w * ~np.isnan(case.Y).reshape(case.n, -1).all(axis=1)
    return [(a, b, w) for a, b in case.splits if w[a].any() and w[b].any()]


def error_of(case: Case, predicted: Any, train: Any, test: Any, w: np.ndarray) -> np.ndarray:
    """Parts of the outputs in the mean squared error of what is observed in a fold."""
    each = np.ones(case.shape)
    for mode, v in enumerate(case.output_weight or []):
        if v is not None:
            each = np.moveaxis(np.moveaxis(each, mode, -1) * v, -1, mode)
    known = ~np.isnan(case.Y[test]) & ~np.isnan(case.Y[train][w[train] > 0]).all(axis=0)
    share = np.where(known, w[test].reshape(-1, *(1,) * len(case.shape)) * each, 0.0)
    gaps = np.where(share > 0, case.Y[test] - predicted, 0.0) / case.scale
    return (share * gaps**2).sum(axis=0) / share.sum() * case.scale**2


def crossed_error(case: Case, model: Any, errors: Any) -> float:
    """Error of models of shape (n_folds, ...) that are chosen without the held-out samples."""
    return crossed(np.asarray(errors), [(a, b[w[b] > 0]) for a, b, w in folds_of(case, model)])


def plainly(case: Case) -> bool:
    return (
        case.row.searches
        and case.labels == "arrays"
        and case.transformer is None
        and case.landmarks is None
        and not (case.incomplete and not case.full_rank)
        and not (case.incomplete and case.output_weight is not None)
        and not (np.isnan(case.Y).any() and not case.full_rank and not left_out_exactly(case))
    )


@check(
    lambda case: (
        plainly(case) and not case.stacks and not (case.incomplete and case.block_of is not None)
    )
)
def held_out_errors_are_brute_force(fitted: Fitted, rng: Rng) -> None:
    """That of the chosen model, and that of models which are chosen without each fold."""
    case, model = fitted.case, fitted.model
    tol = max(case.tol, 1e-4 if case.searches_blocks else 0)
    if case.param("alpha_per_output"):
        return
    folds = folds_of(case, model)
    errors = [one_error(case, model.best_estimator_, *fold).sum() for fold in folds]
    near("best_score_", -model.best_score_, np.mean(errors), tol, case.scale**2)
    expected = -model.best_score_
    if case.param("selection") != "1se" or case.full_rank:
        expected = crossed_error(case, model, model.cv_results_["fold_mse"])
    near("held_out_mse_", model.held_out_mse_, expected, tol, case.scale**2)


@check(
    lambda case: (
        plainly(case)
        and bool(case.param("alpha_per_output"))
        and case.param("alphas") is not None
        and case.block_of is None
    )
)
def held_out_errors_of_outputs_are_brute_force(fitted: Fitted, rng: Rng) -> None:
    """Each output has the penalty of least error in the folds without the held-out samples."""
    case, model = fitted.case, fitted.model
    fit = clone(model.best_estimator_)
    folds, alphas = folds_of(case, model), model.alphas_
    errors = np.array(
        [[one_error(case, fit, *fold, alpha=float(a)) for a in alphas] for fold in folds]
    )
    each = [crossed_error(case, model, errors[(..., *at)]) for at in np.ndindex(*case.shape)]
    near("held_out_mse_", model.held_out_mse_, np.sum(each), case.tol, case.scale**2)


def one_error(
    case: Case, estimator: Any, train: Any, test: Any, w: Any, **params: Any
) -> np.ndarray:
    one = clone(estimator)
    plain = {"loss": "squared", "refine": False, **params}
    one.set_params(**{name: v for name, v in plain.items() if name in one.get_params()})
    memory = replace(case, source="memory")
    with quiet():
        X, Y = memory.inputs(case.X[train]), case.Y[train].astype(case.dtype)
        one.fit(X, Y, w[train])
        predicted = case.plain(one.predict(memory.inputs(case.X[test])), len(test))
    return error_of(case, predicted, train, test, w)


@check(lambda case: plainly(case) and case.param("fit_intercept"))
def null_error_is_brute_force(fitted: Fitted, rng: Rng) -> None:
    case, errors = fitted.case, []
    for train, test, w in folds_of(case, fitted.model):
        seen = np.where(np.isnan(case.Y[train]), 0.0, w[train].reshape(-1, *(1,) * len(case.shape)))
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (seen * np.nan_to_num(case.Y[train])).sum(axis=0) / seen.sum(axis=0)
        errors.append(error_of(case, mean, train, test, w).sum())
    near("null_mse_", fitted.model.null_mse_, np.mean(errors), min(case.tol, 1e-4), case.scale**2)


@check(
    lambda case: (
        plainly(case)
        and not case.kernel
        and case.own is None
        and case.block_of is None
        and not case.param("alpha_per_output")
        and (case.modes is None or case.param("input_rank") not in ("auto",))
    )
)
def ridge_error_is_brute_force(fitted: Fitted, rng: Rng) -> None:
    case, model = fitted.case, fitted.model
    one = holrr.RLS()
    shared = {
        name: value
        for name, value in model.best_estimator_.get_params().items()
        if name in one.get_params() and name not in ("alpha", "loss")
    }
    errors = [
        [one_error(case, one, *fold, **shared, alpha=float(alpha)).sum() for alpha in model.alphas_]
        for fold in folds_of(case, model)
    ]
    expected = crossed_error(case, model, errors)
    near("ridge_mse_", model.ridge_mse_, expected, case.tol, case.scale**2)


# ---------------------------------------------------------------- all of them


def failures_of(case: Case, seed: int, names: list[str] | None = None) -> dict[str, str]:
    """Relations that do not hold, with the reason; "fit" where nothing can be fitted."""
    try:
        model = case.model()
        fitted = Fitted(case, model, case.observe(model))
    except Exception as error:
        return {"fit": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    found = {}
    for name, relation in RELATIONS.items():
        if names is not None and name not in names:
            continue
        if not relation.applies(case):
            continue
        try:
            relation.verify(fitted, np.random.default_rng([seed, 2, *name.encode()]))
        except Exception as error:
            found[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return found
