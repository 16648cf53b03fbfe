"""Weights of outputs that are a product over the output modes.

With a weight ``v = v_1 x ... x v_p`` for every output, the objective is

    sum_j v_j ( sum_n w_n (y_nj - b_j - <x_n, W_j>)^2 + alpha ||W_j||^2 ) ,

which is the objective of outputs and coefficients times ``sqrt(v_i)`` along each mode i. Scaling
does not change the ranks, so the fit to scaled outputs, scaled back, is exact. Weights do not
change ridge regression, whose outputs are independent of each other.

An output of weight zero is excluded from the problem: its values have no influence, and its
prediction is NaN, as for an output that is never observed. An output of small weight is predicted
mostly from the other outputs.

Zeros need not be a product over the modes: the weight can be, for instance, a weight of the
latitude times a mask of land. Then the positive weights must be those of a product, and the outputs
of weight zero are treated as outputs that were never observed (`excluded_outputs`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsmr

from .namespace import Array, asarray_like, namespace_of, to_numpy
from .tensor import Tucker

__all__ = [
    "check_weight_vectors",
    "check_output_weight",
    "excluded_outputs",
    "product_of",
    "scale_outputs",
    "unscale",
]
__all__ += ["weight_of_outputs"]


def check_output_weight(output_weight: Any, shape: Sequence[int]) -> tuple[np.ndarray, ...]:
    """Check weights of outputs, and return them as one vector for each output mode.

    Parameters
    ----------
    output_weight : array of shape (d1, ..., dp), or list or tuple of p vectors
        The array must be a product over the modes, apart from entries that are zero or NaN. In a
        sequence, None means weights of one.
    shape : sequence of int
        ``(d1, ..., dp)``.

    Returns
    -------
    tuple of p arrays of shape (d_i,)
        Zero for slices without any positive weight.

    Examples
    --------
    >>> check_output_weight([[1, 2], None], (2, 3))
    (array([1., 2.]), array([1., 1., 1.]))
    >>> check_output_weight(np.array([[1.0, 2.0], [3.0, 6.0]]), (2, 2))
    (array([2., 6.]), array([0.5, 1. ]))
    """
    shape = tuple(shape)
    if not shape:
        raise ValueError(
            "output_weight needs outputs with at least one mode; y has scalar targets."
        )
    if _is_one_vector(output_weight, len(shape)):
        output_weight = [output_weight]
    if not isinstance(output_weight, (list, tuple)):
        return _factorised(_array(output_weight, shape))
    return check_weight_vectors(output_weight, shape, "output_weight", "output mode")


def check_weight_vectors(
    weight: Sequence[Any], shape: Sequence[int], name: str, mode: str
) -> tuple[np.ndarray, ...]:
    """Check weights that consist of one vector, or None for ones, for each mode of an array.

    Error messages call the weights `name` and each of the modes `mode`.

    >>> check_weight_vectors([[1, 2], None], (2, 3), "weight", "input mode")
    (array([1., 2.]), array([1., 1., 1.]))
    """
    if len(weight) != len(shape):
        raise ValueError(
            f"{name} must have {len(shape)} entries, one vector for each {mode}; got {len(weight)}."
        )
    pairs = zip(weight, shape, strict=True)
    return tuple(_vector(v, d, f"{name}[{i}]") for i, (v, d) in enumerate(pairs))


def _is_one_vector(output_weight: Any, p: int) -> bool:
    """Return whether the weights of a single mode were passed without an enclosing list."""
    return (
        p == 1
        and isinstance(output_weight, (list, tuple))
        and len(output_weight) > 0
        and np.ndim(output_weight[0]) == 0
        and output_weight[0] is not None
    )


def _vector(v: Any, size: int, name: str) -> np.ndarray:
    if v is None:
        return np.ones(size)
    v = _numbers(v, name)
    if v.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), the size of its mode; got {v.shape}.")
    return v


def _array(V: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return weights as an array of the shape of the outputs, with zeros for NaN."""
    V = _numbers(V, "output_weight", allow_nan=True)
    if V.shape != shape:
        raise ValueError(
            f"output_weight as an array must have the shape {shape} of the outputs; got {V.shape}. "
            f"To weight single modes, pass a list with one vector, or None, for each mode."
        )
    return np.nan_to_num(V, nan=0.0)


def _numbers(v: Any, name: str, *, allow_nan: bool = False) -> np.ndarray:
    try:
        v = np.asarray(to_numpy(v) if hasattr(v, "shape") else v)
        single = v.dtype == np.float32
        v = v.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must hold numbers; got {v!r}.") from error
    good = (np.isfinite(v) & (v >= 0)) | (allow_nan & np.isnan(v))
    if not good.all():
        raise ValueError(f"{name} must be finite and at least 0 everywhere; got {v[~good][0]}.")
    if not (v > 0).any():
        what = "zero or NaN" if np.isnan(v).any() else "zero"
        raise ValueError(f"{name} is {what} everywhere; at least one weight must be positive.")
    return v.astype(np.float32) if single else v


def excluded_outputs(output_weight: Any, shape: Sequence[int]) -> np.ndarray:
    """Return the outputs of weight zero (or NaN) whose slices all contain positive weights.

    A product of one vector for each mode cannot be zero for these outputs only.

    Parameters
    ----------
    output_weight : as in `check_output_weight`
    shape : sequence of int
        ``(d1, ..., dp)``.

    Returns
    -------
    array of bool of shape (d1, ..., dp)

    Examples
    --------
    >>> excluded_outputs(np.array([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]]), (2, 3))
    array([[False, False, False],
           [False,  True, False]])
    """
    if isinstance(output_weight, (list, tuple)):
        return np.zeros(tuple(shape), dtype=bool)
    positive = _array(output_weight, tuple(shape)) > 0
    return _slices_with(positive) & ~positive


def _slices_with(positive: np.ndarray) -> np.ndarray:
    """Return the entries whose slices, along every mode, have some positive entry."""
    return reduce(np.multiply.outer, _some(positive))


def _some(positive: np.ndarray) -> list[np.ndarray]:
    """Return, for each mode, which slices have some positive entry."""
    modes = range(positive.ndim)
    others = [tuple(m for m in modes if m != mode) for mode in modes]
    return [np.asarray(positive.any(axis=axes)) for axes in others]


def _factorised(V: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the vectors whose product over the modes is `V`; the first contains the scale.

    If the zeros are not a product over the modes, the product is that of the positive entries.
    """
    rtol, V = math.sqrt(np.finfo(V.dtype).eps), V.astype(np.float64)
    positive = V > 0
    if (positive == _slices_with(positive)).all():
        top: tuple[Any, ...] = np.unravel_index(np.argmax(V), V.shape)
        fibres = [V[(*top[:i], slice(None), *top[i + 1 :])] for i in range(V.ndim)]
        vectors = [fibres[0], *(v / V[top] for v in fibres[1:])]
    else:
        vectors = _product_on(V, positive)
    product = np.where(positive, reduce(np.multiply.outer, vectors), 0.0)
    if not np.allclose(product, V, rtol=rtol, atol=0.0):
        at = tuple(int(i) for i in np.unravel_index(np.argmax(np.abs(product - V)), V.shape))
        raise ValueError(
            f"output_weight must be a product over the output modes, with a vector for each mode. "
            f"At index {at} it is {V[at]:g}, but the product that fits its other entries is "
            f"{product[at]:g}."
        )
    return tuple(vectors)


def _product_on(V: np.ndarray, positive: np.ndarray) -> list[np.ndarray]:
    """Return the vectors whose product is nearest to `V` on its positive entries, in logarithms.

    ``log V_ij = a_i + b_j`` is a consistent system of linear equations if `V` is a product. If the
    positive entries do not determine the vectors, the solution of least norm is used.
    """
    where, shape = np.nonzero(positive), V.shape
    first = np.cumsum([0, *shape[:-1]])
    columns = np.stack([index + start for index, start in zip(where, first, strict=True)], axis=1)
    rows = np.repeat(np.arange(len(columns)), V.ndim)
    A = csr_array((np.ones(columns.size), (rows, columns.ravel())), (len(columns), sum(shape)))
    eps = np.finfo(float).eps
    logs = lsmr(A, np.log(V[where]), atol=eps, btol=eps, conlim=0.0, maxiter=20 * sum(shape))[0]
    parts = np.split(np.exp(logs), first[1:])
    return [np.where(some, v, 0.0) for v, some in zip(parts, _some(positive), strict=True)]


def weight_of_outputs(output_weight: Any, shape: Sequence[int]) -> np.ndarray:
    """Return the weight of every output in an average, which need not be a product.

    Parameters
    ----------
    output_weight : array of shape (d1, ..., dp), or list or tuple of p vectors
        In a sequence, None means weights of one.
    shape : sequence of int
        ``(d1, ..., dp)``.

    Returns
    -------
    array of shape (d1, ..., dp)

    Examples
    --------
    >>> weight_of_outputs([[1, 2], None], (2, 3))
    array([[1., 1., 1.],
           [2., 2., 2.]])
    >>> weight_of_outputs(np.array([[1.0, 0.0], [0.0, 1.0]]), (2, 2))
    array([[1., 0.],
           [0., 1.]])
    """
    if isinstance(output_weight, (list, tuple)) or len(shape) < 2:
        return product_of(check_output_weight(output_weight, shape))
    v = _numbers(output_weight, "output_weight")
    if v.shape != tuple(shape):
        raise ValueError(
            f"output_weight as an array must have the shape {tuple(shape)} of the outputs; got "
            f"{v.shape}."
        )
    return v.astype(np.float64)


def product_of(weights: Sequence[np.ndarray]) -> np.ndarray:
    """Return the weight of every output, of shape (d1, ..., dp), from one vector for each mode."""
    return reduce(np.multiply.outer, weights, np.ones(()))


def scale_outputs(T: Array, weights: Sequence[np.ndarray]) -> Array:
    """Return `T` times the square roots of the weights; zero for outputs of weight zero.

    Parameters
    ----------
    T : array of shape (..., d1, ..., dp)
        Outputs, their mean, or their products with inputs. NaN stays NaN.
    weights : sequence of p arrays of shape (d_i,)
    """
    xp = namespace_of(T)
    root = asarray_like(reduce(np.multiply.outer, map(np.sqrt, weights)), T, dtype=T.dtype)
    if bool(xp.all(root > 0)):
        return T * root
    # Outputs of weight zero may be infinite or NaN, and zero times infinity is NaN.
    return xp.where(root > 0, T, xp.zeros_like(T)) * root


def unscale(coef: Tucker, intercept: Array, weights: Sequence[np.ndarray]) -> tuple[Tucker, Array]:
    """Return the coefficients and intercept of the outputs from those of the scaled outputs.

    Parameters
    ----------
    coef : Tucker
        Of shape (d0, d1, ..., dp).
    intercept : array of shape (d1, ..., dp)
    weights : sequence of p arrays of shape (d_i,)

    Returns
    -------
    coef : Tucker
        Zero for outputs of weight zero.
    intercept : array of shape (d1, ..., dp)
        NaN for outputs of weight zero.
    """
    inverse = [np.divide(1.0, v, out=np.zeros_like(v, float), where=v > 0) for v in weights]
    core, factors = coef.core, list(coef.factors[1:])
    for mode, (U, v) in enumerate(zip(factors, inverse, strict=True)):
        if U is not None:
            factors[mode] = scale_outputs(U.T, [v]).T
    own = [
        v if U is None else np.ones(R)
        for U, v, R in zip(factors, inverse, core.shape[1:], strict=True)
    ]
    xp = namespace_of(intercept)
    counts = asarray_like(reduce(np.multiply.outer, weights) > 0, intercept)
    nan = xp.full_like(intercept, math.nan)
    return (
        Tucker(scale_outputs(core, own), (coef.factors[0], *factors), coef.leading),
        xp.where(counts, scale_outputs(intercept, inverse), nan),
    )
