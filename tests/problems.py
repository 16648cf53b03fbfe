"""Data for tests: small fixed problems, and hypothesis strategies for problems of any shape."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from holrr.core.results import Results


def toy(n=40, d0=5, shape=(3, 4), *, noise=0.3, rank=2, offset=1.0, seed=0):
    """Inputs and low-rank outputs with noise and non-zero means."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d0)) + offset
    W = low_rank_tensor(rng, (d0, *shape), [min(rank, d) for d in (d0, *shape)])
    Y = np.tensordot(X, W, axes=1) + offset + noise * rng.normal(size=(n, *shape))
    return X, Y


def on_disk(folder, name, A):
    """A memory map of the array, which is read in chunks where the budget is small."""
    np.save(folder / f"{name}.npy", A)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def low_rank_tensor(rng, shape, rank):
    """A Gaussian core with Gaussian factors."""
    T = rng.normal(size=rank)
    for i, d in enumerate(shape):
        T = np.moveaxis(np.tensordot(rng.normal(size=(d, T.shape[i])), T, (1, i)), 0, i)
    return T


def assert_same_state(a, b):
    """Equal to the last bit, whatever is inside."""
    # A file has the values of results that are computed late.
    a, b = (dict(value) if isinstance(value, Results) else value for value in (a, b))
    assert type(a) is type(b)
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same_state(x, y)
    elif isinstance(a, dict):
        assert_same_state(list(a), list(b))
        assert_same_state(list(a.values()), list(b.values()))
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.ma.getmaskarray(a), np.ma.getmaskarray(b))
    elif hasattr(a, "__dict__"):
        assert vars(a).keys() == vars(b).keys()
        for name, value in vars(a).items():
            assert_same_state(value, vars(b)[name])
    else:
        assert a == b or (a != a and b != b)


@dataclass(frozen=True)
class Problem:
    """A regression problem of any shape, with a rank for each mode."""

    X: np.ndarray
    Y: np.ndarray
    alpha: float
    rank: tuple[int, ...]
    fit_intercept: bool
    seed: int

    @property
    def p(self):
        return self.Y.ndim - 1


ALPHAS = (0.0, 1e-3, 0.5, 30.0)


@st.composite
def problems(draw, alphas=ALPHAS, min_samples=1, max_samples=12, min_order=0, degenerate=True):
    """Problems with p from 0 to 3, sizes from 1 to 5, some with deficient or constant data."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=min_order, max_size=3)))
    d0, n = draw(st.integers(1, 5)), draw(st.integers(min_samples, max_samples))
    seed = draw(st.integers(0, 2**32 - 1))
    kinds = ["noise", "low rank"]
    kinds += ["deficient inputs", "constant outputs"] if degenerate else []
    X, Y = _data(np.random.default_rng(seed), n, d0, shape, draw(st.sampled_from(kinds)))
    return Problem(
        X=X,
        Y=Y,
        alpha=draw(st.sampled_from(alphas)),
        rank=tuple(draw(st.integers(1, d)) for d in (d0, *shape)),
        fit_intercept=draw(st.booleans()),
        seed=seed,
    )


def _data(rng, n, d0, shape, kind):
    X, Y = rng.normal(size=(n, d0)) + rng.normal(), rng.normal(size=(n, *shape)) + rng.normal()
    if kind == "low rank":
        W = low_rank_tensor(rng, (d0, *shape), [1] * (1 + len(shape)))
        Y = np.tensordot(X, W, axes=1) + 0.1 * Y
    elif kind == "deficient inputs":
        X[:, -1] = 2 * X[:, 0]
    elif kind == "constant outputs":
        Y = np.full_like(Y, Y.flat[0])
    return X, Y


@st.composite
def batchings(draw, n):
    """A division of n samples into consecutive batches, as a list of slices."""
    cuts = draw(st.lists(st.integers(1, n - 1), unique=True, max_size=5)) if n > 1 else []
    edges = [0, *sorted(cuts), n]
    return [slice(a, b) for a, b in pairwise(edges)]


def with_missing(Y, share, seed=0):
    """A copy of `Y` with NaN at random positions; every sample keeps an observed entry."""
    rng = np.random.default_rng(seed)
    flat = Y.reshape(len(Y), -1)
    missing = rng.random(flat.shape) < share
    missing[np.arange(len(Y)), rng.integers(flat.shape[1], size=len(Y))] = False
    return np.where(missing, np.nan, flat).reshape(Y.shape)
