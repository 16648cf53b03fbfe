"""Ill-conditioned fits, which are compared with arithmetic of 50 digits and not with other code.

`results.npz` contains the exact predictions and coefficients of these fits (`truth`, with mpmath,
from the closed forms) and the errors of the code that was stored.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import holrr

__all__ = ["CASES", "errors_of", "precise_results", "worse"]

DIGITS = 50
# An error may be this many times the stored one, or below the floor. Rounding errors of the same
# algorithm differ by such factors between processors.
FACTOR, FLOOR = 4.0, 1e-12
# Orders of the samples, for the stored errors and for new ones.
N_STORED, N_ORDERS = 20, 8

Case = dict[str, Any]


def cases() -> list[Case]:
    """Return the cases: inputs with a large condition number, or a large mean."""
    found: list[Case] = []
    for estimator in ("RLS", "LRR", "HOLRR"):
        # log10 of condition number, penalty relative to the largest eigenvalue, log10 of the mean
        for condition, alpha, mean, source in [
            (3, 0.0, 0, "arrays"),
            (5, 0.0, 0, "arrays"),
            (6, 0.0, 0, "arrays"),
            (4, 1e-10, 0, "arrays"),
            (6, 1e-12, 0, "arrays"),
            (8, 1e-12, 0, "arrays"),
            (10, 1e-8, 0, "arrays"),
            (2, 1e-6, 5, "arrays"),
            (2, 1e-6, 5, "partial_fit"),
            (4, 1e-8, 3, "moments"),
            (3, 1e-8, 4, "wide"),
        ]:
            found.append(
                {
                    "estimator": estimator,
                    "condition": condition,
                    "alpha": alpha,
                    "mean": mean,
                    "source": source,
                    "seed": len(found),
                }
            )
    for gamma, alpha in [(1e-2, 1e-4), (1e-2, 1e-8), (1e-3, 1e-6), (1.0, 1e-10), (0.1, 1e-6)]:
        for estimator in ("KernelRLS", "KernelLRR"):
            more = {"gamma": gamma, "source": "arrays", "seed": len(found)}
            found.append({"estimator": estimator, "alpha": alpha} | more)
    return found


CASES = cases()


def data_of(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return inputs, outputs, new inputs and the penalty of a case."""
    rng = np.random.default_rng([5, case["seed"]])
    n, d, shape = (6, 9, (3, 2)) if case["source"] == "wide" else (16, 5, (3, 2))
    if "gamma" in case:
        X, new = rng.uniform(-1, 1, (12, 2)), rng.uniform(-1, 1, (4, 2))
        Y = np.sin(X @ rng.normal(size=(2, 6))) + 0.1 * rng.normal(size=(12, 6))
        return X, Y.reshape(12, *shape), new, case["alpha"]
    A = np.linalg.qr(rng.normal(size=(n + 4, min(n, d))))[0]
    B = np.linalg.qr(rng.normal(size=(d, d)))[0][:, : min(n, d)]
    scales = np.logspace(0, -case["condition"], min(n, d))
    X = (A * scales) @ B.T
    X += 10.0 ** case["mean"] * rng.normal(size=d) if case["mean"] else 0.0
    W = rng.normal(size=(d, 2)) @ np.diag([3.0, 1.0]) @ rng.normal(size=(2, 6))
    Y = (A * np.sqrt(scales)) @ rng.normal(size=(min(n, d), 6)) + X @ W / np.abs(X @ W).max()
    return X[:n], Y[:n].reshape(n, *shape), X[n:], case["alpha"]


def ranks(estimator: str) -> Any:
    return {"LRR": 2, "KernelLRR": 2, "HOLRR": (2, 2, 1)}.get(estimator)


def fitted(case: Case, order: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Return predictions and coefficients by holrr, with some order of the samples."""
    X, Y, new, alpha = data_of(case)
    rows = np.random.default_rng(order).permutation(len(X))
    X, Y = X[rows], Y[rows]
    cls = getattr(holrr, case["estimator"])
    params = {"alpha": alpha}
    if ranks(case["estimator"]) is not None:
        params["rank"] = ranks(case["estimator"])
    if "gamma" in case:
        params |= {"kernel": "rbf", "gamma": case["gamma"]}
    model = cls(**params)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if case["source"] == "partial_fit":
            for part in np.array_split(np.arange(len(X)), 3):
                model.partial_fit(X[part], Y[part])
        elif case["source"] == "moments":
            halves = [holrr.Moments.from_arrays(X[p], Y[p]) for p in (slice(0, 7), slice(7, None))]
            model.fit_moments(halves[0] + halves[1])
        else:
            model.fit(X, Y)
        coef = None if "gamma" in case else model.coef_
        return model.predict(new), coef


def truth(case: Case) -> tuple[np.ndarray, np.ndarray | None]:
    """Return predictions and coefficients in `DIGITS` digits, rounded at the end.

    With ``X'X + alpha I = L L'`` and ``Z = L^-1 X'Y``, the coefficients are ``L'^-1 V``, where V
    is Z projected onto the leading singular directions of its unfoldings. Kernels have the centred
    Gram matrix K, and ``Y' K (K + alpha I)^-1 Y`` in the place of ``Z'Z``.
    """
    import mpmath as mp

    with mp.workdps(DIGITS):
        X, Y, new, alpha = data_of(case)
        n, shape = len(X), Y.shape[1:]
        A, B, C = (
            mp.matrix(X.tolist()),
            mp.matrix(Y.reshape(n, -1).tolist()),
            mp.matrix(new.tolist()),
        )
        alpha = mp.mpf(alpha)
        mean_y = means(B)
        B = minus(B, mean_y)
        if "gamma" in case:
            K, k = gram(A, A, case["gamma"]), gram(C, A, case["gamma"])
            row, total = means(K), sum(means(K)) / n
            k = mp.matrix(
                [
                    [
                        k[i, j] - row[j] - sum(k[i, m] for m in range(n)) / n + total
                        for j in range(n)
                    ]
                    for i in range(k.rows)
                ]
            )
            K = mp.matrix([[K[i, j] - row[i] - row[j] + total for j in range(n)] for i in range(n)])
            dual = mp.inverse(K + alpha * mp.eye(n)) * B
            if case["estimator"] == "KernelLRR":
                U = leading(B.T * (K * dual), 2)
                dual = dual * U * U.T
            return plain(plus(k * dual, mean_y)).reshape(-1, *shape), None
        mean_x = means(A)
        A, C = minus(A, mean_x), minus(C, mean_x)
        L = mp.cholesky(A.T * A + alpha * mp.eye(A.cols))
        Z = mp.inverse(L) * A.T * B
        rank = ranks(case["estimator"])
        if isinstance(rank, int):
            U = leading(Z.T * Z, rank)
            Z = Z * U * U.T
        elif rank is not None:
            Z = truncated(Z, shape, rank)
        W = mp.inverse(L.T) * Z
        predicted = plus(C * W, mean_y)
        return plain(predicted).reshape(-1, *shape), plain(W).reshape(-1, *shape)


def truncated(Z: Any, shape: tuple[int, ...], rank: tuple[int, ...]) -> Any:
    """Project the modes of a tensor, unfolded along the first one, onto leading directions."""
    import mpmath as mp

    d, (a, b) = Z.rows, shape
    first = mp.matrix([[Z[i, j * b + k] for i in range(d) for k in range(b)] for j in range(a)])
    second = mp.matrix([[Z[i, j * b + k] for i in range(d) for j in range(a)] for k in range(b)])
    U = [leading(M * M.T, r) for M, r in zip((Z, first, second), rank, strict=True)]
    P = [u * u.T for u in U]
    both = mp.matrix(a * b, a * b)
    for j, k, m, p in np.ndindex(a, b, a, b):
        both[j * b + k, m * b + p] = P[1][j, m] * P[2][k, p]
    return P[0] * Z * both


def leading(S: Any, rank: int) -> Any:
    """Return the eigenvectors of the largest eigenvalues of a symmetric matrix."""
    import mpmath as mp

    values, vectors = mp.eigsy(S)
    order = sorted(range(S.rows), key=lambda i: -values[i])[:rank]
    return mp.matrix([[vectors[i, j] for j in order] for i in range(S.rows)])


def gram(A: Any, B: Any, gamma: float) -> Any:
    import mpmath as mp

    square = lambda i, j: sum((A[i, m] - B[j, m]) ** 2 for m in range(A.cols))  # noqa: E731
    return mp.matrix(
        [[mp.exp(-mp.mpf(gamma) * square(i, j)) for j in range(B.rows)] for i in range(A.rows)]
    )


def means(A: Any) -> list[Any]:
    return [sum(A[i, j] for i in range(A.rows)) / A.rows for j in range(A.cols)]


def minus(A: Any, row: list[Any]) -> Any:
    return plus(A, [-value for value in row])


def plus(A: Any, row: list[Any]) -> Any:
    import mpmath as mp

    return mp.matrix([[A[i, j] + row[j] for j in range(A.cols)] for i in range(A.rows)])


def plain(A: Any) -> np.ndarray:
    return np.array([[float(A[i, j]) for j in range(A.cols)] for i in range(A.rows)])


def distance(found: np.ndarray, expected: Any) -> float:
    expected = np.asarray(expected)
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def errors_of(case: Case, exact: dict[str, Any], n_orders: int = N_ORDERS) -> dict[str, float]:
    """Return the errors of the code at hand, relative to the largest exact number.

    They are the largest of several orders of the samples, since that of one order may be small by
    luck.
    """
    found: dict[str, float] = {}
    for order in range(n_orders):
        for name, value in zip(("predict", "coef_"), fitted(case, order), strict=True):
            if value is not None:
                found[name] = max(found.get(name, 0.0), distance(value, exact[name]))
    return found


def precise_results() -> list[dict[str, Any]]:
    """Return all cases with their exact results and the errors of the code at hand."""
    found = []
    for case in CASES:
        predicted, coef = truth(case)
        exact = {"predict": predicted.tolist()}
        exact |= {} if coef is None else {"coef_": coef.tolist()}
        found.append({"case": case, "exact": exact, "errors": errors_of(case, exact, N_STORED)})
    return found


def worse(stored: list[dict[str, Any]]) -> list[str]:
    """Return a line for each error that is more than `FACTOR` times the stored one."""
    lines = []
    for number, record in enumerate(stored):
        found = errors_of(record["case"], record["exact"])
        for name, error in found.items():
            before = record["errors"][name]
            if not error <= max(FACTOR * before, FLOOR):
                lines.append(
                    f"ill-conditioned case {number}, {name}: error {error:.1e}, before "
                    f"{before:.1e}; {record['case']}"
                )
    return lines
