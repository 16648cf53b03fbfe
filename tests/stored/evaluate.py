"""From a case (`draw.py`) to its results: data, calls of holrr, and a short form of each result."""

from __future__ import annotations

import functools
import inspect
import tempfile
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import holrr
from holrr.diagnostics import find_outliers, vip
from holrr.streaming import memory_budget

__all__ = ["evaluate", "make_data", "shortened"]

N_NEW = 5  # samples to predict
# Arrays with more entries are stored as their largest entry and N_PROJECTIONS random projections.
MOST_ENTRIES, N_PROJECTIONS = 24, 8


def present_parameters(cls: type, params: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """Translate the parameters of a case to those of the present code."""
    known, found = inspect.signature(cls).parameters, dict(params)
    if case["data"].get("dead") and case["form"] in ("numpy", "pandas"):
        # Columns of a matrix without values are left out only if the matrix is a field.
        found.setdefault("input_shape", tuple(case["data"]["inputs"]))
    if "missing" not in known:
        found.pop("missing", None)
    return found


# ---------------------------------------------------------------- data


def make_data(case: dict[str, Any], nudge: int = 0) -> dict[str, Any]:
    """Return the arrays of a case: X, Y, w, groups and new inputs, before their form is changed.

    With `nudge`, X and Y are multiplied by numbers that are 1 up to rounding, which changes the
    rounding of every operation, as another processor does.
    """
    options = case["data"]
    rng = np.random.default_rng(options["seed"])
    n, inputs, outputs = options["n"], options["inputs"], options["outputs"]
    kind, D = options.get("kind"), int(np.prod(outputs))
    X = rng.normal(size=(n + N_NEW, int(np.prod(inputs))))
    d = X.shape[1]
    if case["source"] == "sparse":
        X *= rng.uniform(size=X.shape) < 0.5
    else:
        X += options["offset"]
    if kind == "deficient":
        X[:, -1] = 2 * X[:, 0]
    if kind == "constant_input":
        X[:, 0] = 2.5
    # Two latent variables, with different strengths, and weaker dense coefficients.
    W = rng.normal(size=(d, 2)) @ np.diag([1.0, 0.5]) @ rng.normal(size=(2, D))
    W = (W + 0.2 * rng.normal(size=(d, D))) / np.sqrt(d)
    signal = 0.0 if kind == "noise" else X @ W
    Y = signal + options["offset"] + options["noise"] * rng.normal(size=(n + N_NEW, D))
    if kind == "constant_output":
        Y[:, 0] = 2.5
    if options.get("outliers"):
        Y[rng.choice(n, 2, replace=False)] += 8 * rng.normal(size=(2, D))
    unit = {"large": 1e30, "small": 1e-30}.get(kind, 1.0)
    X, Y = unit * (1 + nudge * 2.0**-51) * X, unit * (1 - nudge * 2.0**-51) * Y
    new, X, Y = X[n:], X[:n], Y[:n]
    groups = rng.permutation(np.arange(n) % 6)
    Y = with_gaps(Y, options.get("missing"), rng, outputs)
    if options.get("dead"):
        dead = rng.choice(d, max(1, d // 4), replace=False)
        X[:, dead] = np.nan
        new = new.copy()
        new[:, dead] = np.nan
    if "gram" in options:
        gram = lambda A: np.exp(  # noqa: E731
            -options["gram"] / unit**2 * ((A[:, None] - X[None]) ** 2).sum(axis=2)
        )
        X, new = gram(X), gram(new)
    elif not options.get("flat_inputs"):
        X, new = X.reshape(n, *inputs), new.reshape(N_NEW, *inputs)
    if not options.get("flat"):
        Y = Y.reshape(n, *outputs)
    dtype = np.dtype(options.get("dtype", "float64"))
    w = some_weights(options.get("weights"), rng, n)
    found = {"X": X.astype(dtype), "Y": Y.astype(dtype), "new": new.astype(dtype), "w": w}
    return found | {"groups": groups if options.get("groups") else None}


def with_gaps(Y: np.ndarray, kind: str | None, rng: Any, outputs: list[int]) -> np.ndarray:
    """Set entries of a matrix of outputs to NaN."""
    gaps = np.zeros(Y.shape, bool)
    if kind in ("some", "never_some"):
        gaps |= rng.uniform(size=Y.shape) < 0.12
        gaps[np.arange(len(Y)), rng.integers(Y.shape[1], size=len(Y))] = False
    if kind == "rows":
        gaps[rng.choice(len(Y), 3, replace=False)] = True
    if kind == "never" and outputs and outputs[0] > 1:
        gaps.reshape(len(Y), *outputs)[:, -1] = True  # a slice of the first mode
    if kind in ("never_cells", "never_some") and Y.shape[1] > 1:
        gaps[:, rng.choice(Y.shape[1], max(1, Y.shape[1] // 6), replace=False)] = True
    return np.where(gaps, np.nan, Y)


def some_weights(kind: str | None, rng: Any, n: int) -> np.ndarray | None:
    if kind is None:
        return None
    if kind == "integer":
        return rng.integers(1, 4, n).astype(float)
    w = rng.uniform(0.2, 3.0, n)
    return np.where(rng.uniform(size=n) < 0.25, 0.0, w) if kind == "zero" else w


def in_form(case: dict[str, Any], data: dict[str, Any], params: dict[str, Any]) -> dict[str, Any]:
    """Give the arrays labels: pandas, xarray, or a dict of arrays."""
    form, found = case["form"], dict(data)
    if form == "numpy":
        return found
    names = ("X", "new")
    if form == "pandas":
        import pandas as pd

        for name in names:
            flat = data[name].reshape(len(data[name]), -1)
            found[name] = pd.DataFrame(flat, columns=[f"x{k}" for k in range(flat.shape[1])])
        Y = data["Y"]
        if Y.ndim == 1:
            found["Y"] = pd.Series(Y, name="y")
        else:
            flat = Y.reshape(len(Y), -1)
            found["Y"] = pd.DataFrame(flat, columns=[f"y{k}" for k in range(flat.shape[1])])
        return found
    flat = {name: data[name].reshape(len(data[name]), -1) for name in names}
    cut = max(1, flat["X"].shape[1] // 2)
    if form == "arrays":
        return found | {name: {"a": A[:, :cut], "b": A[:, cut:]} for name, A in flat.items()}
    import xarray as xr

    Y = data["Y"]
    dims = ["station", "variable", "level"][: Y.ndim - 1]
    found["Y"] = xr.DataArray(
        Y, {d: list(range(k)) for d, k in zip(dims, Y.shape[1:], strict=True)}, ["time", *dims]
    )
    for name in names:
        A = data[name]
        if form == "dataset":
            parts = {"a": flat[name][:, :cut], "b": flat[name][:, cut:]}
            found[name] = xr.Dataset({k: (("time", f"cell_{k}"), v) for k, v in parts.items()})
            continue
        modes = ["lag", "place"][: A.ndim - 1]
        if params.get("own") == "auto":
            modes[0] = "station"
        coords = {m: list(range(k)) for m, k in zip(modes, A.shape[1:], strict=True)}
        found[name] = xr.DataArray(A, coords, ["time", *modes])
    return found


# ---------------------------------------------------------------- fits


def keywords(case: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator, with objects in the places of their descriptions."""
    params = dict(case["params"])
    for name in ("rank", "max_rank", "input_rank", "input_shape", "output_shape"):
        if isinstance(params.get(name), list):
            params[name] = tuple(params[name])
    if isinstance(params.get("alpha"), dict):
        params["alpha"] = {k: float(v) for k, v in params["alpha"].items()}
    if isinstance(params.get("own"), list):
        own = params["own"]
        is_mask = isinstance(own[0][0], bool)
        params["own"] = np.array(own) if is_mask else [tuple(pair) for pair in own]
        if not is_mask and case["form"] == "xarray":
            params["own"] = "auto"
    weight = params.get("output_weight")
    if isinstance(weight, list) and any(f in case["features"] for f in ARRAY_WEIGHTS):
        params["output_weight"] = np.array(weight)
    if isinstance(params.get("landmarks"), list):
        params["landmarks"] = np.array(params["landmarks"])
    if isinstance(params.get("cv"), dict):
        from sklearn import model_selection

        cv = dict(params["cv"])
        params["cv"] = getattr(model_selection, cv.pop("kind"))(**cv)
    return params


ARRAY_WEIGHTS = ("output_weight=array", "output_weight=array_zeros")


def fitted(
    case: dict[str, Any], plain: dict[str, Any], stack: ExitStack
) -> tuple[Any, dict[str, Any]]:
    """Return the fitted model of a case, and its data in their form."""
    cls, params = getattr(holrr, case["estimator"]), keywords(case)
    data = in_form(case, plain, params)
    model = cls(**present_parameters(cls, params, case))
    X, Y, w, source = data["X"], data["Y"], data["w"], case["source"]
    n = len(data["Y"])
    parts = np.array_split(np.arange(n), 3)
    some = lambda A, part: None if A is None else rows(A, part)  # noqa: E731
    batches = [(rows(X, p), rows(Y, p), some(w, p)) for p in parts]
    if source in ("partial_fit", "decay"):
        for x, y, v in batches:
            model.partial_fit(x, y, v, **({"decay": 0.8} if source == "decay" else {}))
        return model, data
    if source in ("moments", "rolling", "batches", "fold_moments", "fold_moments_faded"):
        grams = params.get("subspaces") == "response"
        missing = params.get("missing", "raise")
        moments = lambda b: holrr.Moments.from_arrays(*b, grams, missing=missing)  # noqa: E731
        if source == "moments":
            return model.fit_moments(sum(0.9**k * moments(b) for k, b in enumerate(batches))), data
        if source == "batches":
            return model.fit_moments(holrr.Moments.from_batches(batches, grams)), data
        if source == "rolling":
            window = holrr.RollingMoments(2)
            for b in batches:
                window.append(moments(b))
            return model.fit_moments(window.total()), data
        faded = 0.7 if source == "fold_moments_faded" else 1.0
        return model.fit_fold_moments([faded**k * moments(b) for k, b in enumerate(batches)]), data
    if source == "sparse":
        from scipy.sparse import csr_array

        X = data["X"] = csr_array(X)
    if source == "dask":
        import dask
        import dask.array as da

        stack.enter_context(dask.config.set(scheduler="synchronous"))
        lazy = lambda A: da.from_array(A, chunks=(n // 3 + 1, *A.shape[1:]))  # noqa: E731
        X, Y = lazy(X), lazy(Y)
    if source == "memmap":
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(memory_budget(2**11))
        for name, A in (("X", X), ("Y", Y)):
            np.save(folder / f"{name}.npy", A)
        X, Y = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in "XY")
    groups = {} if data["groups"] is None else {"groups": data["groups"]}
    return model.fit(X, Y, w, **groups), data


def rows(A: Any, part: np.ndarray) -> Any:
    if isinstance(A, dict):
        return {name: rows(value, part) for name, value in A.items()}
    if hasattr(A, "isel"):
        return A.isel(time=part)
    return A.iloc[part] if hasattr(A, "iloc") else A[part]


# ---------------------------------------------------------------- results

# Attributes that are stored where a model has them.
ATTRIBUTES = ["coef_", "intercept_", "noise_", "objective_", "lower_bound_", "rank_"]
ATTRIBUTES += ["robust_weight_", "n_dropped_", "own_coef_", "input_rank_", "block_alphas_"]
ATTRIBUTES += ["alpha_", "held_out_mse_", "ridge_mse_", "null_mse_", "n_parameters_"]
ATTRIBUTES += ["stack_weights_", "stack_alphas_"]


def evaluate(case: dict[str, Any], nudge: int = 0) -> dict[str, Any]:
    """Return the results of a case: arrays, or the type of an error as a text after a "!"."""
    found: dict[str, Any] = {}

    def keep(name: str, call: Any) -> None:
        try:
            found[name] = call()
        except Exception as error:  # errors are results, too
            found[name] = f"!{type(error).__name__}"

    with warnings.catch_warnings(), ExitStack() as stack, np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        plain = make_data(case, nudge)
        found["scale_X"], found["scale_Y"] = (np.nanmax(np.abs(plain[k])) for k in "XY")
        try:
            model, data = fitted(case, plain, stack)
        except Exception as error:
            found["fit"] = f"!{type(error).__name__}"

            return found
        new = data["new"]
        keep("predict", lambda: numbers(model.predict(new)))
        found["dtype"] = str(np.asarray(found["predict"]).dtype)
        for name in ATTRIBUTES:
            try:
                value = getattr(model, name)
            except AttributeError:
                continue
            except Exception as error:
                found[name] = f"!{type(error).__name__}"
                continue
            if value is not None:
                found[name] = numbers(value)
        if (
            case["params"].get("kernel") in ("rbf", "laplacian")
            and "landmarks" not in case["params"]
        ):
            keep("dual_coef_", lambda: numbers(model.dual_coef_))
        if hasattr(model, "best_params_"):
            found |= choice(model)
        for call in case["calls"]:
            name = call if isinstance(call, str) else "_".join(call[:2])
            keep(name, functools.partial(after_fit, call, model, data, case))
    return found


def choice(model: Any) -> dict[str, Any]:
    """Return what a search has chosen, and the errors by which it is judged."""
    best = model.best_params_
    found: dict[str, Any] = {"error_at_choice": -float(model.best_score_)}
    errors = model.cv_results_.get("mean_mse")
    found["best_error"] = float(np.nanmin(np.asarray(errors)))
    if "rank" in best:
        found["best_rank"] = np.asarray(best["rank"], float)
    if "kernel" in best:
        found["kernel"] = str(best["kernel"])
        found["gamma"] = np.asarray(best.get("gamma") or np.nan, float)
    own = getattr(model.best_estimator_, "own", None)
    found["own"] = "no own inputs" if own is None else "own inputs"
    return found


def after_fit(call: Any, model: Any, data: dict[str, Any], case: dict[str, Any]) -> Any:
    X, Y, w, new = data["X"], data["Y"], data["w"], data["new"]
    weights = {} if w is None else {"sample_weight": w}
    if call == "score":
        return model.score(X, Y, w)
    if call == "std":
        return numbers(model.predict(new, return_std=True)[1])
    if call == "vip":
        return numbers(vip(model, X))
    if call == "score_blocks":
        return numbers(model.score_blocks(X, Y))
    if call == "outliers":
        outliers = find_outliers(model)
        return np.stack([outliers.residuals, outliers.limits])
    if call == "outliers_of_folds":
        outliers = find_outliers(model, X, Y, cv=3, **weights)
        return np.stack([outliers.residuals, outliers.limits])
    if call == "standard_errors":
        errors = holrr.standard_errors(model, X, Y, n_groups=4, stability=False, **weights)
        parts = [e.std_error for e in (errors.coef, errors.intercept) if e is not None]
        return np.concatenate([numbers(part).ravel() for part in parts])
    name, kind, coverage = call
    assert name == "interval"
    return np.stack([numbers(end) for end in model.predict_interval(new, coverage, kind)])


def numbers(value: Any) -> np.ndarray:
    """Return the numbers of an array, a labelled object, a dict or a list of arrays."""
    if isinstance(value, dict):
        return np.concatenate([numbers(v).ravel() for v in value.values()])
    if hasattr(value, "data_vars"):
        return np.concatenate([numbers(v).ravel() for v in value.data_vars.values()])
    if hasattr(value, "compute"):
        value = value.compute()
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if isinstance(value, np.ma.MaskedArray):
        value = value.filled(np.nan)
    if isinstance(value, (list, tuple)) and any(np.ndim(v) for v in value):
        return np.concatenate([numbers(v).ravel() for v in value])
    value = np.asarray(value)
    return value if value.dtype.kind == "f" else value.astype(float)


@functools.cache
def directions(size: int) -> np.ndarray:
    return np.random.default_rng([20261119, size]).normal(size=(N_PROJECTIONS + 1, size))


def shortened(value: Any) -> np.ndarray | str:
    """Return a text unchanged, and a small array as a vector; of a larger one, a summary.

    The summary is [largest entry, code of the places of NaN and infinity, projections onto Gaussian
    directions]. A change e of the array changes the projections by numbers with the variance |e|^2,
    so that the change of any entry is detected.
    """
    if isinstance(value, str):
        return value
    a = np.asarray(value, dtype=float).ravel()
    if a.size <= MOST_ENTRIES:
        return a
    kinds = np.isnan(a) + 2.0 * np.isposinf(a) + 3.0 * np.isneginf(a)
    a = np.where(np.isfinite(a), a, 0.0)
    W = directions(a.size)
    largest = float(np.abs(a).max())
    unit = largest or 1.0  # projections of very large and small numbers
    return np.array([largest, W[-1] @ kinds, *(unit * (W[:-1] @ (a / unit)))])
