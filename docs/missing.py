"""Draw the picture of missing.md into the current folder."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

from holrr import HOLRRCV, RLSCV


def maps() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, noisy maps with clouds and a sea that is never observed, and maps without noise."""
    rng = np.random.default_rng(1)
    lat, lon = np.linspace(-1, 1, 30)[:, None], np.linspace(-1, 1, 40)
    centres = [(-0.5, -0.6), (0.5, -0.2), (-0.3, 0.5), (0.6, 0.7)]
    hills = np.array([np.exp(-4 * (lat - a) ** 2 - 3 * (lon - b) ** 2) for a, b in centres])
    X = rng.normal(size=(120, 6))
    truth = np.tensordot(X @ rng.normal(size=(6, 4)), hills, 1)
    Y = truth + 0.7 * rng.normal(size=truth.shape)
    for y in Y:
        for a, b in rng.uniform(-1, 1, size=(7, 2)):
            y[(lat - a) ** 2 + (lon - b) ** 2 < 0.12] = np.nan
    Y[:, (lon > 0.9 - 0.6 * np.cos(2 * lat)) & (lat < -0.2)] = np.nan
    return X, Y, truth


def draw(day: int = 5) -> None:
    """One of the maps: the truth, the observed part, and two fits."""
    X, Y, truth = maps()
    options = {"cv": 3, "missing": "ignore", "fit_intercept": False}
    panels = {"truth": truth[day], "observed": Y[day]}
    for search in (RLSCV(**options), HOLRRCV(**options)):
        P = search.fit(X, Y).predict(X)
        error = np.sqrt(np.nanmean((P - truth) ** 2))
        panels[f"{type(search).__name__}, RMSE {error:.2f}"] = P[day]
    top = np.abs(truth[day]).max()
    figure, axes = plt.subplots(1, 4, figsize=(10, 2.4), layout="constrained")
    for ax, (title, values) in zip(axes, panels.items(), strict=True):
        ax.set_facecolor("#b9bec6")  # missing values
        image = ax.imshow(values, cmap="RdBu_r", vmin=-top, vmax=top, origin="lower")
        ax.set_title(title, fontsize=10)
        ax.set(xticks=[], yticks=[])
    figure.colorbar(image, ax=axes, shrink=0.75)
    figure.savefig("missing.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw()
