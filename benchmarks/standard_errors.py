"""Jackknife standard errors, compared with the closed form, the bootstrap and new noise.

    python benchmarks/standard_errors.py [--quick] [--write]

Prints the tables of docs/standard_errors.md, in one or two minutes, and writes them there with
--write.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import chain

import numpy as np
from sklearn.base import clone

from holrr import HOLRR, HOLRRCV, RLS, standard_errors
from holrr.datasets import make_tensor_regression
from pages import parse_options, printed, table_lines, write_section

HEAD = ["model and truth", "groups", "ratio", "typical deviation of an entry"]
DISCOVERIES = ["", "wrongly marked", "effects found", "coverage, effects", "coverage, no effect"]


def rms(A: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(A))))


def problem(n: int, noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs, and noiseless outputs of rank (2, 2, 2) in units of the noise."""
    X, Y = make_tensor_regression(
        n, n_features=6, output_shape=(5, 4), rank=(2, 2, 2), noise=0.0, random_state=seed
    )
    return X, Y / Y.std() / noise


def row(what: str, K: int, found: np.ndarray, truth: np.ndarray) -> list[str]:
    """Return the cells of a row, whose head is `HEAD`."""
    typical = np.median(np.abs(found / truth - 1))
    return [what, str(K), f"{rms(found) / rms(truth):.3f}", f"{100 * typical:.0f} %"]


def ridge(n: int, alpha: float = 5.0) -> Iterator[list[str]]:
    """Compare with the closed form sigma^2 (S + alpha)^-1 S (S + alpha)^-1 with S = X'X."""
    X, Y = problem(n, noise=1.0)
    Y = Y + np.random.default_rng(0).normal(size=Y.shape)
    S = (X - X.mean(0)).T @ (X - X.mean(0))
    inverse = np.linalg.inv(S + alpha * np.eye(len(S)))
    truth = np.sqrt(np.diag(inverse @ S @ inverse))[:, None, None] * np.ones(Y.shape[1:])
    for K in (20, 100, n):
        found = standard_errors(RLS(alpha), X, Y, n_groups=K).coef.std_error
        yield row(f"`RLS`, closed form, {n} samples", K, found, truth)


def bootstrap(n: int, n_refits: int, alpha: float = 1.0) -> Iterator[list[str]]:
    """Compare with the spread of refits to samples that are drawn with replacement."""
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
        yield row(
            f"`HOLRR`, {n_refits} bootstrap refits, {n} samples", K, found.coef.std_error, coef
        )
    yield row("the same, predictions", n, found.predictions.std_error, predictions)


def stack(n: int, n_repeats: int, noise: float) -> Iterator[list[str]]:
    """Compare with the spread of searches over new noise, which includes model selection."""
    X, Y = problem(n, noise)
    rng = np.random.default_rng(0)
    noisy = [Y + rng.normal(size=Y.shape) for _ in range(n_repeats)]
    fits = [HOLRRCV().fit(X, y) for y in noisy]
    truth = np.std([fit.coef_ for fit in fits], axis=0, ddof=1)
    pairs = list(zip(fits, noisy, strict=True))[:20]
    found = [standard_errors(f, X, y, stability=False).coef.std_error for f, y in pairs]
    what = f"{n_repeats} searches, {n} samples, noise {noise:g}"
    yield row(f"`HOLRRCV`, {what}", 20, np.array(found), truth)
    yield row(
        "the same, with repeated searches",
        20,
        np.array([searched_again(X, y) for _, y in pairs]),
        truth,
    )


def searched_again(X: np.ndarray, y: np.ndarray, K: int = 20) -> np.ndarray:
    """Return jackknife standard errors of searches, whose choices vary between groups."""
    blocks = np.array_split(np.arange(len(X)), K)
    fits = [HOLRRCV().fit(np.delete(X, b, 0), np.delete(y, b, 0)).coef_ for b in blocks]
    return np.sqrt(K - 1) * np.std(fits, axis=0)


def discoveries(n: int, n_repeats: int, q: float = 0.1) -> Iterator[list[str]]:
    """Yield the false and true discoveries, and the coverage, if two of six inputs have effects."""
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
        yield [f"`{name}`", *(f"{x:.3f}" for x in sums / n_repeats)]


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


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few samples, few refits")
    options = parse_options(parser, arguments)
    quick = options.quick
    cases = ((60, 1.0),) if quick else ((200, 1.0), (60, 3.0))
    rows = chain(
        ridge(200 if quick else 1000),
        bootstrap(*((100, 50) if quick else (300, 500))),
        *(stack(n, 10 if quick else 100, noise) for n, noise in cases),
    )
    accuracy = printed(table_lines(HEAD, rows))
    print()
    rows = discoveries(*((100, 3) if quick else (200, 100)))
    found = printed(table_lines(DISCOVERIES, rows))
    cost(*((200, 10, 8) if quick else (2000, 50, 20)))
    if options.write:
        write_section("accuracy of standard errors", accuracy)
        write_section("discoveries", found)


if __name__ == "__main__":
    main()
