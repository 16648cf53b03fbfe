"""
Complete handwritten digits: linear and kernel models
=====================================================

The upper half of a digit predicts the lower half. The outputs are images of 4 rows by 8 columns.
Two linear models and a kernel model are compared.
"""

# %%
# Data
# ----
# The digits ship with scikit-learn. 400 of them are used for training and 600 others for the
# test.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from holrr import HOLRRCV, RLSCV, KernelHOLRRCV

images = np.random.default_rng(0).permutation(load_digits().images)[:1000] / 16
upper, lower = images[:, :4].reshape(1000, -1), images[:, 4:]
X, Y, X_new, Y_new = upper[:400], lower[:400], upper[400:], lower[400:]

# %%
# Three models
# ------------
# All models are chosen by five-fold cross-validation. The kernel search compares six widths of a
# Gaussian kernel, a grid of penalties and all ranks. The outputs keep their shape.

models = {"ridge": RLSCV(), "HOLRR": HOLRRCV(), "kernel HOLRR": KernelHOLRRCV()}
for name, model in models.items():
    print(f"{name:>12}: R2 {model.fit(X, Y).score(X_new, Y_new):.3f}")

# %%
# Predictions
# -----------
# The upper halves are given, and the part below the line is predicted. The linear models predict
# blurred lower halves. The strokes of the kernel model are sharper. A low rank does not improve
# the linear model here, since 400 samples are many for 32 inputs and the lower halves of digits
# use all directions.

shown = [11, 3, 27, 6, 9, 14, 1, 20]
rows = {"truth": Y_new} | {name: model.predict(X_new) for name, model in models.items()}
fig, axes = plt.subplots(4, 8, figsize=(9, 5), layout="constrained")
for (name, halves), line in zip(rows.items(), axes, strict=True):
    for ax, k in zip(line, shown, strict=True):
        whole = np.vstack([X_new[k].reshape(4, 8), halves[k]])
        ax.imshow(whole, cmap="gray_r", vmin=0, vmax=1)
        ax.axhline(3.5, color="C1", lw=1)
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
plt.show()

# %%
# R2 of each pixel
# ----------------
# Two pixels of the last row are predicted best: some digits end there and others do not. The
# pixels at the sides are predicted worst. Some of them are white in nearly all digits, so there
# is nothing to predict.

from holrr.metrics import skill_map

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
skill = skill_map(models["kernel HOLRR"], X_new, Y_new)
drawn = ax.imshow(skill, vmin=0, vmax=1)
ax.set(xlabel="column", ylabel="row", yticks=range(4), yticklabels=range(4, 8))
fig.colorbar(drawn, label="R2")
plt.show()
