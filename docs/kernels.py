"""Draw the picture of kernels.md into the current folder."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from holrr.kernel import KernelHOLRRCV, KernelRLSCV

BLUE, ORANGE, GREY, BLACK = "#1f5a99", "#d1600e", "#b9bec6", "#1f2328"
rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(150, 1))
U1, U2, core = rng.normal(size=(8, 2)), rng.normal(size=(9, 2)), rng.normal(size=(3, 2, 2))


def truth(X: np.ndarray) -> np.ndarray:
    """72 outputs that are mixtures of three functions of one input."""
    latent = np.hstack([np.sin(2 * X), np.cos(X), np.tanh(2 * X)])
    return np.einsum("na,abc,jb,kc->njk", latent, core, U1, U2)


def curves(ax: Axes, Y: np.ndarray, fits: list) -> None:
    """One output: samples, truth and fits."""
    x = np.linspace(-3, 3, 300)[:, None]
    ax.plot(X[:, 0], Y[:, 2, 2], ".", color=GREY, ms=4, label="data")
    ax.plot(x, truth(x)[:, 2, 2], color=BLACK, lw=1.5, label="truth")
    for fit, (color, line) in zip(fits, ((ORANGE, "--"), (BLUE, "-")), strict=True):
        name = type(fit).__name__
        ax.plot(x, fit.predict(x)[:, 2, 2], color=color, ls=line, lw=1.8, label=name)
    ax.set(xlabel="x", ylabel="output (2, 2)", ylim=(-12, 17))
    ax.legend(loc="upper center", ncols=2, fontsize=8, frameon=False)


def errors(ax: Axes, search: KernelHOLRRCV) -> None:
    """Held-out error of each width and penalty at the chosen ranks."""
    k, a, *rank = search.best_index_
    error = search.cv_results_["mean_mse"][(slice(None), slice(None), *rank)]
    gammas = [kernel["gamma"] for kernel in search.kernels_]
    # A row for each width, all of the same height: nothing is cut where the scale begins.
    alphas, rows = search.alphas_, np.arange(len(gammas) + 1) - 0.5
    steps = np.sqrt(alphas[1:] * alphas[:-1])
    borders = [alphas[0] ** 2 / steps[0], *steps, alphas[-1] ** 2 / steps[-1]]
    top = np.nanmin(error) + 3 * np.nanmedian(error - np.nanmin(error))
    image = ax.pcolormesh(borders, rows, error, cmap="viridis_r", vmax=top)
    ax.plot(alphas[a], k, "o", color=ORANGE, mec="white", ms=8)
    ax.set(xscale="log", xlabel="penalty alpha", ylabel="gamma of the Gaussian kernel")
    ax.set_yticks(range(len(gammas)), [f"{gamma:.2g}" for gamma in gammas])
    ax.set_title(f"held-out error at rank {search.rank_}", fontsize=10)
    ax.figure.colorbar(image, ax=ax, extend="max")


def draw() -> None:
    Y = truth(X) + 3.0 * rng.normal(size=(150, 8, 9))
    ridge, search = KernelRLSCV().fit(X, Y), KernelHOLRRCV(selection="1se").fit(X, Y)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    curves(left, Y, [ridge, search])
    errors(right, search)
    figure.savefig("kernel_search.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw()
