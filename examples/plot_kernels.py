"""
Kernels: a nonlinear course of many outputs
===========================================

Eight genes, nine times after a dose. How they answer is no linear function of the dose, but there
are only a few ways to answer, shared by genes and times. Kernel ridge regression learns 72 curves
one by one, kernel HOLRR learns the few.
"""

# %%
# Data
# ----
# 120 experiments at doses between -3 and 3 (log units), with noise of the size of the answer.

import matplotlib.pyplot as plt
import numpy as np

from holrr import KernelHOLRRCV, KernelRLSCV
from holrr.plotting import RankSurfaceDisplay

rng = np.random.default_rng(0)
genes, times, core = rng.normal(size=(8, 2)), rng.normal(size=(9, 2)), rng.normal(size=(3, 2, 2))


def answer(dose):
    ways = np.stack([np.tanh(2 * dose), np.exp(-(dose**2)), 0.4 * np.sin(3 * dose)], axis=1)
    return np.einsum("na,abc,gb,tc->ngt", ways, core, genes, times)


dose = rng.uniform(-3, 3, size=120)
signal = answer(dose)
noise = signal.std() * rng.normal(size=signal.shape)
grid = np.linspace(-3, 3, 200)

# %%
# Two searches
# ------------
# Both choose from the same six widths and from penalties that follow the eigenvalues of the Gram
# matrix.

models = {"kernel ridge": KernelRLSCV(), "kernel HOLRR": KernelHOLRRCV()}
for name, model in models.items():
    model.fit(dose[:, None], signal + noise)
    error = np.linalg.norm(model.predict(grid[:, None]) - answer(grid)) / np.linalg.norm(
        answer(grid)
    )
    print(f"{name}: width {model.kernel_params_['gamma']:.2g}, relative error {error:.2f}")

# %%
# What to see
# -----------
# Three of the 72 outputs. Kernel ridge regression (dashed) bends with the noise of its own output.
# Kernel HOLRR shares the bends among all outputs and stays close to the truth; its 90 percent band
# is that of single observations.

low, high = models["kernel HOLRR"].predict_interval(grid[:, None], coverage=0.9)
curves = {name: model.predict(grid[:, None]) for name, model in models.items()}
fig, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for ax, (g, t) in zip(axes, [(1, 3), (3, 4), (6, 8)], strict=True):
    ax.fill_between(grid, low[:, g, t], high[:, g, t], color="C0", alpha=0.15)
    ax.plot(dose, (signal + noise)[:, g, t], ".", color="0.7")
    ax.plot(grid, answer(grid)[:, g, t], "k", lw=1, label="truth")
    ax.plot(grid, curves["kernel ridge"][:, g, t], "C1--", label="kernel ridge")
    ax.plot(grid, curves["kernel HOLRR"][:, g, t], "C0", lw=2, label="kernel HOLRR")
    ax.set(title=f"gene {g}, time {t}", xlabel="dose (log)")
axes[0].set_ylabel("expression")
axes[0].legend()
plt.show()

# %%
# The surface of the search, at the chosen width. The ranks that were built in are (3, 2, 2).

print("best single rank", models["kernel HOLRR"].best_params_["rank"])
RankSurfaceDisplay.from_estimator(models["kernel HOLRR"], mode_names=["sample", "gene", "time"])
plt.show()
