"""
Predict images: complete handwritten digits
===========================================

The models predict the lower half of a digit from its upper half. The outputs are small images of 4
rows by 8 columns. The example compares linear models with a kernel model.
"""

# %%
# Data
# ----
# The data are digits that ship with scikit-learn: 400 for training and 600 for testing.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from holrr import HOLRRCV, RLSCV, KernelHOLRRCV

images = np.random.default_rng(0).permutation(load_digits().images)[:1000] / 16
upper, lower = images[:, :4].reshape(1000, -1), images[:, 4:]
X, Y, X_new, Y_new = upper[:400], lower[:400], upper[400:], lower[400:]

# %%
# Fit three models
# ----------------
# Five-fold cross-validation chooses the hyperparameters of all models. The kernel search tries all
# ranks, six widths of a Gaussian kernel that are scaled to the data, and penalties that are scaled
# to the eigenvalues of the Gram matrices. The outputs are tensors and need not be flattened.

models = {"ridge": RLSCV(), "HOLRR": HOLRRCV(), "kernel HOLRR": KernelHOLRRCV()}
for name, model in models.items():
    print(f"{name:>12}: R2 {model.fit(X, Y).score(X_new, Y_new):.3f}")

# %%
# Compare the predicted images
# ----------------------------
# The upper halves are given, and the models predict the part below the line. The linear models
# predict a blurred mean of the lower halves of digits with a similar upper half. The strokes of the
# kernel model are sharper. Low rank does not improve the linear model here: 400 samples are many
# for 32 inputs, and the lower halves of digits use all directions.

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
# The map shows the R2 of each pixel of the lower half. It is highest for two pixels of the last
# row, which only some digits reach. It is lowest at the sides, where some pixels are nearly always
# white and have almost no variance.

from holrr.metrics import skill_map

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
skill = skill_map(models["kernel HOLRR"], X_new, Y_new)
drawn = ax.imshow(skill, vmin=0, vmax=1)
ax.set(xlabel="column", ylabel="row", yticks=range(4), yticklabels=range(4, 8))
fig.colorbar(drawn, label="R2")
plt.show()
