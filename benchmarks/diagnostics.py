"""Diagnostics: false alarms, what is found, and how long fits and predictions take with them.

    python benchmarks/diagnostics.py [--part NAME ...] [--quick] [--write]

Five parts, each a Markdown table:

- inputs: shares of new normal rows beyond the limits of T2 and Q of 5 and 1 percent, means over 20
  seeds, for several covariances, beside the usual limits from training variances (the F
  distribution for T2, Jackson and Mudholkar's moments for Q);
- units: what the residual variance of each input is good for. False alarms of real and made-up
  rows, and the share of unusual rows that is found at 99.9 percent, beside plain sums of squares of
  residuals, and plain sums of standardised inputs;
- outliers: shares of training rows above the limits of 5 and 1 percent, for several kinds of noise,
  and of searches in which a row of y that was multiplied by five, of 90, is named;
- fits: time of fits with the model of the inputs, as a multiple of that without;
- predictions: the same for `predict` with and without `check_inputs`.

Times are seconds of the processor, least of several turns, on one thread. About five minutes. With
--write every part but the last writes a section of docs/diagnostics.md, which shows some columns of
the table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import stats
from sklearn import datasets
from threadpoolctl import threadpool_limits

from holrr import HOLRR, HOLRRCV, RLS, RLSCV, TraceNormRegression
from holrr.core.input_model import fit_input_model
from holrr.data.validation import Names
from holrr.diagnostics import find_outliers
from pages import parse_options, printed, span, table, table_lines, write_section

Rows = Iterator[list[str]]
Draw = Callable[[np.random.Generator, int], np.ndarray]
LEVELS = (0.95, 0.99)


# ---------------------------------------------------------------- data


def spherical(d: int) -> Draw:
    return lambda rng, n: rng.normal(size=(n, d))


def autoregressive(d: int, r: float = 0.7) -> Draw:
    L = np.linalg.cholesky(r ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
    return lambda rng, n: rng.normal(size=(n, d)) @ L.T


def spiked(d: int, k: int = 3, noise: float = 0.1) -> Draw:
    A = np.random.default_rng(1).normal(size=(k, d))
    return lambda rng, n: rng.normal(size=(n, k)) @ A + noise * rng.normal(size=(n, d))


def decaying(d: int) -> Draw:
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0]
    return lambda rng, n: (rng.normal(size=(n, d)) / np.arange(1, d + 1)) @ Q


def heavy(d: int) -> Draw:
    return lambda rng, n: rng.standard_t(4, size=(n, d))


def mixed(d: int) -> Draw:
    return lambda rng, n: rng.normal(size=(n, d)) * np.logspace(-6, 5, d)


CASES: list[tuple[str, Draw, int, int]] = [
    ("spherical", spherical(20), 200, 20),
    ("autoregressive, 0.7", autoregressive(20), 200, 20),
    ("three directions and noise", spiked(20), 200, 20),
    ("variances that fall as $1/j^2$", decaying(20), 200, 20),
    ("t with 4 degrees of freedom", heavy(20), 200, 20),
    ("spherical", spherical(5), 60, 5),
    ("three directions and noise", spiked(300), 45, 300),
    ("autoregressive, 0.95", autoregressive(300, 0.95), 100, 300),
    ("variances that fall as $1/j^2$", decaying(300), 100, 300),
]


def spectra(rng: np.random.Generator, n: int) -> np.ndarray:
    """Three bands in the first half of a spectrum, and noise."""
    return rng.lognormal(0, 0.3, (n, 3)) @ bands() + 0.003 * rng.normal(size=(n, 200))


def bands() -> np.ndarray:
    return np.array([band(0.2, 0.05), band(0.3, 0.03), band(0.35, 0.1)])


def band(centre: float, width: float) -> np.ndarray:
    return np.exp(-(((np.linspace(0, 1, 200) - centre) / width) ** 2))


def unusual() -> Iterator[tuple[str, np.ndarray, np.ndarray | None]]:
    """Name, ordinary rows, and unusual ones; of None, an input is moved by six deviations."""
    rng = np.random.default_rng(0)
    yield (
        "spectra; a further band of 5 % of the others",
        spectra(rng, 800),
        spectra(rng, 200) + 0.05 * band(0.25, 0.02),
    )
    yield "spectra; times 1.5", spectra(rng, 800), 1.5 * spectra(rng, 200)
    field = autoregressive(300, 0.99)
    spread = np.logspace(0, 1.5, 300)
    yield "field; times 2", field(rng, 600) * spread, 2 * field(rng, 200) * spread
    yield (
        "twelve inputs in units from $10^{-6}$ to $10^5$; one input 6 standard deviations off",
        mixed(12)(rng, 600),
        None,
    )
    data = datasets.load_diabetes(scaled=False)
    yield "patients with diabetes; one input 6 standard deviations off", data.data, None
    for name, load, known in (
        ("wines of two growers; of a third one", datasets.load_wine, (0, 1)),
        ("benign tumours; malignant ones", datasets.load_breast_cancer, (1,)),
        ("digits 0-4; 5-9", datasets.load_digits, range(5)),
    ):
        data = load()
        among = np.isin(data.target, list(known))
        yield name, data.data[among], data.data[~among]


# ---------------------------------------------------------------- inputs


def usual_limits(X: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Shares of new rows beyond limits from training variances, (n_levels, 2)."""
    n, mean = len(X), X.mean(axis=0)
    _, s, Vt = np.linalg.svd(X - mean, full_matrices=False)
    lam = s**2 / (n - 1)
    k = fit_input_model(X).components.shape[1] or 1
    T = (new - mean) @ Vt[:k].T
    q = ((new - mean) ** 2).sum(axis=1) - (T**2).sum(axis=1)
    t2, rest = (T**2 / lam[:k]).sum(axis=1), lam[k:]
    h = rest.sum() ** 2 / (rest**2).sum()
    found = []
    for level in LEVELS:
        limit = k * (n - 1) * (n + 1) / (n * (n - k)) * stats.f.ppf(level, k, n - k)
        found.append([np.mean(t2 > limit), np.mean(q > rest.sum() / h * stats.chi2.ppf(level, h))])
    return np.array(found)


def inputs(quick: bool) -> Rows:
    yield [
        *("inputs", "N", "d", "T2 at 5 %", "Q at 5 %", "T2 at 1 %", "Q at 1 %"),
        *("usual T2 at 5 %", "usual Q at 5 %", "usual Q at 1 %"),
    ]
    for name, draw, n, d in CASES[: 2 if quick else None]:
        ours, theirs = [], []
        for seed in range(2 if quick else 20):
            rng = np.random.default_rng(seed)
            X, new = draw(rng, n), draw(rng, 500 if quick else 10_000)
            model = fit_input_model(X)
            pair = model.distances(new)
            limits = [model.limits(level) for level in LEVELS]
            ours.append([[np.mean(a > b) for a, b in zip(pair, at, strict=True)] for at in limits])
            theirs.append(usual_limits(X, new))
        (a, b), (c, e) = 100 * np.mean(ours, axis=0)
        (f, g), (_, h) = 100 * np.mean(theirs, axis=0)
        yield [name, str(n), str(d), *(f"{v:.1f}" for v in (a, b, c, e, f, g, h))]


# ---------------------------------------------------------------- units


def plain_sums(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Which rows are outside at 99.9 percent, with plain sums of squares of residuals."""
    model, n = fit_input_model(X), len(X)
    k = model.components.shape[1]
    q = np.empty(n)
    for fold in range(5):
        out = np.arange(n) % 5 == fold
        centre = X[~out].mean(axis=0)
        V = np.linalg.svd(X[~out] - centre, full_matrices=False)[2][:k].T
        Z = X[out] - centre
        q[out] = ((Z - Z @ V @ V.T) ** 2).sum(axis=1)
    h = 2 * q.mean() ** 2 / q.var(ddof=1)
    limit = q.mean() * stats.f.ppf(0.999, h, n * h)

    def outside(new: np.ndarray) -> np.ndarray:
        Z = new - model.mean
        rest = Z - (Z @ model.components) @ model.components.T
        t2 = model.distances(new)[0]
        return (t2 > model.limits(0.999)[0]) | ((rest**2).sum(axis=1) > limit)

    return outside


def ours(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    model = fit_input_model(X)

    def outside(new: np.ndarray) -> np.ndarray:
        t2, q = model.distances(new)
        limits = model.limits(0.999)
        return (t2 > limits[0]) | (q > limits[1])

    return outside


def standardised(X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    spread = X.std(axis=0)
    scale = np.where(spread > 0, spread, np.median(spread[spread > 0]))
    outside = plain_sums(X / scale)
    return lambda new: outside(new / scale)


def units(quick: bool) -> Rows:
    methods = (ours, plain_sums, standardised)
    names = [r"with $\psi_j$", "plain sum", "standardised first"]
    yield ["rows; unusual rows", *names, *(f"{name}, false alarms" for name in names)]
    for name, X, new in list(unusual())[: 2 if quick else None]:
        found, false = [], []
        for seed in range(2 if quick else 8):
            rng = np.random.default_rng(seed)
            order, n = rng.permutation(len(X)), min(len(X) // 2, 300)
            train, test = X[order[:n]], X[order[n:]]
            other = new
            if other is None:
                other, j = test.copy(), rng.integers(0, X.shape[1], len(test))
                other[np.arange(len(test)), j] += 6 * train.std(axis=0)[j]
            rules = [method(train) for method in methods]
            found.append([np.mean(rule(other)) for rule in rules])
            false.append([np.mean(rule(test)) for rule in rules])
        cells = [f"{100 * v:.0f} %" for v in np.mean(found, axis=0)]
        cells += [f"{100 * v:.1f} %" for v in np.mean(false, axis=0)]
        yield [name, *cells]


# ---------------------------------------------------------------- outliers


def outliers(quick: bool) -> Rows:
    kinds: dict[str, Any] = {
        "independent, normal": lambda rng, shape: rng.normal(size=shape),
        "half of it common to all outputs": lambda rng, shape: (
            rng.normal(size=(shape[0], 1, 1)) + rng.normal(size=shape)
        ),
        "t with 5 degrees of freedom": lambda rng, shape: rng.standard_t(5, size=shape),
    }
    yield ["noise of 4 x 5 outputs", "samples", "at 5 %", "at 1 %", "wrong row named"]
    W = np.random.default_rng(5).normal(size=(6, 4, 5))
    for name, noise in kinds.items():
        for n in (90, 300):
            shares, named = [], []
            for seed in range(2 if quick else 40):
                rng = np.random.default_rng(seed)
                X = rng.normal(size=(n, 6))
                Y = np.tensordot(X, W, 1) + noise(rng, (n, 4, 5))
                model = RLSCV([1.0]).fit(X, Y)
                shares.append([find_outliers(model, level=v).outside.mean() for v in LEVELS])
                Y[seed] *= 5
                result = find_outliers(RLSCV([1.0]).fit(X, Y))
                named.append(result.outside[seed] and result.order[0] == seed)
            a, b = 100 * np.mean(shares, axis=0)
            yield [name, str(n), f"{a:.1f}", f"{b:.1f}", f"{100 * np.mean(named):.0f} %"]


# ---------------------------------------------------------------- times


def least(calls: list[Callable[[], Any]], repeats: int) -> list[float]:
    """Least processor time of each call, measured in turns."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for times, call in zip(found, calls, strict=True):
            start = time.process_time()
            call()
            times.append(time.process_time() - start)
    return [min(times) for times in found]


def without_model(call: Callable[[], Any]) -> Callable[[], Any]:
    """The same call without the model of the inputs."""
    original = Names.with_input_model

    def run() -> Any:
        Names.with_input_model = lambda self, data, splits=(): self
        try:
            return call()
        finally:
            Names.with_input_model = original

    return run


def fits(quick: bool) -> Rows:
    yield ["fit", "inputs", "with, ms", "without, ms", "ratio"]
    rng = np.random.default_rng(0)
    sizes = [(100, 10, (12, 8, 6)), (400, 50, (20, 20)), (90, 700, (10, 6))]
    sizes += [(500, 1000, (20, 20)), (5000, 500, (20, 20)), (60, 20_000, (10, 6))]
    for n, d, shape in sizes[: 1 if quick else None]:
        X, Y = rng.normal(size=(n, d)), rng.normal(size=(n, *shape))
        models: list[Any] = [HOLRR(rank=3), RLS()]
        if (n, d) in ((100, 10), (90, 700)):
            models += [RLSCV(), HOLRRCV(), TraceNormRegression(1.0)]
        for model in models:
            call = lambda model=model, X=X, Y=Y: model.fit(X, Y)  # noqa: E731
            slow = isinstance(model, HOLRRCV) or n * d > 10**6
            a, b = least([call, without_model(call)], 2 if quick else 7 if slow else 25)
            times = [f"{1e3 * a:.2f}", f"{1e3 * b:.2f}", f"{a / b:.2f}"]
            yield [f"`{type(model).__name__}`", f"{n:,} x {d:,}", *times]


def fits_section(rows: list[list[str]]) -> str:
    """Return the table of the page: how much longer fits and searches take."""
    shown, ratios, sizes = [], [], []
    for name, size, after, before, ratio in rows:
        if name == "`HOLRR`":
            more = float(after) - float(before)
            milliseconds = f"{more:.1f} ms" if more < 3 else f"{more:.0f} ms"
            shown.append(
                [f"{name}, {size} inputs", milliseconds, f"{100 * float(ratio) - 100:.0f} %"]
            )
        elif name in ("`RLSCV`", "`HOLRRCV`"):
            ratios.append(100 * float(ratio) - 100)
            sizes.append(size)
    name = f"`RLSCV`, `HOLRRCV`, {' and '.join(dict.fromkeys(sizes))} inputs"
    return table(["fit", "longer by", ""], [*shown, [name, "", f"{span(ratios, '.0f')} %"]])


def predictions(quick: bool) -> Rows:
    yield ["rows", "with, ms", "without, ms", "ratio"]
    rng = np.random.default_rng(0)
    for d in (10, 500):
        X, Y = rng.normal(size=(600, d)), rng.normal(size=(600, 20, 20))
        model = HOLRR(rank=3).fit(X, Y)
        for n in (1, 100, 5000)[: 1 if quick else None]:
            new = rng.normal(size=(n, d))
            times = 300 if n < 200 else 3

            def run(check: bool, new=new, model=model, times=times) -> None:
                for _ in range(times):
                    model.predict(new, check_inputs=check)

            a, b = least([lambda: run(True), lambda: run(False)], 2 if quick else 9)
            a, b = a / times, b / times
            yield [f"{n} of {d} inputs", f"{1e3 * a:.3f}", f"{1e3 * b:.3f}", f"{a / b:.2f}"]


PARTS = {f.__name__: f for f in (inputs, units, outliers, fits, predictions)}


def section(part: str, head: list[str], rows: list[list[str]]) -> tuple[str, str] | None:
    """Return the name and the text of the section that a part writes, if it writes one."""
    if part == "fits":
        return "time of diagnostics", fits_section(rows)
    sections = {"inputs": "limits of inputs", "units": "unusual inputs", "outliers": "outliers"}
    if part not in sections:
        return None
    hidden = ("usual T2 at 5 %", "false alarms")
    shown = [k for k, name in enumerate(head) if not name.endswith(hidden)]
    lines = [[line[k] for k in shown] for line in (head, *rows)]
    return sections[part], table(lines[0], lines[1:])


def kept(measured: Rows, rows: list[list[str]]) -> Rows:
    """Yield the rows and add each of them to a list."""
    for row in measured:
        rows.append(row)
        yield row


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--part", nargs="+", choices=tuple(PARTS), default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="a few seeds; says nothing else")
    options = parse_options(parser, words)
    warnings.filterwarnings("ignore", message="The best penalty")
    with threadpool_limits(1):
        for part in options.part:
            print(f"\n{part}\n")
            measured = PARTS[part](options.quick)
            head, rows = next(measured), []
            printed(table_lines(head, kept(measured, rows)))
            found = section(part, head, rows)
            if options.write and found:
                write_section(*found)


if __name__ == "__main__":
    main()
