"""
Nonlinear regression with kernels
=================================

The outputs are the expression of eight genes at nine times after a dose. They are nonlinear
functions of the dose, but combinations of a few curves that genes and times share. Kernel ridge
regression fits 72 curves independently. Kernel HOLRR estimates the few shared curves.
"""

# %%
# Data
# ----
# The data are 120 simulated experiments at doses between -3 and 3 (log units), with noise as strong
# as the signal.

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
# Choose kernel width, penalty and ranks
# --------------------------------------
# Both searches choose from the same six kernel widths, and from penalties that are scaled to the
# eigenvalues of the Gram matrix.

models = {"kernel ridge": KernelRLSCV(), "kernel HOLRR": KernelHOLRRCV()}
for name, model in models.items():
    model.fit(dose[:, None], signal + noise)
    error = np.linalg.norm(model.predict(grid[:, None]) - answer(grid)) / np.linalg.norm(
        answer(grid)
    )
    print(f"{name}: width {model.kernel_params_['gamma']:.2g}, relative error {error:.2f}")

# %%
# Plot the fitted curves
# ----------------------
# The plots show three of the 72 outputs. Kernel ridge regression (dashed) follows the noise of each
# output. Kernel HOLRR uses all outputs for the shared curves and stays close to the truth. Its band
# is the 90 percent prediction interval of single observations.

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
# The error surface of the search at the chosen width. The true ranks are (3, 2, 2).

print("best single rank", models["kernel HOLRR"].best_params_["rank"])
RankSurfaceDisplay.from_estimator(models["kernel HOLRR"], mode_names=["sample", "gene", "time"])
plt.show()
