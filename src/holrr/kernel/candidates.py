"""The kernels that a search tries, with widths scaled to the data by default."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import KERNEL_PARAMS, PAIRWISE_KERNEL_FUNCTIONS

from ..core.checks import unit_of
from ..core.namespace import Array, to_numpy
from ..data.arrays import take
from ..data.validation import Samples
from ..model_selection.grid import check_penalties
from ..streaming.stream import Stream
from .gram import KernelFunction, centred_gram

__all__ = ["KernelSpec", "check_kernels", "kernel_alphas", "kernel_function"]
__all__ += ["mean_eigenvalue", "median_gamma"]

# {"kernel": name or callable, "gamma": ..., "degree": ..., "coef0": ..., "kernel_params": ...}
KernelSpec = dict[str, Any]

_PARAMETERS = ("gamma", "degree", "coef0", "kernel_params")
# Relative to one over the median distance: optimal widths are rather larger than distances.
_RELATIVE_GAMMAS = np.logspace(-2, 0.5, 6)
# Times the relative ones still a number.
_LARGEST_GAMMA = 1e307
_WIDTHS = {"rbf": "sqeuclidean", "laplacian": "cityblock"}
# Samples from which the scales of the data are taken.
_SOME = 500


def kernel_function(spec: KernelSpec) -> KernelFunction:
    """The kernel of a specification, as `KernelRidge` understands the same parameters."""
    params = _complete({"degree": 3, "coef0": 1, **spec})
    name = params.pop("kernel")
    if callable(name):
        return KernelFunction(name, dict(params["kernel_params"] or {}))
    return KernelFunction(name, {k: v for k, v in params.items() if v is not None})  # else defaults


def check_kernels(
    kernels: Any, default: KernelSpec, gammas: Any, X: Array, w: Array | None = None
) -> list[KernelSpec]:
    """All candidates, each with all parameters that its kernel has.

    Parameters
    ----------
    kernels : None, or sequence of names, callables and dicts
        The latter hold "kernel" and some of its parameters. None for the one of `default`.
    default : dict
        The parameters of the candidates that do not have their own.
    gammas : None, float or sequence of floats
        Tried for all kernels that have this parameter and were not given one. None for those of
        the data where the kernel is "rbf" or "laplacian", and else for the kernel's default.
    X, w : arrays of shape (n_samples, n_features) and (n_samples,)
    """
    if kernels is None:
        kernels = [default["kernel"]]
    elif isinstance(kernels, (str, dict)) or not isinstance(kernels, Sequence) or not len(kernels):
        raise TypeError(
            f"kernels must be a list with a name, a callable or a dict for each candidate; got "
            f"{kernels!r}."
        )
    found: list[KernelSpec] = []
    for place, entry in enumerate(kernels):
        spec = _check_entry(entry, place)
        if spec["kernel"] == "precomputed" and len(kernels) > 1:
            raise ValueError("kernels cannot mix 'precomputed' with others, since X differs.")
        for gamma in _gammas(spec, gammas, X, w):
            found.append(_complete({**default, **spec, "gamma": gamma}))
    return found


def _complete(spec: KernelSpec) -> KernelSpec:
    """The kernel and all parameters that it has."""
    name = spec["kernel"]
    relevant = ("kernel_params",) if callable(name) else KERNEL_PARAMS.get(name, ())
    return {"kernel": name, **{k: spec.get(k) for k in _PARAMETERS if k in relevant}}


def _check_entry(entry: Any, place: int) -> KernelSpec:
    spec = dict(entry) if isinstance(entry, dict) else {"kernel": entry}
    unknown = set(spec) - {"kernel", *_PARAMETERS}
    if unknown or "kernel" not in spec:
        raise ValueError(
            f"kernels[{place}] must have the key 'kernel', and of other keys none but "
            f"{', '.join(_PARAMETERS)}; got {entry!r}."
        )
    name = spec["kernel"]
    if not callable(name) and name not in (*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"):
        raise ValueError(
            f"kernels[{place}] names {name!r}; known are {', '.join(PAIRWISE_KERNEL_FUNCTIONS)}, "
            f"precomputed, or a callable."
        )
    for key in ("gamma", "degree", "coef0"):
        value = spec.get(key)
        if value is not None and (not isinstance(value, Real) or not math.isfinite(value)):
            raise ValueError(f"kernels[{place}] has {key}={value!r}; it must be a finite number.")
    return spec


def _gammas(spec: KernelSpec, gammas: Any, X: Array, w: Array | None) -> list[float | None]:
    """The values of gamma to try with one kernel."""
    name = spec["kernel"]
    if "gamma" in spec or "gamma" not in KERNEL_PARAMS.get(name, ()):
        return [spec.get("gamma")]
    if gammas is not None:
        given = check_penalties(gammas, "gammas")
        assert given is not None
        return [float(g) for g in given]
    if name in _WIDTHS:
        return [float(g) for g in _RELATIVE_GAMMAS * median_gamma(X, w, name)]
    return [None]


def median_gamma(X: Array, w: Array | None = None, kernel: str = "rbf") -> float:
    """One over the median distance (for "rbf", its square) between samples that do not coincide.

    A pair weighs as much as its samples together, so that weights are repetitions.

    Examples
    --------
    >>> import numpy as np
    >>> median_gamma(np.array([[0.0], [1.0], [3.0]]))
    0.25
    """
    unit = unit_of(X)  # in which distances neither overflow nor vanish
    distances = pdist(X / unit, _WIDTHS[kernel])
    i, j = np.triu_indices(len(X), 1)
    pairs = np.ones(i.size) if w is None else w[i] * w[j]
    usable = (distances > 0) & np.isfinite(distances) & (pairs > 0)
    if not usable.any():
        return 1.0
    options: Any = {"weights": pairs[usable], "method": "inverted_cdf"}
    median = float(np.quantile(distances[usable], 0.5, **options))
    gamma = 1.0 / median / unit / (unit if kernel == "rbf" else 1.0)
    if not 0 < gamma < _LARGEST_GAMMA:
        raise ValueError(
            f"X is too {'large' if gamma == 0 else 'small'} for kernel={kernel!r}: no gamma suits "
            f"distances of about {unit:.0e} between samples. Scale X."
        )
    return gamma


def some_samples(data: Samples | Stream) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At most 500 inputs of samples with weight, in equal steps, on the host.

    Returns
    -------
    some : array of shape (n, n_features)
    weights : array of shape (n,)
    rows : array of shape (n,)
        Which samples these are.
    """
    w = data.w if isinstance(data, Samples) else data.weights
    rows = np.arange(data.n_samples) if w is None else np.flatnonzero(to_numpy(w) > 0)
    rows = rows[np.linspace(0, rows.size - 1, min(rows.size, _SOME)).astype(int)]
    some = take(data.X, rows) if isinstance(data, Samples) else data.input_rows(rows)
    weights = np.ones(rows.size) if w is None else to_numpy(w)[rows]
    return to_numpy(some).astype(np.float64), weights, rows


def mean_eigenvalue(
    spec: KernelSpec,
    some: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray | None = None,
    *,
    center: bool = True,
) -> float:
    """Of the Gram matrix of `some_samples`, counted once where they repeat each other."""
    if spec["kernel"] == "precomputed" and rows is not None:
        some = some[:, rows]
    K = centred_gram(kernel_function(spec), some, weights, center=center).K
    n_distinct = len(np.unique(some[weights > 0], axis=0))
    return float(np.trace(K)) / n_distinct


def kernel_alphas(means: Sequence[float]) -> np.ndarray:
    """Penalties in half decades: 1e-5 times the least mean eigenvalue to 1e2 times the largest.

    The `means` are those of the (centred) Gram matrix of each kernel.
    """
    usable = [m for m in means if m > 0 and math.isfinite(m)] or [1.0]
    low, high = 1e-5 * min(usable), 1e2 * max(usable)
    return np.geomspace(low, high, 1 + math.ceil(2 * math.log10(high / low) - 1e-9))
