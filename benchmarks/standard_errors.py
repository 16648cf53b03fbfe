"""Jackknife standard errors against the closed form, the bootstrap and the spread over new noise.

    python benchmarks/standard_errors.py [--quick]

Prints the tables of docs/standard_errors.md, in one or two minutes.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.base import clone

from holrr import HOLRR, HOLRRCV, RLS, standard_errors
from holrr.datasets import make_tensor_regression


def rms(A: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(A))))


def problem(n: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and outputs of rank (2, 2, 2) without noise in units of the noise."""
    X, Y = make_tensor_regression(
        n, n_features=6, output_shape=(5, 4), rank=(2, 2, 2), noise=0.0, random_state=seed
    )
    return X, Y / Y.std() / noise


def line(what: str, K: int, found: np.ndarray, truth: np.ndarray) -> None:
    typical = np.median(np.abs(found / truth - 1))
    print(f"| {what} | {K} | {rms(found) / rms(truth):.3f} | {100 * typical:.0f} % |")


def ridge(n: int, alpha: float = 5.0) -> None:
    """Closed form: sigma^2 (S + alpha)^-1 S (S + alpha)^-1, with S = X'X of centred inputs."""
    X, Y = problem(n, noise=1.0)
    Y = Y + np.random.default_rng(0).normal(size=Y.shape)
    S = (X - X.mean(0)).T @ (X - X.mean(0))
    inverse = np.linalg.inv(S + alpha * np.eye(len(S)))
    truth = np.sqrt(np.diag(inverse @ S @ inverse))[:, None, None] * np.ones(Y.shape[1:])
    for K in (20, 100, n):
        found = standard_errors(RLS(alpha), X, Y, n_groups=K).coef.std_error
        line(f"`RLS`, closed form, {n} samples", K, found, truth)


def bootstrap(n: int, n_refits: int, alpha: float = 1.0) -> None:
    X, Y = problem(n, noise=1.0)
    rng = np.random.default_rng(0)
    Y = Y + rng.normal(size=Y.shape)
    model, at = HOLRR(rank=(2, 2, 2), alpha=alpha), X[:10]
    draws = (rng.integers(0, n, n) for _ in range(n_refits))
    fits = [clone(model).fit(X[i], Y[i]) for i in draws]
    coef = np.std([fit.coef_ for fit in fits], axis=0, ddof=1)
    predictions = np.std([fit.predict(at) for fit in fits], axis=0, ddof=1)
    for K in (20, 100, n):
        found = standard_errors(model, X, Y, n_groups=K, predict_at=at)
        line(f"`HOLRR`, {n_refits} bootstrap refits, {n} samples", K, found.coef.std_error, coef)
    line("the same, predictions", n, found.predictions.std_error, predictions)


def stack(n: int, n_repeats: int, noise: float) -> None:
    """The spread of whole searches over new noise, which holds what choosing costs."""
    X, Y = problem(n, noise)
    rng = np.random.default_rng(0)
    noisy = [Y + rng.normal(size=Y.shape) for _ in range(n_repeats)]
    fits = [HOLRRCV().fit(X, y) for y in noisy]
    truth = np.std([fit.coef_ for fit in fits], axis=0, ddof=1)
    pairs = list(zip(fits, noisy, strict=True))[:20]
    found = [standard_errors(f, X, y, stability=False).coef.std_error for f, y in pairs]
    what = f"{n_repeats} searches, {n} samples, noise {noise:g}"
    line(f"`HOLRRCV`, {what}", 20, np.array(found), truth)
    line("the same, searched again", 20, np.array([searched_again(X, y) for _, y in pairs]), truth)


def searched_again(X: np.ndarray, y: np.ndarray, K: int = 20) -> np.ndarray:
    """The jackknife of whole searches, whose choices jump."""
    blocks = np.array_split(np.arange(len(X)), K)
    fits = [HOLRRCV().fit(np.delete(X, b, 0), np.delete(y, b, 0)).coef_ for b in blocks]
    return np.sqrt(K - 1) * np.std(fits, axis=0)


def discoveries(n: int, n_repeats: int, q: float = 0.1) -> None:
    """Two of six inputs have effects: what is found, how much of it falsely, and coverage."""
    print("\n| | false | found | coverage, effects | coverage, none |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in ("RLS", "HOLRR", "HOLRRCV"):
        rng, sums = np.random.default_rng(0), np.zeros(4)
        for _ in range(n_repeats):
            X, W = rng.normal(size=(n, 6)), np.zeros((6, 5, 4))
            factors = (rng.normal(size=(d, 2)) for d in (2, 5, 4))
            W[:2] = np.einsum("ia,ja,ka->ijk", *factors)
            Y = np.tensordot(X, W, 1) + 2 * rng.normal(size=(n, 5, 4))
            models = {"RLS": RLS(0.0), "HOLRR": HOLRR((2, 2, 2), alpha=0.0), "HOLRRCV": HOLRRCV()}
            coef = standard_errors(models[name].fit(X, Y), X, Y, stability=False).coef
            marked, (low, high) = coef.significant(q), coef.interval(0.9)
            inside = (low <= W) & (high >= W)
            sums += marked[2:].sum() / max(marked.sum(), 1), marked[:2].mean(), inside[:2].mean(), 0
            sums[3] += inside[2:].mean()
        print(f"| `{name}` | " + " | ".join(f"{x:.3f}" for x in sums / n_repeats) + " |")


def cost(n: int, d0: int, side: int) -> None:
    X, Y = make_tensor_regression(n, d0, (side,) * 3, rank=(5,) * 4, snr=1.0, random_state=0)
    model, seconds = HOLRR(rank=5).fit(X, Y), []
    for task in (lambda: model.fit(X, Y), lambda: standard_errors(model, X, Y)):
        start = time.perf_counter()
        task()
        seconds.append(time.perf_counter() - start)
    print(
        f"\n{n} samples, {d0} inputs, outputs {side}x{side}x{side}: a fit takes {seconds[0]:.2f} "
        f"s, standard errors from 20 groups {seconds[1]:.2f} s."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few samples, few refits")
    options = parser.parse_args()
    print("| | groups | ratio | typical deviation of an entry |\n| --- | ---: | ---: | ---: |")
    ridge(200 if options.quick else 1000)
    bootstrap(*((100, 50) if options.quick else (300, 500)))
    for n, noise in ((60, 1.0),) if options.quick else ((200, 1.0), (60, 3.0)):
        stack(n, 10 if options.quick else 100, noise)
    discoveries(*((100, 3) if options.quick else (200, 100)))
    cost(*((200, 10, 8) if options.quick else (2000, 50, 20)))


if __name__ == "__main__":
    main()
