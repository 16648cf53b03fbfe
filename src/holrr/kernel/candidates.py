"""Candidate kernels of a search, with widths scaled to the data by default."""

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
from ..streaming.chunks import Chunks
from .gram import KernelFunction, centred_gram

__all__ = ["KernelSpec", "check_kernels", "kernel_alphas", "kernel_function"]
__all__ += ["mean_eigenvalue", "median_gamma"]

# {"kernel": name or callable, "gamma": ..., "degree": ..., "coef0": ..., "kernel_params": ...}
KernelSpec = dict[str, Any]

_PARAMETERS = ("gamma", "degree", "coef0", "kernel_params")
# Multiples of one over the median distance; optimal widths tend to be larger than distances.
_RELATIVE_GAMMAS = np.logspace(-2, 0.5, 6)
# Products with the relative gammas are still finite.
_LARGEST_GAMMA = 1e307
_WIDTHS = {"rbf": "sqeuclidean", "laplacian": "cityblock"}
# Number of samples that determine the scales of the data.
_SOME = 500


def kernel_function(spec: KernelSpec) -> KernelFunction:
    """Return the kernel of a specification, whose parameters are those of `KernelRidge`."""
    params = _complete({"degree": 3, "coef0": 1, **spec})
    name = params.pop("kernel")
    if callable(name):
        return KernelFunction(name, dict(params["kernel_params"] or {}))
    return KernelFunction(name, {k: v for k, v in params.items() if v is not None})  # else defaults


def check_kernels(
    kernel: Any, default: KernelSpec, gammas: Any, X: Array, w: Array | None = None
) -> list[KernelSpec]:
    """Return all candidate kernels, each with all its parameters.

    Parameters
    ----------
    kernel : str, callable, or list of names, callables and dicts
        Kernel or candidates. A dict has the key "kernel" and some of the parameters.
    default : dict
        Parameters that candidates do not set themselves.
    gammas : None, float or sequence of floats
        Values of gamma for all candidates that have this parameter and do not set it. None scales
        them to the data for "rbf" and "laplacian", and is the default of other kernels.
    X : array of shape (n_samples, n_features)
        Inputs.
    w : array of shape (n_samples,), optional
        Weights of the samples.
    """
    kernels = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
    if not kernels:
        raise ValueError("kernel must have at least one candidate; got an empty list.")
    found: list[KernelSpec] = []
    for place, entry in enumerate(kernels):
        spec = _check_entry(entry, place)
        if spec["kernel"] == "precomputed" and len(kernels) > 1:
            raise ValueError(
                "kernel cannot combine 'precomputed', where X is a Gram matrix, with other "
                "kernels, where X has the inputs. Run separate searches."
            )
        for gamma in _gammas(spec, gammas, X, w):
            found.append(_complete({**default, **spec, "gamma": gamma}))
    return found


def _complete(spec: KernelSpec) -> KernelSpec:
    """Return a kernel and all its parameters."""
    name = spec["kernel"]
    relevant = ("kernel_params",) if callable(name) else KERNEL_PARAMS.get(name, ())
    return {"kernel": name, **{k: spec.get(k) for k in _PARAMETERS if k in relevant}}


def _check_entry(entry: Any, place: int) -> KernelSpec:
    spec = dict(entry) if isinstance(entry, dict) else {"kernel": entry}
    unknown = set(spec) - {"kernel", *_PARAMETERS}
    if unknown or "kernel" not in spec:
        raise ValueError(
            f"kernel[{place}] must have the key 'kernel', and may have the keys "
            f"{', '.join(_PARAMETERS)}; got {entry!r}."
        )
    name = spec["kernel"]
    if not callable(name) and name not in (*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"):
        raise ValueError(
            f"kernel[{place}] is the unknown kernel {name!r}. Use "
            f"{', '.join(PAIRWISE_KERNEL_FUNCTIONS)}, precomputed, or a callable."
        )
    for key in ("gamma", "degree", "coef0"):
        value = spec.get(key)
        if value is not None and (not isinstance(value, Real) or not math.isfinite(value)):
            raise ValueError(f"kernel[{place}] must have a finite number as {key}; got {value!r}.")
    return spec


def _gammas(spec: KernelSpec, gammas: Any, X: Array, w: Array | None) -> list[float | None]:
    """Return the values of gamma to try with one kernel."""
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
    """Return one over the median distance (squared for "rbf") between different samples.

    The weight of a pair is the product of the weights of its samples, so that weights count
    repetitions.

    Examples
    --------
    >>> import numpy as np
    >>> median_gamma(np.array([[0.0], [1.0], [3.0]]))
    0.25
    """
    unit = unit_of(X)  # unit in which distances neither overflow nor underflow
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
            f"X is too {'large' if gamma == 0 else 'small'} for kernel={kernel!r}: with distances "
            f"of about {unit:.0e} between samples, gamma is not a finite number above 0. Scale X."
        )
    return gamma


def some_samples(data: Samples | Chunks) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Select at most 500 samples with positive weight, in equal steps, on the host.

    Returns
    -------
    some : array of shape (n, n_features)
        Inputs of the samples.
    weights : array of shape (n,)
        Weights of the samples.
    rows : array of shape (n,)
        Indices of the samples.
    """
    w = data.w
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
    """Return the mean eigenvalue of the Gram matrix of `some_samples`, over different samples."""
    if spec["kernel"] == "precomputed" and rows is not None:
        some = some[:, rows]
    K = centred_gram(kernel_function(spec), some, weights, center=center).K
    n_distinct = len(np.unique(some[weights > 0], axis=0))
    return float(np.trace(K)) / n_distinct


def kernel_alphas(means: Sequence[float]) -> np.ndarray:
    """Return penalties in half decades, from 1e-5 times the least mean to 1e2 times the largest.

    The `means` are the mean eigenvalues of the (centred) Gram matrix of each kernel.
    """
    usable = [m for m in means if m > 0 and math.isfinite(m)] or [1.0]
    low, high = 1e-5 * min(usable), 1e2 * max(usable)
    return np.geomspace(low, high, 1 + math.ceil(2 * math.log10(high / low) - 1e-9))
