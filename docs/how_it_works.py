"""Draw the pictures of how_it_works.md into the current folder."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Polygon

from holrr import HOLRR, HOLRRCV
from holrr.datasets import make_tensor_regression

BLUE, ORANGE, GREY, PALE = "#1f5fa0", "#d0651b", "#666666", "#dbe6f2"


def data() -> tuple[np.ndarray, np.ndarray]:
    """The samples of the page."""
    X, Y = make_tensor_regression(60, 8, (7, 6), rank=(3, 2, 2), snr=0.7, random_state=1)
    return X - X.mean(axis=0), Y - Y.mean(axis=0)


def save(name: str) -> None:
    plt.gcf().savefig(f"how_it_works_{name}.png", dpi=120)
    plt.close()


# ---------------------------------------------------------------- the steps


def box(ax: Axes, x: float, y: float, w: float, h: float, depth: float = 0.0, color=PALE) -> None:
    """A matrix, or a tensor with a third side."""
    d = 0.6 * depth
    faces = [[(x, y), (x + w, y), (x + w, y + h), (x, y + h)]]
    if depth:
        faces.append([(x, y + h), (x + d, y + h + d), (x + w + d, y + h + d), (x + w, y + h)])
        faces.append([(x + w, y), (x + w + d, y + d), (x + w + d, y + h + d), (x + w, y + h)])
    for face in faces:
        ax.add_patch(Polygon(face, facecolor=color, edgecolor=BLUE, lw=1.2))


def arrow(ax: Axes, x: float, text: str) -> None:
    ax.annotate("", (x + 0.95, 2.0), (x, 2.0), arrowprops={"arrowstyle": "->", "color": GREY})
    ax.text(x + 0.475, 2.15, text, ha="center", va="bottom", color=GREY, fontsize=8)


def steps() -> None:
    """From samples to coefficients."""
    _, ax = plt.subplots(figsize=(8.5, 2.8), layout="constrained")
    label = {"ha": "center", "va": "top", "fontsize": 9}
    box(ax, 0.0, 0.6, 0.7, 2.8)
    ax.text(0.35, 0.5, "$X$\n$N \\times d_0$", **label)
    box(ax, 1.1, 0.6, 0.8, 2.8, 0.7)
    ax.text(1.7, 0.5, "$Y$\n$N \\times d_1 \\times d_2$", **label)
    arrow(ax, 2.55, "one pass")
    box(ax, 3.7, 1.6, 0.7, 0.7)
    ax.text(4.05, 1.5, "$X'X$", **label)
    box(ax, 4.7, 1.6, 0.8, 0.7, 0.7)
    ax.text(5.2, 1.5, "$X'Y$", **label)
    arrow(ax, 6.1, "whiten")
    box(ax, 7.25, 1.6, 0.8, 0.7, 0.7)
    ax.text(7.75, 1.5, "$Z = L^{-1} X'Y$\n$d_0 \\times d_1 \\times d_2$", **label)
    arrow(ax, 8.7, "cut ranks")
    box(ax, 9.85, 1.6, 0.22, 0.7)
    box(ax, 10.25, 1.98, 0.3, 0.32, 0.25, ORANGE + "55")
    box(ax, 10.9, 2.06, 0.8, 0.24)
    ax.add_patch(
        Polygon(
            [(10.5, 2.62), (10.62, 2.62), (11.0, 3.0), (10.88, 3.0)],
            facecolor=PALE,
            edgecolor=BLUE,
            lw=1.2,
        )
    )
    names = [
        (9.96, 1.5, "$U_0$"),
        (10.42, 1.88, "$S$"),
        (11.3, 1.96, "$U_1$"),
        (10.5, 3.15, "$U_2$"),
    ]
    for x, y, name in names:
        ax.text(x, y, name, **label)
    ax.text(10.75, 1.0, "$V$, near $Z$", **label)
    arrow(ax, 11.9, "map back")
    box(ax, 13.05, 1.6, 0.8, 0.7, 0.7)
    ax.text(13.55, 1.5, "$W = L'^{-1} V$\n$d_0 \\times d_1 \\times d_2$", **label)
    ax.set(xlim=(-0.2, 14.6), ylim=(-0.5, 4.1), aspect="equal")
    ax.axis("off")
    save("steps")


# ---------------------------------------------------------------- whitening


def whitening() -> None:
    """Contours of a real ridge objective of two inputs and one output, before and after."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ np.array([[1.0, 0.0], [1.2, 0.6]])
    y = X @ [0.9, 0.7] + rng.normal(size=40)
    A = X.T @ X + np.eye(2)
    L = np.linalg.cholesky(A)
    ridge = np.linalg.solve(A, X.T @ y)
    Z = L.T @ ridge
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    line = np.array([1.0, 0.0])  # a set to choose from: the second coefficient is zero
    best = line * (line @ A @ ridge) / (line @ A @ line)
    nearest = line * ridge[0]
    _, axes = plt.subplots(1, 2, figsize=(7.5, 3.8), layout="constrained")
    for ax, map_, centre, name in (
        (axes[0], np.linalg.inv(L.T), ridge, "ridge"),
        (axes[1], np.eye(2), Z, "$Z$"),
    ):
        for radius in (1, 2, 3, 4):
            radius = radius * np.linalg.norm(Z - L.T @ best) / 2
            ax.plot(*(centre[:, None] + radius * map_ @ circle), color=BLUE, lw=0.8)
        ax.plot(*centre, "o", color=BLUE)
        ax.annotate(name, centre, (6, 6), textcoords="offset points", color=BLUE, fontsize=12)
        to = np.eye(2) if ax is axes[0] else L.T
        ends = np.outer(to @ line, [-3, 6])
        ax.plot(*ends, color=GREY, lw=1.5)
        ax.plot(*(to @ best), "o", color=ORANGE)
        ax.plot(*np.stack([centre, to @ best], axis=1), ":", color=ORANGE)
        ax.plot(*(to @ nearest), "x", color=GREY)
        reach = 2.4 * np.linalg.norm(Z - L.T @ best) * (np.linalg.norm(map_, 2))
        ax.set(
            xlim=centre[0] + np.array([-reach, reach]), ylim=centre[1] + np.array([-reach, reach])
        )
        ax.set_aspect("equal")
        ax.set(xticks=[], yticks=[])
    axes[0].set_title("coefficients $W$: ellipses")
    axes[1].set_title("whitened $V = L'W$: circles")
    save("whitening")


# ---------------------------------------------------------------- the certificate


def certificate() -> None:
    X, Y = data()
    ranks = range(1, 7)
    ridge = HOLRR(alpha=5.0, fit_intercept=False).fit(X, Y).objective_
    lines = {"sum of the tails": [], "HOSVD": [], "refined (HOOI)": [], "lower bound": []}
    for R in ranks:
        plain = HOLRR(R, 5.0, fit_intercept=False).fit(X, Y)
        refined = HOLRR(R, 5.0, fit_intercept=False, refine=True, tol=1e-10).fit(X, Y)
        sizes = zip(plain.spectra_, plain.rank_, strict=True)
        lines["sum of the tails"].append(sum(np.sum(s[r:]) for s, r in sizes))
        lines["HOSVD"].append(plain.objective_ - ridge)
        lines["refined (HOOI)"].append(refined.objective_ - ridge)
        lines["lower bound"].append(plain.lower_bound_ - ridge)
    _, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
    styles = [("--", GREY), ("o-", BLUE), ("s-", ORANGE), ("-", GREY)]
    for (name, values), (style, color) in zip(lines.items(), styles, strict=True):
        ax.plot(ranks, np.maximum(values, 0) / np.sum(Y**2), style, color=color, label=name)
    ax.set(xlabel="rank $R$ of every mode", ylabel="objective above ridge, share of $||Y||^2$")
    ax.legend()
    save("certificate")


# ---------------------------------------------------------------- surface and mask


def surface() -> None:
    X, Y = data()
    search = HOLRRCV([5.0], cv=5, fit_intercept=False).fit(X, Y)
    errors = search.cv_results_["mean_mse"][0]
    padded = np.pad(errors, ((1, 0), (1, 0), (1, 0)), constant_values=search.null_mse_)
    increments = np.diff(np.diff(np.diff(padded, axis=0), axis=1), axis=2)
    increments = increments[:, :, :2].sum(axis=2)  # of the second output mode two directions
    at = errors[:, :, 1]
    _, axes = plt.subplots(1, 3, figsize=(9, 3.4), layout="constrained")
    top = np.sort(np.abs(increments).ravel())[-3]
    shown = [
        (increments, {"cmap": "RdBu_r", "vmin": -top, "vmax": top}, "increments of the error"),
        (at, {"cmap": "viridis_r"}, "their sums: all ranks"),
    ]
    mask = np.zeros(errors.shape)
    for rank, weight in zip(search.stack_ranks_, search.stack_weights_, strict=True):
        block = errors.shape if rank is None else rank  # ridge regression keeps all of the core
        mask[tuple(slice(R) for R in block)] += weight
    shown.append((mask[:, :, 1], {"cmap": "Blues", "vmin": 0, "vmax": 1}, "mask of the mixture"))
    for ax, (field, options, title) in zip(axes, shown, strict=True):
        drawn = ax.imshow(field, **options)
        ax.set(title=title, xlabel="first output mode, $R_1$", ylabel="input mode, $R_0$")
        ax.set_xticks(range(field.shape[1]), range(1, field.shape[1] + 1))
        ax.set_yticks(range(field.shape[0]), range(1, field.shape[0] + 1))
        plt.colorbar(drawn, ax=ax)
    row, column = np.unravel_index(np.argmin(at), at.shape)
    axes[1].plot(column, row, "o", color=ORANGE)
    save("surface")


if __name__ == "__main__":
    steps()
    whitening()
    certificate()
    surface()
