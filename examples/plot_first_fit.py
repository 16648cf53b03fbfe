"""
A first fit: ridge, low rank, low multilinear rank
==================================================

The same data, three things that their coefficients are allowed to be. The outputs of a sample are
a table of 20 by 15 numbers, which a handful of directions along every side of it explain.
"""

# %%
# 100 samples with as much noise as signal; half of them are kept for the test.

from holrr.datasets import make_tensor_regression

X, Y = make_tensor_regression(100, 10, (20, 15), rank=(3, 2, 2), snr=1, random_state=0)
X.shape, Y.shape

# %%
# Ridge regression treats the 300 outputs as unrelated, low-rank regression lets them share
# directions of the inputs, and higher-order low-rank regression sees both sides of the table, too.
# Penalties and ranks are chosen by the same cross-validation.

from holrr import HOLRRCV, LRRCV, RLSCV

models = {m.__name__.removesuffix("CV"): m().fit(X[:50], Y[:50]) for m in (RLSCV, LRRCV, HOLRRCV)}
{name: round(model.score(X[50:], Y[50:]), 3) for name, model in models.items()}

# %%
# The best single ranks are those of the coefficients that made the data.

models["HOLRR"].best_params_["rank"]

# %%
# What the models know of the third input, its coefficients for every output: with noise, with
# less, and with hardly any.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    image = ax.imshow(model.coef_[2], cmap="RdBu_r", vmin=-15, vmax=15)
    ax.set(title=name, xlabel="second output mode")
axes[0].set_ylabel("first output mode")
figure.colorbar(image, ax=axes, label="coefficient")
plt.show()
