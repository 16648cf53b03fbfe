"""
First fit: ridge, low-rank and higher-order low-rank regression
===============================================================

This example compares three models on the same data. The outputs of a sample are a table of 20 by 15
numbers. A few directions along each mode explain the signal.
"""

# %%
# The data are 100 samples with noise as strong as the signal. Half of the samples are for testing.

from holrr.datasets import make_tensor_regression

X, Y = make_tensor_regression(100, 10, (20, 15), rank=(3, 2, 2), snr=1, random_state=0)
X.shape, Y.shape

# %%
# Ridge regression (RLS) fits the 300 outputs independently. Low-rank regression (LRR) fits outputs
# that share directions of the inputs. Higher-order low-rank regression (HOLRR) also uses the two
# modes of the table. The same cross-validation chooses penalties and ranks.

from holrr import HOLRRCV, LRRCV, RLSCV

models = {m.__name__.removesuffix("CV"): m().fit(X[:50], Y[:50]) for m in (RLSCV, LRRCV, HOLRRCV)}
{name: round(model.score(X[50:], Y[50:]), 3) for name, model in models.items()}

# %%
# The best single ranks equal the ranks of the true coefficients.

models["HOLRR"].best_params_["rank"]

# %%
# The coefficients of the third input for every output show that RLS has the most noise, LRR has
# less, and HOLRR has hardly any.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 3, figsize=(8, 3), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    image = ax.imshow(model.coef_[2], cmap="RdBu_r", vmin=-15, vmax=15)
    ax.set(title=name, xlabel="second output mode")
axes[0].set_ylabel("first output mode")
figure.colorbar(image, ax=axes, label="coefficient")
plt.show()
